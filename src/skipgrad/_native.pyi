"""The native core of skipgrad: kernels, sampling and text."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

def instruction_sets() -> list[str]:
    """The instruction sets that this machine can run, slowest first."""

def fma_peak(isa: str, seconds: float = 0.2) -> float:
    """
    Gflop/s of one core in a loop of fused multiply-adds that touches registers only.
    """

class Kernel:
    """A head on a pair of tables."""

    def __init__(
        self,
        isa: str,
        head: str,
        encoder: str,
        input: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        output: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")] | None,
        dim: int,
        keep: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        window: int,
        block: int,
        cumulative: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        offset: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        draws: int = 0,
        exact: int = 0,
        share: float = 0.0,
        included: bool = False,
        begins: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
        steps: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> None: ...
    def scratch(self, count: int) -> int:
        """
        Bytes of scratch memory that a run over `count` ids needs, if they start at a multiple of 64.
        """

    def run(
        self,
        update: bool,
        ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        position: int,
        key: int,
        heldout_key: int,
        heldout: float,
        lr_begin: float,
        lr_end: float,
        scratch: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")],
    ) -> tuple[int, int, float, float, float]:
        """
        Trains on sentences, or evaluates those held out: raw and trained tokens, pairs, loss, effective draws.
        """

    def draw(self, key: int, blocks: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """The draws of so many blocks."""

    def step(
        self,
        token: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        groups: Annotated[NDArray[numpy.int32], dict(shape=(None, 3), order="C", device="cpu", writable=False)],
        draws: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        key: int,
        lr: float,
    ) -> tuple[int, int, float, float, float]:
        """
        One step on a block with the given draws; sums as of `run`. A row of groups: tokens, places, lead.
        """

LONGEST_WORD: int = 65535

def invalid_utf8(
    text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> int:
    """
    The position of the first byte that is not valid UTF-8, or is NUL; -1: none.
    """

def last_break(
    text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
    classes: Annotated[NDArray[numpy.uint32], dict(shape=(1114112), order="C", device="cpu", writable=False)] | None,
) -> int:
    """The position behind the last character that is in no word, or 0."""

class Counter:
    """Finds, interns and counts words; one thread at a time."""

    def __init__(
        self,
        classes: Annotated[NDArray[numpy.uint32], dict(shape=(1114112), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> None: ...
    def feed(
        self,
        text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        ends: bool,
        inside: bool,
    ) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """The ids of the words of valid UTF-8, -1 for each newline."""

    def feed_tokens(
        self,
        data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        words: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        sentences: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """The ids of words that are given by offsets, -1 behind each sentence."""

    def restrict(
        self,
        data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        words: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None:
        """Gives these words ids in their order, and no other word any."""

    def merge(self, other: Counter) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """Adds another counter's words; the ids here of its ids."""

    def prune(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """
        Forgets at least half of the words, the rarest; the new ids of the old ones.
        """

    def words(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.uint8]]:
        """
        Counts, offsets into the bytes (one more), and the bytes of all words, in the order of their ids.
        """

    def __len__(self) -> int: ...
    @property
    def memory(self) -> int:
        """Bytes, the next growth of the table included."""

    @property
    def tokens(self) -> int: ...
    @property
    def too_long(self) -> int: ...
    @property
    def pruned_words(self) -> int: ...
    @property
    def pruned_tokens(self) -> int: ...

class Encoder:
    """
    Turns a counter's ids into ids of the vocabulary, and sentences into blocks.
    """

    def __init__(self, max_sentence: int, block: int) -> None: ...
    def feed(
        self,
        ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        mapping: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """The ids of whole sentences, each ended by -1."""

    @property
    def sentences(self) -> int: ...
    @property
    def split(self) -> int: ...
    @property
    def blocks(self) -> list[int]: ...
