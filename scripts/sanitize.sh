#!/bin/sh
# Builds the native module with the address and undefined-behaviour sanitizers into build/sanitize and runs the tests
# that call it most directly, or those that are named.
set -eu
cd "$(dirname "$0")/.."
site=build/sanitize/site
rm -rf "$site"
python -m pip install --quiet --quiet --no-deps --no-build-isolation --target "$site" \
    --config-settings cmake.define.SKIPGRAD_SANITIZE=ON --config-settings build-dir=build/sanitize .

# Python itself is not built with the sanitizer, so its runtime has to be loaded first, and before it may
# intercept exceptions libstdc++ has to be there too.
compiler=${CXX:-c++}
preload="$($compiler -print-file-name=libasan.so) $($compiler -print-file-name=libstdc++.so)"
# -S: the editable install in site-packages would otherwise bring the module without sanitizers.
[ $# -gt 0 ] || set -- tests/test_heads.py tests/test_text.py tests/test_vocab.py tests/test_corpus.py tests/test_softmax.py tests/test_counts.py
LD_PRELOAD=$preload ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    PYTHONPATH="$site:$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    python -S -m pytest -m "not slow" -p no:cacheprovider "$@"
