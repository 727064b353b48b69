#!/bin/sh
# Writes the stubs of the native module to $1.
set -eu
python -m nanobind.stubgen --quiet --module skipgrad._native --output-file "$1"
ruff format --quiet "$1"
