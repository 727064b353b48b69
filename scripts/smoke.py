"""Is an installed skipgrad whole? Trains on a few made-up sentences, saves, opens and searches."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import skipgrad as sg

SENTENCES = [
    f"{animal} {verb} {food}"
    for animal in ("cat", "dog", "owl")
    for verb in ("eats", "wants")
    for food in ("fish", "meat")
]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text, vectors = Path(folder, "text.txt"), Path(folder, "small.vectors")
        text.write_text("\n".join(SENTENCES * 50))
        options = ["-o", str(vectors), "--dim", "8", "--epochs", "2"]
        command = [sys.executable, "-m", "skipgrad.cli", "train", str(text), *options]
        subprocess.run(command, check=True, cwd=folder)
        near = sg.Vectors.load(vectors).nearest("cat", n=3)
    print(f"skipgrad works: near cat are {', '.join(word for word, _ in near)}")
