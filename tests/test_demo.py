"""The text of `make run`: what is taken from the Python library, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from skipgrad import demo


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# a comment\n", ["a comment"]),
        ("# on two\n# lines\n", ["on two lines"]),
        ("x = 1  # one\n\n# two\n", ["one two"]),
        ("# one\nx = 1\n# two\n", ["one", "two"]),
        (
            'def f():\n    """A sentence.\n\n    A paragraph\n    of two lines.\n    """\n',
            ["A sentence.", "A paragraph"],
        ),
        ("'''single'''", ["single"]),
        ("x = '# no comment'", []),
        ('x = "a \\" # quote"', []),
        ("it = 'is' # it's a comment\n'''text'''", ["it's a comment", "text"]),
        ('x = """', []),
        ("", []),
    ],
)
def test_paragraphs_are_strings_in_triple_quotes_and_comments(source: str, expected: list[str]) -> None:
    assert [found.split("\n")[0] for found in demo.paragraphs(source) if found] == expected


def test_sentences_are_lower_cased_words(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("# Returns a LIST, of 3 Größen.\n\nx = 1\n# too short\n", encoding="utf-8")
    assert demo.sentences(path) == ["returns a list of größen"]


def test_a_file_that_is_not_utf_8_has_no_sentences(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"# one two three \xe9\n")
    assert demo.sentences(path) == []


def test_a_paragraph_that_repeats_counts_once(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"# the licence of all\nx = 1\n# only in file {name[0]}\n")
    told: list[tuple[int, int, int]] = []
    files = sorted(tmp_path.glob("*.py"))
    found = list(demo.documentation(files, lambda *facts: told.append(facts)))
    assert found == ["the licence of all", "only in file a", "only in file b"]
    assert told == [(1, 2, 8), (2, 2, 12)]


def test_the_library_of_this_python_is_found() -> None:
    names = {path.name for path in demo.library()}
    assert {"argparse.py", "textwrap.py"} <= names
