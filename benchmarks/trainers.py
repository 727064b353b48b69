"""One training run in a process of its own: from a compressed text to saved vectors, on two clocks.

`python -m benchmarks.trainers TRAINER SETTING TEXT FOLDER STARTED` writes its times as JSON to FOLDER/times.json and
the vectors, for the evaluator, to FOLDER/vectors.bin in word2vec's binary format.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.settings import Setting

Times = dict[str, Any]
SCORED = "vectors.bin"


def train_skipgrad(setting: Setting, text: Path, folder: Path, started: float) -> Times:
    """Skipgrad: corpus, model, folder of vectors."""
    import skipgrad as sg
    from skipgrad.flags import ENCODERS

    begin = time.time()
    corpus = sg.Corpus.build(text, min_count=setting.min_count, cache=folder / "cache", threads=setting.threads)
    built = time.time()
    drawn = setting.head == "negative"
    head = sg.heads.HEADS[setting.head](**({"negatives": setting.negatives} if drawn else {}))
    model = ENCODERS[setting.encoder](dim=setting.dim, window=setting.window, sample=setting.sample, head=head)
    lr = setting.lr if setting.encoder == "skipgram" else 0.0  # its own: gensim leaves out the 1/n of CBOW's gradient
    vectors = model.fit(corpus, epochs=setting.epochs, lr=lr, threads=setting.threads, seed=setting.seed)
    trained = time.time()
    vectors.save(folder / "model.vectors")
    times = _times(started, begin, built, trained, corpus.words * setting.epochs)
    history = vectors.metadata["history"]
    times["trained_words"] = sum(epoch["trained_words"] for epoch in history)
    if drawn and setting.encoder == "skipgram":
        # Multiplications and additions: 6 D for a place that a token sees, and for a noise word that it is scored
        # against. A token sees 2 window places, and their weights sum to window + 1.
        places = 2 * setting.window / (setting.window + 1)
        draws = head.draws(setting.window + 1)
        scored = sum(epoch["pairs"] * places + epoch["trained_words"] * draws for epoch in history)
        times["gflops"] = 6 * setting.dim * scored / (trained - built) / 1e9
        times["peak_gflops"] = _peak(setting.threads)
    vectors.export(folder / SCORED)
    return times


def train_gensim(setting: Setting, text: Path, folder: Path, started: float) -> Times:
    """Gensim: its fastest way, a plain text that worker threads read by themselves."""
    from gensim.models import Word2Vec

    begin = time.time()
    plain = _unpack(text, folder)
    model = Word2Vec(
        vector_size=setting.dim,
        window=setting.window,
        negative=setting.negatives if setting.head == "negative" else 0,
        sg=int(setting.encoder == "skipgram"),
        hs=int(setting.head == "hierarchical"),
        sample=setting.sample,
        min_count=setting.min_count,
        workers=setting.threads,
        epochs=setting.epochs,
        alpha=setting.lr,
        seed=setting.seed,
    )
    model.build_vocab(corpus_file=str(plain))
    built = time.time()
    words = model.corpus_total_words
    trained_words, _ = model.train(
        corpus_file=str(plain), total_examples=model.corpus_count, total_words=words, epochs=setting.epochs
    )
    trained = time.time()
    model.wv.save_word2vec_format(str(folder / SCORED), binary=True)
    times = _times(started, begin, built, trained, words * setting.epochs)
    times["trained_words"] = trained_words
    return times


def train_fasttext(setting: Setting, text: Path, folder: Path, started: float) -> Times:
    """FastText without subwords: one call counts and trains, and its own clock, which it prints, tells them apart."""
    import fasttext

    begin = time.time()
    plain = _unpack(text, folder)
    fasttext.FastText.unsupervised_default["seed"] = setting.seed  # train_unsupervised has no argument for it
    model = fasttext.train_unsupervised(
        str(plain),
        model="skipgram",
        dim=setting.dim,
        ws=setting.window,
        neg=setting.negatives,
        t=setting.sample,
        minCount=setting.min_count,
        minn=0,
        maxn=0,
        bucket=0,
        thread=setting.threads,
        epoch=setting.epochs,
        lr=setting.lr,
        verbose=2,
    )
    trained = time.time()
    model.save_model(str(folder / "model.bin"))
    words = len(plain.read_text(encoding="utf-8").split()) * setting.epochs
    times = _times(started, begin, trained, trained, words)
    _export_fasttext(model, folder / SCORED)
    return times


def _export_fasttext(model: Any, path: Path) -> None:
    """Write word2vec's binary format; the end of a line, a word to fastText, is left out."""
    words = [word for word in model.get_words() if word != "</s>"]
    with path.open("wb") as file:
        file.write(f"{len(words)} {model.get_dimension()}\n".encode())
        for word in words:
            file.write(word.encode() + b" " + model.get_word_vector(word).tobytes() + b"\n")


def _unpack(text: Path, folder: Path) -> Path:
    """The plain text that gensim and fastText read."""
    import pyarrow as pa

    plain = folder / "text.txt"
    with pa.input_stream(str(text)) as packed, plain.open("wb") as file:
        shutil.copyfileobj(packed, file, 1 << 20)
    return plain


def _times(started: float, begin: float, built: float, trained: float, raw_words: int) -> Times:
    """Seconds of each part, and from the start of the process to saved vectors; memory is the peak until now."""
    now = time.time()
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "start_seconds": begin - started,
        "corpus_seconds": built - begin,
        "train_seconds": trained - built,
        "save_seconds": now - trained,
        "total_seconds": now - started,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6,
        "raw_words": raw_words,
    }


def _peak(threads: int) -> float:
    """Gflop/s of a loop of multiply-adds in registers, on as many threads at once."""
    from skipgrad import _native

    best = _native.instruction_sets()[-1]
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(lambda _: _native.fma_peak(best, 1.0), range(threads)))


def fasttext_clock(log: str, threads: int) -> float | None:
    """Raw words a second, from the last line of fastText's progress."""
    found = re.findall(r"words/sec/thread:\s*(\d+)", log)
    return int(found[-1]) * threads if found else None


TRAINERS = {"skipgrad": train_skipgrad, "gensim": train_gensim, "fasttext": train_fasttext}

if __name__ == "__main__":
    trainer, setting, text, folder, started = sys.argv[1:]
    times = TRAINERS[trainer](Setting(**json.loads(setting)), Path(text), Path(folder), float(started))
    Path(folder, "times.json").write_text(json.dumps(times))
