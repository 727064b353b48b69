"""Without PyTorch, which is an extra: the package works, and its heads as modules say what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

import skipgrad as sg


def python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_the_package_never_imports_torch() -> None:
    assert python("import sys, skipgrad, skipgrad.cli; print('torch' in sys.modules)") == "False\n"


def test_a_missing_torch_says_what_to_install() -> None:
    hidden = "import sys\nsys.modules['torch'] = None\nimport skipgrad as sg\n"
    program = f"{hidden}try: sg.torch\nexcept ImportError as e: print(e)"
    assert "pip install 'skipgrad[torch]'" in python(program)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Torch"):
        sg.Torch  # noqa: B018
