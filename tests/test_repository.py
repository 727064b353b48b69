"""The repository itself: what a fresh machine is told, and that the README is true."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHECK = ROOT / "scripts" / "check_machine.py"
SETUP = ROOT / "scripts" / "setup.sh"


def check_machine(**environment: str) -> subprocess.CompletedProcess[str]:
    """Run the check in a changed environment."""
    changed = {**os.environ, **environment}
    return subprocess.run([sys.executable, CHECK], env=changed, capture_output=True, text=True, check=False)


def needs_python_h() -> None:
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        pytest.skip("this Python has no headers")


def test_a_machine_that_has_all_is_told_nothing() -> None:
    needs_python_h()
    run = check_machine()
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    "environment",
    [{"CXX": "no-such-compiler"}, {"CXX": "", "PATH": "nowhere"}, {"CXX": "false"}],
    ids=["CXX is missing", "nothing on the PATH", "CXX does not compile"],
)
def test_a_missing_compiler_is_one_line_that_says_what_to_install(environment: dict[str, str]) -> None:
    needs_python_h()
    run = check_machine(**environment)
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "g++" in run.stderr


@pytest.mark.parametrize(
    ("module", "attribute", "value", "install"),
    [
        ("sysconfig", "get_paths", lambda: {"include": "/nowhere"}, "python3-dev"),
        ("sys", "version_info", (3, 9, 18), "3.11"),
    ],
    ids=["no Python.h", "old Python"],
)
def test_a_python_that_cannot_build_is_told_so(
    module: str, attribute: str, value: object, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(CHECK.parent)
    import check_machine

    monkeypatch.setattr(getattr(check_machine, module), attribute, value)
    message = check_machine.missing()
    assert message is not None
    assert "\n" not in message
    assert install in message


def test_a_python_without_venv_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(CHECK.parent)
    import check_machine

    monkeypatch.setitem(sys.modules, "ensurepip", None)
    message = check_machine.missing()
    assert message is not None
    assert "python3-venv" in message


def test_set_up_without_python_is_one_line() -> None:
    run = subprocess.run([SETUP, "no-such-python", "unused", "test"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr == (
        "no-such-python was not found: install Python 3.11 or newer, or name one: make PYTHON=python3.12\n"
    )


def test_constraints_pin_versions_and_name_no_place() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][\w.]*", pin) for pin in pins)


@pytest.mark.parametrize("document", ["README.md", "docs/guide/training.md"])
def test_the_python_of_a_document_runs(document: str, tmp_path: Path) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL)
    with gzip.open(tmp_path / "corpus.txt.gz", "wt") as file:
        file.write("the king and a man saw the queen and a woman on a whale\n" * 20_000)
    environment = {**os.environ, "SKIPGRAD_CACHE": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "animals.vectors" / "vectors.safetensors").exists()


def test_links_in_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
