#!/bin/sh
# All checks that are no tests; ends with the first that fails.
set -eu
cd "$(dirname "$0")/.."
ruff check .
ruff format --check .
mypy
find native -name '*.cpp' -o -name '*.h' | xargs clang-format --dry-run -Werror
python scripts/check_repository.py
