"""Says in one line what is missing on this machine to build skipgrad; silent where all is there.

Runs before anything is installed, on any Python that calls itself python3: standard library and old syntax only.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

COMPILERS = ("c++", "g++", "clang++")
PROBE = '#include <Python.h>\n#include <vector>\nstatic_assert(__cplusplus >= 201703L, "C++17");\nint main() {}\n'


def compiler() -> "str | None":
    """The C++ compiler that CMake will take: $CXX, or the first usual name on the PATH."""
    named = os.environ.get("CXX")
    if named:
        return shutil.which(named.split()[0])
    return next((path for path in map(shutil.which, COMPILERS) if path), None)


def missing() -> "str | None":
    """The first thing that is missing, as a sentence that says what to install; None where nothing is."""
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python runs this very file
        version = ".".join(map(str, sys.version_info[:3]))
        return "Python " + version + " is too old: install Python 3.11 or newer, or name one: make PYTHON=python3.11"
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "Python's venv module is missing: install it (Debian, Ubuntu: apt install python3-venv)."
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        hint = "Debian, Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel"
        return "Python.h is missing: install Python's headers (" + hint + ")."
    found = compiler()
    if found is None:
        wanted = os.environ.get("CXX") or "g++ or clang++"
        hint = "Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; macOS: xcode-select --install"
        return "No C++ compiler (" + wanted + ") was found: install one (" + hint + ")."
    return broken(found, include)


def broken(found: str, include: str) -> "str | None":
    """What the compiler says of a C++17 program that needs Python's headers; None where it compiles."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "probe.cpp")
        with open(source, "w") as file:
            file.write(PROBE)
        command = [found, "-std=c++17", "-fsyntax-only", "-I", include, source]
        run = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if run.returncode == 0:
        return None
    said = next((line for line in run.stderr.splitlines() if "error" in line), "it said nothing")
    reason = said.split("error:")[-1].strip()
    return found + " cannot compile C++17 (" + reason + "): install g++ 11 or clang++ 14 or newer, or set CXX."


if __name__ == "__main__":
    problem = missing()
    if problem:
        sys.exit(problem)
