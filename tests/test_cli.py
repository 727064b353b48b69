"""The `skipgrad` command: what each verb prints, and that each mistake is one sentence and exit code 2."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skipgrad import cli
from skipgrad.vectors import Vectors
from skipgrad.vocab import Vocab

WORDS = ["man", "woman", "king", "queen", "whale", "fish"]
TABLE = [[1, 0, 0, 0.1], [0, 1, 0, 0.1], [1, 0, 2, 0.1], [0, 1, 2, 0.1], [0.3, 0.3, 0, 3], [0.2, 0.3, 0.1, 3]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `animals.vectors`, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    vocab = Vocab(pa.array(WORDS, pa.large_string()), np.arange(6, 0, -1))
    metadata = {"seed": 1000, "model": {"dim": 4}, "losses": [2.5, 2.25], "finished": False}
    table = np.array(TABLE, np.float32)
    Vectors(vocab, table, table, metadata).save("animals.vectors")
    Path("pairs.tsv").write_text("king\tqueen\t9\nman\twhale\t1\nwoman\tfish\t2\n")
    Path("analogies.txt").write_text(": gram1\nman king woman queen\n: family\nking man queen woman\n")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line."""
    code = cli.main(line.split())
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.usefixtures("folder")
class TestVerbs:
    """What each prints where the output is no terminal: lines with tabs, names of columns first."""

    def test_nearest(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "nearest animals.vectors king whale -n 1") == (
            0,
            "word\tnearest\tcosine\nking\tqueen\t0.8004\nwhale\tfish\t0.9989\n",
            "",
        )

    def test_nearest_among_the_most_frequent_words(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(capsys, "nearest animals.vectors king --restrict 2")
        assert code == 0
        assert out.split("\n")[1].startswith("king\tman\t")

    @pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
    def test_analogy(self, capsys: pytest.CaptureFixture[str], method: str) -> None:
        code, out, _ = run(capsys, f"analogy animals.vectors king - man + woman -n 1 --method {method}")
        assert code == 0
        assert re.fullmatch(r"word\tscore\nqueen\t\d\.\d{4}\n", out)

    def test_similarity(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "similarity animals.vectors king queen") == (0, "0.8004\n", "")

    def test_evaluate(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(capsys, "evaluate animals.vectors pairs.tsv analogies.txt --sections")
        rows = [line.split("\t") for line in out.splitlines()]
        assert code == 0
        assert rows[0] == ["file", "measure", "score", "95 % interval", "used", "missing"]
        assert [row[:3] for row in rows[1:]] == [
            ["pairs.tsv", "Spearman", "1.0000"],
            ["analogies.txt", "total", "1.0000"],
            ["analogies.txt", "semantic", "1.0000"],
            ["analogies.txt", "syntactic", "1.0000"],
            ["analogies.txt", "gram1", "1.0000"],
            ["analogies.txt", "family", "1.0000"],
        ]

    def test_evaluate_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(capsys, "evaluate animals.vectors pairs.tsv analogies.txt --json")
        pairs, analogies = json.loads(out)
        assert (code, pairs["rho"], analogies["total"]["accuracy"]) == (0, 1.0, 1.0)

    def test_info(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(capsys, "info animals.vectors")
        facts = dict(line.split("\t") for line in out.splitlines())
        assert code == 0
        assert facts["words"] == "6"
        assert facts["seed"] == "1000"
        assert facts["model.dim"] == "4"
        assert facts["losses"] == "2.5000, 2.2500"
        assert facts["finished"] == "False"

    def test_info_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(capsys, "info animals.vectors --json")
        assert (code, json.loads(out)["losses"]) == (0, [2.5, 2.25])

    @pytest.mark.parametrize("name", ["animals.bin", "animals.txt", "animals.npy"])
    def test_export_writes_what_nearest_reads(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
        assert run(capsys, f"export animals.vectors {name}") == (0, "", f"Wrote 6 words to {name}.\n")
        _, out, _ = run(capsys, f"nearest {name} king -n 1")
        assert out.endswith("king\tqueen\t0.8004\n")
        assert run(capsys, f"export animals.vectors {name} --overwrite")[0] == 0

    def test_a_terminal_shows_an_aligned_table(self) -> None:
        terminal, inner = pty.openpty()
        command = [sys.executable, "-m", "skipgrad.cli", "nearest", "animals.vectors", "king", "-n", "2"]
        subprocess.run(command, stdout=inner, check=True, env={**os.environ, "TERM": "dumb", "COLUMNS": "80"})
        lines = [line.rstrip() for line in os.read(terminal, 10_000).decode().splitlines()]
        assert lines == ["word  nearest  cosine", "king  queen    0.8004", "king  man      0.4490"]

    def test_a_reader_that_has_seen_enough_is_no_error(self) -> None:
        command = f"{sys.executable} -m skipgrad.cli info animals.vectors | true"
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nearest nowhere king", "nowhere is not there"),
        ("nearest animals.vectors kign", "'king'"),
        ("nearest animals.vectors king -n 0", "n=0 should be 1 or more"),
        ("nearest animals.vectors", "requires an argument"),
        ("nearest animals.vectors king --nmuber 3", "Did you mean --number?"),
        ("nearest animals.vectors king -n many", 'unable to convert "many" into int'),
        ("nearest pairs.tsv king", "expected a word and numbers"),
        ("neerest animals.vectors king", 'Did you mean "nearest"?'),
        ("analogy animals.vectors king man woman", "expected words with + or - between"),
        ("analogy animals.vectors king - man +", "expected words with + or - between"),
        ("analogy animals.vectors", "expected words with + or - between"),
        ("analogy animals.vectors king - man + wman", "'woman'"),
        ("similarity animals.vectors king qeen", "'queen'"),
        ("evaluate animals.vectors nowhere.txt", "nowhere.txt is not there"),
        ("evaluate animals.vectors animals.vectors/vectors.safetensors", "not valid UTF-8"),
        ("export animals.vectors pairs.txt.gz", "no extension that names a format"),
        ("export animals.vectors nowhere/animals.bin", "nowhere"),
        ("export animals.vectors animals.bin --which both", "both"),
        ("info pairs.tsv", "expected a word and numbers"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, line)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.usefixtures("folder")
def test_an_export_does_not_replace_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("animals.bin").write_text("precious")
    code, _, err = run(capsys, "export animals.vectors animals.bin")
    assert code == 2
    assert "--overwrite" in err
    assert Path("animals.bin").read_text() == "precious"


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version

    assert run(capsys, "--version") == (0, version("skipgrad") + "\n", "")


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for verb in ("nearest", "analogy", "similarity", "evaluate", "export", "info"):
        assert verb in out
