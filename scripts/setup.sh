#!/bin/sh
# Makes the virtual environment $2 with Python $1, and builds and installs skipgrad into it with what its tests, checks
# and the extras in $3 need. Run again after a change, it rebuilds only what changed. One line of output where all is well.
set -eu
python=$1 venv=$2 extras=$3
cd "$(dirname "$0")/.."

command -v "$python" >/dev/null || {
    echo "$python was not found: install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2
    exit 1
}
"$python" scripts/check_machine.py

export PIP_QUIET=2 PIP_DISABLE_PIP_VERSION_CHECK=1
echo "Setting up $venv (once, about a minute) ..."
# An old pip knows neither dependency groups nor recent wheel tags: --upgrade-deps brings a new one.
[ -x "$venv/bin/python" ] || "$python" -m venv --upgrade-deps "$venv"
pip="$venv/bin/python -m pip install --constraint constraints.txt"
# Built with the environment's own CMake and Ninja, so that a rebuild compiles only what changed.
$pip scikit-build-core nanobind cmake ninja
$pip --no-build-isolation --editable ".[$extras]"
