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
        mass: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")] | None = None,
        near_words: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)]
        | None = None,
        near_cumulative: Annotated[
            NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ]
        | None = None,
        near_probability: Annotated[
            NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
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

HIDDEN_TILE: int = 48

class CooccurrenceCounter:
    """Expected co-occurrence counts of sentences."""

    def __init__(
        self,
        ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        keep: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        window: int,
        heldout_key: int,
        heldout: float,
    ) -> None: ...
    def find(self, begin: int, end: int) -> None:
        """Finds the places of the words: 8 bytes each."""

    def rows(
        self, begin: int, end: int, heldout: bool, least: float
    ) -> tuple[NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float32], float]:
        """
        Sizes, columns and values of rows, up to the diagonal; and the sum of what was less than `least`.
        """

def mirror(
    offsets: NDArray[numpy.int64], columns: NDArray[numpy.int32], values: NDArray[numpy.float32]
) -> tuple[NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float32]]:
    """
    The whole of a symmetric matrix, from its part on and under the diagonal.
    """

class DenseKernel:
    """Scores hidden vectors against every row of a table."""

    def __init__(
        self,
        isa: str,
        output: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        dim: int,
        bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")] | None = None,
        noise: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None = None,
    ) -> None: ...
    def pack(
        self,
        hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        packed: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """Brings hidden vectors into the order in which they are scored."""

    def forward(
        self,
        begin: int,
        end: int,
        hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        packed: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        peaks: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        totals: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
    ) -> None:
        """
        Adds rows to the running maximum of scores and the sum of exp(score - maximum).
        """

    def backward(
        self,
        begin: int,
        end: int,
        hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        packed: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        lse: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")] | None,
        starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        scale: float,
        d_hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        d_rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        d_bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")] | None,
    ) -> float:
        """
        Adds the gradients of rows; returns their loss, for a softmax without weight * lse.
        """

    def adam(
        self,
        x: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu")],
        g: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu")],
        m: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu")],
        s: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu")],
        rate: float,
        root: float,
        beta1: float,
        beta2: float,
        epsilon: float,
    ) -> None:
        """A step of Adam; sets the gradient to 0."""
