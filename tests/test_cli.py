"""The `skipgrad` command: what each verb prints, and that each mistake is one sentence and exit code 2."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

from skipgrad import cli
from skipgrad.heads import HEADS
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

    def test_a_terminal_shows_text_on_the_left_and_numbers_on_the_right(self) -> None:
        terminal, inner = pty.openpty()
        command = [sys.executable, "-m", "skipgrad.cli", "info", "animals.vectors"]
        subprocess.run(command, stdout=inner, check=True, env={**os.environ, "TERM": "dumb", "COLUMNS": "80"})
        lines = [line.rstrip() for line in os.read(terminal, 10_000).decode().splitlines()]
        assert "dim        4" in lines
        assert "losses     2.5000, 2.2500" in lines

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
        ("train --dmi 3 pairs.tsv -o new.vectors", "Unknown option: --dmi"),
        ("train pairs.tsv", "--output"),
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


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.bin", b"", "is empty"),
        ("huge.bin", b"1000000000000 100\nking " + bytes(400), "says 1,000,000,000,000 words"),
        ("negative.bin", b"5 -3\nking " + bytes(40), "-3 dimensions; both must be 1 or more"),
        ("cut.bin", b"5 3\nking " + bytes(12), "is cut, or its header is wrong"),
        ("huge.txt", b"1000000000000 2\nking 1 2\n", "says 1,000,000,000,000 words"),
        ("cut.txt", b"3 2\nking 1 2\n", "3"),
        ("nan.txt", b"2 2\nking 1 2\nman nan 1\n", "row 2, the word 'man', has NaN"),
    ],
)
def test_vectors_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    code, out, err = run(capsys, f"nearest {tmp_path / name} king")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_a_word_with_a_space_is_not_exported_as_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    vocab = Vocab(pa.array(["new york", "whale"], pa.large_string()), np.array([2, 1]))
    Vectors(vocab, np.eye(2, dtype=np.float32)).save("towns.vectors")
    code, _, err = run(capsys, "export towns.vectors towns.txt")
    assert (code, err.count("\n")) == (2, 1)
    assert "'new york'" in err
    assert "--replace-spaces" in err
    assert not Path("towns.txt").exists()
    assert run(capsys, "export towns.vectors towns.txt --replace-spaces _")[0] == 0
    assert run(capsys, "similarity towns.txt new_york whale")[1] == "0.0000\n"


@pytest.mark.usefixtures("folder")
def test_an_export_does_not_replace_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("animals.bin").write_text("precious")
    code, _, err = run(capsys, "export animals.vectors animals.bin")
    assert code == 2
    assert "--overwrite" in err
    assert Path("animals.bin").read_text() == "precious"


ANIMALS = "the king and a man saw the queen and a woman on a whale\n" * 200


@pytest.mark.usefixtures("folder")
class TestTrain:
    """Text in, a folder of vectors out."""

    def test_every_option_of_the_issue(self, capsys: pytest.CaptureFixture[str]) -> None:
        with gzip.open("corpus.txt.gz", "wt") as file:
            file.write(ANIMALS)
        code, out, err = run(
            capsys,
            "train corpus.txt.gz -o new.vectors --dim 16 --window 3 --head negative --negatives 4 --sample 1e-2 "
            "--min-count 5 --epochs 2 --lr 0.01 --threads 1 --seed 7",
        )
        assert (code, out) == (0, "")
        assert "2,800 words in 200 sentences" in err
        assert re.search(r"epoch 2/2: loss \d+\.\d{4} \(\d", err)
        assert err.endswith("vectors to new.vectors.\n")
        metadata = Vectors.load("new.vectors").metadata
        assert metadata["options"] == {
            "dim": 16,
            "window": 3,
            "sample": 0.01,
            "head": {"name": "negative", "negatives": 4, "exponent": 0.75, "shared": 0, "way": "draws"},
        }
        assert metadata["training"]["seed"] == 7
        assert len(metadata["history"]) == 2

    def test_every_head_can_be_named(self) -> None:
        assert set(get_args(get_type_hints(cli.train)["head"])) == set(HEADS)

    def test_several_files_are_one_text(self, capsys: pytest.CaptureFixture[str]) -> None:
        for name in ("a.txt", "b.txt"):
            Path(name).write_text(ANIMALS)
        code, _, err = run(capsys, "train a.txt b.txt -o new.vectors --dim 8 --epochs 1 --threads 1")
        assert code == 0
        assert "400 sentences" in err

    def test_standard_input(self) -> None:
        command = [
            sys.executable,
            "-m",
            "skipgrad.cli",
            "train",
            "-",
            "-o",
            "new.vectors",
            "--dim",
            "8",
            "--epochs",
            "1",
        ]
        subprocess.run(command, input=ANIMALS.encode(), check=True, capture_output=True)
        assert "whale" in Vectors.load("new.vectors")

    def test_a_share_held_out_is_shown(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.txt").write_text(ANIMALS)
        code, _, err = run(capsys, "train a.txt -o new.vectors --dim 8 --epochs 1 --heldout 0.2 --threads 1")
        assert code == 0
        assert re.search(r"held out \d\.\d{4}", err)

    def test_an_existing_output_is_refused_before_anything_is_read(self, capsys: pytest.CaptureFixture[str]) -> None:
        before = Path("animals.vectors/model.json").read_text()
        code, _, err = run(capsys, "train nowhere.txt -o animals.vectors")
        assert code == 2
        assert "--overwrite" in err
        assert Path("animals.vectors/model.json").read_text() == before

    def test_overwrite_replaces_vectors(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.txt").write_text(ANIMALS)
        assert run(capsys, "train a.txt -o animals.vectors --dim 8 --epochs 1 --threads 1 --overwrite")[0] == 0
        assert Vectors.load("animals.vectors").dim == 8

    def test_overwrite_does_not_replace_a_folder_of_other_things(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("thesis").mkdir()
        Path("thesis", "chapter.txt").write_text("precious")
        code, _, err = run(capsys, "train nowhere.txt -o thesis --overwrite")
        assert code == 2
        assert "chapter.txt" in err

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ("--dim 1", "dim is 1"),
            ("--window 0", "window is 0"),
            ("--negatives 65", "negatives is 65"),
            ("--epochs 0", "epochs is 0"),
            ("--lr nan", "lr is nan"),
            ("--threads -1", "threads is -1"),
            ("--min-count 0", "min_count"),
            ("--min-count 1000000", "1000000"),
            ("--lr 1e30", "learning rate"),
            ("--tokenizer letters", '"whitespace", "words"'),
            ("--head softmin", '"negative"'),
            ("--head negative --way stream", "must be 'draws' or 'counts'"),
            ("--encoder cbow --head negative --way counts", "only skip-gram has pairs to count"),
            ("--encoder cbow --head softmax", "only skip-gram has pairs to count"),
            ("--head hierarchical --negatives 5", "choose --head negative or nce"),
            ("--combine sum", "choose --encoder cbow"),
            ("--dmi 3", "Did you mean --dim?"),
            ("--patience 2", "held-out loss"),
            ("--format parquet", "Parquet"),
            ("-o no/where.vectors", "no is not there"),
        ],
    )
    def test_a_bad_option_is_one_sentence(self, capsys: pytest.CaptureFixture[str], options: str, says: str) -> None:
        Path("a.txt").write_text(ANIMALS)
        output = "" if options.startswith("-o") else "-o new.vectors"
        code, out, err = run(capsys, f"train a.txt {output} {options}")
        assert (code, out) == (2, "")
        assert says in err.splitlines()[-1]
        assert "Traceback" not in err
        assert not Path("new.vectors").exists()

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"", "is empty"),
            (b"one\ntwo\n" * 100, "nothing to predict"),
            (b"a b c\n", "min_count"),
            (b"one " * 100, "one word"),
            (b"caf\xe9 " * 100, "UTF-8"),
            (b"nul\x00 " * 100, "NUL"),
        ],
    )
    def test_a_bad_text_is_one_sentence(self, capsys: pytest.CaptureFixture[str], content: bytes, says: str) -> None:
        Path("bad.txt").write_bytes(content)
        code, out, err = run(capsys, "train bad.txt -o new.vectors")
        assert (code, out) == (2, "")
        assert says in err.splitlines()[-1]

    @pytest.mark.parametrize(
        ("source", "says"),
        [
            ("missing.txt", "no file 'missing.txt'"),
            ("*.nowhere", "no file matches"),
            ("bare", "no text in the folder bare"),
            ("table.csv", "say which column holds the text"),
            ("table.csv --column text", "has no column 'text'; there are: id, body"),
            ("cut.txt.gz", "gzip data stops in the middle"),
            ("cut.txt.zst", "zstd data stops in the middle"),
            ("plain.txt.gz", "not valid gzip data"),
        ],
    )
    def test_a_source_without_text_is_one_sentence(
        self, capsys: pytest.CaptureFixture[str], source: str, says: str
    ) -> None:
        Path("bare").mkdir()
        Path("table.csv").write_text("id,body\n1,the king\n" * 9)
        Path("plain.txt.gz").write_text(ANIMALS)
        noise = np.random.default_rng(0).bytes(50_000).hex()  # what does not compress to a few bytes
        for name, kind in (("cut.txt.gz", "gzip"), ("cut.txt.zst", "zstd")):
            with pa.CompressedOutputStream(name, kind) as file:
                file.write((noise + ANIMALS).encode())
            Path(name).write_bytes(Path(name).read_bytes()[:-100])
        code, out, err = run(capsys, f"train {source} -o new.vectors")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err
        assert not Path("new.vectors").exists()

    def test_a_full_disk_loses_nothing(self) -> None:
        Path("a.txt").write_text(ANIMALS)
        before = Path("animals.vectors/vectors.safetensors").read_bytes()
        train = f"{sys.executable} -m skipgrad.cli train a.txt -o animals.vectors --overwrite --dim 1000 --epochs 1"
        command = ["bash", "-c", f"ulimit -f 20; {train}"]  # no file of more than 20 blocks of 1,024 bytes
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.endswith("animals.vectors was not written: File too large.\n")
        assert Path("animals.vectors/vectors.safetensors").read_bytes() == before
        assert not [path.name for path in Path.cwd().iterdir() if "tmp" in path.name or path.name.startswith(".")]

    def test_ctrl_c_saves_what_was_learned_and_exits_130(self) -> None:
        Path("a.txt").write_text(ANIMALS)
        command = [sys.executable, "-m", "skipgrad.cli", "train", "a.txt", "-o", "new.vectors", "--epochs", "1000000"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
            assert child.stderr is not None
            next(line for line in child.stderr if line.startswith("epoch 3/"))
            child.send_signal(signal.SIGINT)
            began = time.monotonic()
            rest = child.stderr.read()
            assert child.wait() == 130
        assert time.monotonic() - began < 5  # a second, on a machine that has nothing else to do
        assert rest.endswith("unfinished: training was stopped.\n")
        assert Vectors.load("new.vectors").metadata["finished"] is False


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version

    assert run(capsys, "--version") == (0, version("skipgrad") + "\n", "")


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for verb in ("train", "demo", "nearest", "analogy", "similarity", "evaluate", "export", "info"):
        assert verb in out
