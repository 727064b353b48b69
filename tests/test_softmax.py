"""The heads that score all words: their definitions against finite differences, every native kernel against these."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from skipgrad import _native
from skipgrad.counts import Matrix
from skipgrad.dense import nats
from skipgrad.heads import softmax
from skipgrad.heads.softmax import Gradients, Softmax

ISAS = _native.instruction_sets()
TILE = _native.HIDDEN_TILE
every_isa = pytest.mark.parametrize("isa", ISAS)
both_heads = pytest.mark.parametrize("is_softmax", [True, False], ids=["softmax", "logistic"])
Floats = npt.NDArray[np.float32]


def aligned(*shape: int) -> Floats:
    memory = np.zeros(int(np.prod(shape)) + 16, np.float32)
    skip = -memory.ctypes.data % 64 // 4
    return memory[skip : skip + int(np.prod(shape))].reshape(shape)


class Setup:
    """Random hidden vectors, rows and pairs, as the kernel and as the definition take them."""

    def __init__(self, isa: str, words: int, dim: int, hidden: int, is_softmax: bool, spread: float = 1.0) -> None:
        random = np.random.default_rng(words + dim)
        self.words, self.dim, self.n, self.is_softmax = words, dim, hidden, is_softmax
        stride = -(-dim // 16) * 16
        self.rows, self.bias, self.noise = aligned(words, stride), aligned(words), aligned(words)
        self.rows[:, :dim] = random.normal(0, spread * dim**-0.5, (words, dim))
        self.bias[:] = random.normal(0, 1, words)
        self.noise[:] = random.random(words) / words
        self.full = -(-hidden // TILE) * TILE
        self.hidden, self.packed = aligned(self.full, stride), aligned(self.full * dim)
        self.hidden[:hidden, :dim] = random.normal(0, spread, (hidden, dim))
        self.pairs = random.poisson(0.2, (hidden, words)) * random.random((hidden, words))
        self.weight = aligned(self.full)
        self.weight[:hidden] = self.pairs.sum(axis=1)
        self.kernel = _native.DenseKernel(
            isa, self.rows, dim, self.bias if is_softmax else None, None if is_softmax else self.noise
        )
        self.kernel.pack(self.hidden, self.packed)
        places = [np.flatnonzero(row) for row in self.pairs]
        self.columns = np.concatenate([*places, np.zeros(0, np.int64)]).astype(np.int32)
        self.values = self.pairs[self.pairs > 0].astype(np.float32)
        self.ends = np.full(self.full, len(self.columns))
        self.ends[:hidden] = np.cumsum([len(place) for place in places])
        self.starts = np.concatenate([[0], self.ends[:-1]])

    def definition(self) -> Gradients:
        doubles = [array.astype(np.float64) for array in (self.hidden[: self.n, : self.dim], self.rows[:, : self.dim])]
        if self.is_softmax:
            return softmax.softmax(*doubles, self.bias.astype(np.float64), self.pairs)
        return softmax.logistic(*doubles, np.zeros(self.words), self.pairs, self.noise.astype(np.float64))

    def lse(self, cuts: list[int]) -> Floats:
        peaks, totals = aligned(self.full), aligned(self.full)
        peaks[:] = -1e30
        for begin, end in zip([0, *cuts], [*cuts, self.words], strict=True):
            self.kernel.forward(begin, end, self.hidden, self.packed, peaks, totals)
        peaks += np.log(totals)
        return peaks

    def backward(self, cuts: list[int], scale: float = 1.0) -> Gradients:
        """The kernel's gradients, over ranges of rows one after the other."""
        lse = self.lse(cuts) if self.is_softmax else None
        hidden, rows, bias = aligned(*self.hidden.shape), aligned(*self.rows.shape), np.zeros(self.words, np.float32)
        loss = 0.0 if lse is None else float((self.weight.astype(np.float64) * lse).sum())
        for begin, end in zip([0, *cuts], [*cuts, self.words], strict=True):
            into = aligned(end - begin, rows.shape[1])
            loss += self.kernel.backward(
                begin, end, self.hidden, self.packed, self.weight, lse, self.starts, self.ends, self.columns,
                self.values, scale, hidden, into, bias[begin:end] if self.is_softmax else None,
            )  # fmt: skip
            rows[begin:end] = into
        for table in (hidden, rows) if np.isfinite(loss) else ():  # NaN times the 0 of the padding is NaN
            assert not table[:, self.dim :].any(), "the padding of a row is 0 and stays 0"
        return Gradients(loss, hidden[: self.n, : self.dim], rows[:, : self.dim], bias)


def check(got: Gradients, expected: Gradients, is_softmax: bool, tolerance: float = 2e-5) -> None:
    assert got.loss == pytest.approx(expected.loss, rel=1e-5, abs=1e-4)
    for a, b in zip(got[1:] if is_softmax else got[1:3], expected[1:], strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=tolerance * (1 + np.abs(b).max()))


@every_isa
@both_heads
@pytest.mark.parametrize("dim", [2, 15, 16, 17, 100, 300])
@pytest.mark.parametrize(("words", "hidden"), [(1, 1), (2, 3), (37, 48), (500, 100)])
def test_the_kernel_is_the_definition(isa: str, is_softmax: bool, dim: int, words: int, hidden: int) -> None:
    setup = Setup(isa, words, dim, hidden, is_softmax)
    check(setup.backward([]), setup.definition(), is_softmax)


@every_isa
@both_heads
def test_rows_may_be_scored_in_ranges(isa: str, is_softmax: bool) -> None:
    setup = Setup(isa, 3000, 20, 50, is_softmax)
    for cuts in ([1], [7, 1000, 1032], [32, 64, 2999]):
        check(setup.backward(cuts), setup.definition(), is_softmax)


@every_isa
def test_gradients_are_scaled_and_the_loss_is_not(isa: str) -> None:
    setup = Setup(isa, 100, 20, 10, True)
    loss, *gradients = setup.definition()
    check(setup.backward([], scale=-0.5), Gradients(loss, *(-0.5 * g for g in gradients)), True)


@every_isa
def test_a_table_can_be_updated_in_place(isa: str) -> None:
    setup = Setup(isa, 100, 20, 10, True)
    expected = setup.definition()
    before, bias = setup.rows.astype(np.float64), setup.bias.astype(np.float64)
    lse, into = setup.lse([]), aligned(*setup.hidden.shape)
    setup.kernel.backward(
        0, 100, setup.hidden, setup.packed, setup.weight, lse, setup.starts, setup.ends, setup.columns, setup.values,
        -0.01, into, setup.rows, setup.bias,
    )  # fmt: skip
    np.testing.assert_allclose(setup.rows[:, :20], before[:, :20] - 0.01 * expected.rows, atol=1e-5)
    np.testing.assert_allclose(setup.bias, bias - 0.01 * expected.bias, atol=1e-5)
    np.testing.assert_allclose(into[:10, :20], -0.01 * expected.hidden, atol=1e-5)


@both_heads
def test_the_gradient_of_the_definition_is_the_slope_of_its_loss(is_softmax: bool) -> None:
    random = np.random.default_rng(3)
    given = [random.normal(0, 1, shape) for shape in ((4, 5), (7, 5), (7,))]
    pairs, noise = random.random((4, 7)), random.random(7)

    def define(arrays: list[Any]) -> Gradients:
        return softmax.softmax(*arrays, pairs) if is_softmax else softmax.logistic(*arrays, pairs, noise)

    for which, gradient in enumerate(define(given)[1:]):
        for place in np.ndindex(*gradient.shape):
            moved = [array.copy() for array in given]
            moved[which][place] += 1e-5
            up = define(moved).loss
            moved[which][place] -= 2e-5
            assert (up - define(moved).loss) / 2e-5 == pytest.approx(gradient[place], abs=1e-7)


@every_isa
@pytest.mark.parametrize("spread", [0.0, 8.0])
def test_scores_of_any_size(isa: str, spread: float) -> None:
    """Scores of 0 give log V; large ones, up to 200 here, neither overflow nor vanish."""
    setup = Setup(isa, 200, 30, 20, True, spread)
    check(setup.backward([50]), setup.definition(), True, 1e-4)


@every_isa
def test_probabilities_sum_to_one(isa: str) -> None:
    """So residuals sum to 0 for each hidden vector, and all the more over all of them."""
    setup = Setup(isa, 2000, 50, 60, True)
    assert abs(setup.backward([]).bias.sum()) < 1e-5 * setup.weight.sum()


@every_isa
def test_a_vocabulary_of_a_million(isa: str) -> None:
    setup = Setup(isa, 1, 2, 1, True)
    rows, bias = aligned(1_000_000, 16), aligned(1_000_000)
    setup.kernel = _native.DenseKernel(isa, rows, 2, bias, None)
    setup.words = 1_000_000
    assert setup.lse([])[0] == pytest.approx(np.log(1e6), rel=1e-6)


@every_isa
@both_heads
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_show_in_the_loss(isa: str, is_softmax: bool, bad: float) -> None:
    setup = Setup(isa, 50, 10, 5, is_softmax)
    setup.rows[17, 3] = bad
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(setup.backward([]).loss)


@every_isa
@pytest.mark.parametrize("n", [1, 100, 10_000])
def test_adam_is_its_definition(isa: str, n: int) -> None:
    random = np.random.default_rng(n)
    x, g, m, s = (random.normal(0, 1, n).astype(np.float32) for _ in range(4))
    s **= 2
    x64, g64, m64, s64 = (array.astype(np.float64) for array in (x, g, m, s))
    setup = Setup(isa, 2, 2, 1, True)
    setup.kernel.adam(x, g, m, s, 0.1, 1.5, 0.9, 0.99, 1e-8)
    m64, s64 = 0.9 * m64 + 0.1 * g64, 0.99 * s64 + 0.01 * g64**2
    np.testing.assert_allclose(m, m64, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(s, s64, rtol=1e-5)
    np.testing.assert_allclose(x, x64 - 0.1 * m64 / (1.5 * np.sqrt(s64) + 1e-8), rtol=1e-4, atol=1e-5)
    assert not g.any()


def test_the_judge_of_tables_is_the_definition() -> None:
    random = np.random.default_rng(0)
    tables = [random.normal(0, 1, (700, 5)) for _ in range(2)]
    bias, pairs = random.normal(0, 1, 700), random.poisson(0.01, (700, 700)).astype(np.float64)
    pairs += pairs.T
    rows, columns = np.nonzero(pairs)
    offsets = np.searchsorted(rows, np.arange(701))
    matrix = Matrix(offsets, columns.astype(np.int32), pairs[rows, columns].astype(np.float32))
    given = [array.astype(np.float32) for array in (*tables, bias)]
    expected = softmax.softmax(*tables, bias, pairs).loss / pairs.sum()
    assert nats(given[0], given[1], given[2], matrix, ISAS[-1], threads=2) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("options", "sentence"), [({"way": "guess"}, "way is 'guess'"), ({"warmup": -1}, "warmup")])
def test_options_out_of_range_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Softmax(**options)
