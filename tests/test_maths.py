"""The pages on maths: every check in them runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parent.parent / "docs" / "maths"
CHECKED = [page for page in sorted(PAGES.glob("*.md")) if "```python" in page.read_text(encoding="utf-8")]


def test_pages_have_checks() -> None:
    assert {"README.md", "hierarchical.md", "importance.md", "sampled.md", "nce.md", "adaptive.md", "cbow.md"} <= {
        page.name for page in CHECKED
    }


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.name)
def test_the_checks_of_a_page_hold(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PAGES)
    found = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, object] = {}
    for number, code in enumerate(found, start=1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), scope)
