"""What no linter checks: current stubs, kernels without weak symbols, files that name no machine."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUBS = ROOT / "src/skipgrad/_native.pyi"
# Home folders, workplaces and package registries: true on one machine, wrong on every other.
MACHINE = re.compile(r"(?<![\w.$])/(?:home|root|Users|work|opt|mnt|tmp/wt)/[\w.]|\w://[^\s)\"'>]*(?:/simple\b|pypi-)")


def stale_stubs() -> Iterator[str]:
    """The stubs that mypy and editors read are those of the module that was built."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder, "_native.pyi")
        subprocess.run([ROOT / "scripts/stubs.sh", fresh], check=True, stdout=subprocess.DEVNULL)
        if not STUBS.exists() or STUBS.read_text() != fresh.read_text():
            yield f"{STUBS.relative_to(ROOT)} is not what the native module says: run `make format` and commit it."


def weak_symbols() -> Iterator[str]:
    """The linker may keep an AVX-512 object's weak symbol for every caller, and an older CPU dies of it (SIGILL)."""
    objects = [path for path in (ROOT / "build").glob("**/kernels_*.dir/**/*.o") if "sanitize" not in str(path)]
    if not objects:
        yield "No kernel object was found below build/: run `make test` first."
    for path in objects:
        nm = subprocess.run(["nm", "--defined-only", "--demangle", path], check=True, capture_output=True, text=True)
        for line in nm.stdout.splitlines():
            if line.split(maxsplit=2)[1] in "WwVvu":
                yield f"{path.relative_to(ROOT)} defines a weak symbol, is a std:: header included? {line}"


def machine_paths() -> Iterator[str]:
    """A committed file that names a path of one machine."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        path = ROOT / name
        if path == Path(__file__).resolve() or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            if MACHINE.search(line):
                yield f"{name}:{number} names a path or host of one machine: {line.strip()[:100]}"


if __name__ == "__main__":
    found = [problem for check in (stale_stubs, weak_symbols, machine_paths) for problem in check()]
    sys.exit("\n".join(found) if found else 0)
