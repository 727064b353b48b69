"""The contract of every head as a PyTorch module: held against its float64 definition, and against what PyTorch does.

A head passes all of this by being in SAMPLES.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import skipgrad as sg
from skipgrad.heads import HEADS, Adaptive, Hierarchical, Importance, Nce, Negative, Sampled, Softmax

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'skipgrad[torch]'")

from torch.nn import functional  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

Doubles = npt.NDArray[np.float64]

SAMPLES: dict[str, Any] = {
    "negative": Negative(3, shared=16),
    "negative, usual": Negative(),
    "nce": Nce(3, shared=8),
    "nce, log Z": Nce(2, exponent=0.75, log_z=1.5, shared=24),
    "importance": Importance(samples=24, proposal="unigram"),
    "importance, exact": Importance(samples=16, exact=8, proposal="uniform"),
    "sampled": Sampled(samples=24),
    "sampled, drawn": Sampled(samples=16, target="drawn", proposal="log-uniform"),
    "hierarchical": Hierarchical(),
    "softmax": Softmax(),
    "adaptive": Adaptive(cutoffs=(3, 5)),
    "adaptive, cheapest": Adaptive(),
}
WORDS, DIM = 12, 5
GUIDE = Path(__file__).parents[1] / "docs" / "guide" / "torch.md"
every_head = pytest.mark.parametrize("head", SAMPLES.values(), ids=SAMPLES.keys())
every_shape = pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (2, 1, 4)], ids=str)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are worked on 5 words, or a prediction, at a time."""
    from skipgrad.torch import dense
    from skipgrad.torch import head as base

    monkeypatch.setattr(base, "BLOCK", 1)
    monkeypatch.setattr(dense, "BLOCK", 1)
    monkeypatch.setattr(
        dense, "_ranges", lambda hidden, weight: [(a, min(a + 5, len(weight))) for a in range(0, len(weight), 5)]
    )


def zipf(words: int) -> npt.NDArray[np.int64]:
    return (1e6 / np.arange(1, words + 1)).astype(np.int64) + 1


def module(head: Any, words: int = WORDS, **options: Any) -> Any:
    made = sg.torch.Head.of(DIM, zipf(words), head, **({"dtype": torch.float64} | options))
    with torch.no_grad():
        for table in made.parameters():
            table += torch.randn_like(table)
    return made


def batch(shape: tuple[int, ...], words: int = WORDS, dtype: Any = None) -> tuple[Any, Any]:
    hidden = torch.randn(*shape, DIM, dtype=dtype or torch.float64).requires_grad_()
    return hidden, torch.randint(words, shape)


def tables(made: Any) -> tuple[Doubles, Doubles | None]:
    """All rows that the definition scores, and their bias."""
    parts = [made.weight, made.clusters] if hasattr(made, "clusters") else [made.weight]
    offsets = [made.bias, made.cluster_bias] if hasattr(made, "clusters") else [made.bias]
    bias = None if made.bias is None else torch.cat(offsets).detach().numpy()
    return torch.cat(parts).detach().numpy(), bias


def by_definition(made: Any, head: Any, hidden: Any, target: Any, draws: Any) -> tuple[Doubles, ...]:
    """Losses, and the gradients of their sum: d hidden, d rows, d bias."""
    definition = head.define(zipf(made.words))
    rows, bias = tables(made)
    offsets = np.zeros(len(rows)) if bias is None else bias
    drawn, losses = draws.numpy(), []
    d_hidden, d_rows, d_bias = [], np.zeros_like(rows), np.zeros(len(rows))
    for h, o in zip(hidden.detach().reshape(-1, DIM).numpy(), target.reshape(-1).numpy(), strict=True):
        outputs = np.array([o])
        own = definition.own(outputs)
        scores = rows @ h + offsets
        answer = definition.answer(outputs, np.ones(1), drawn, scores[own], scores[drawn])
        ids, r = np.concatenate([own, drawn]), np.concatenate([answer.own, answer.drawn])
        losses.append(answer.loss)
        d_hidden.append(r @ rows[ids])
        np.add.at(d_rows, ids, np.outer(r, h))
        np.add.at(d_bias, ids, r)
    return np.array(losses), np.array(d_hidden), d_rows, d_bias


def gradients(made: Any) -> tuple[Doubles, Doubles]:
    """Of all rows, and of their bias."""

    def dense(name: str) -> list[Any]:
        table = getattr(made, name, None)
        if table is None:
            return []
        gradient = torch.zeros_like(table) if table.grad is None else table.grad
        return [gradient.to_dense()]

    bias = dense("bias") + dense("cluster_bias")
    rows = torch.cat(dense("weight") + dense("clusters"))
    return rows.numpy(), torch.cat(bias).numpy() if bias else np.zeros(len(rows))


def test_every_head_is_tested() -> None:
    assert {head.name for head in SAMPLES.values()} == set(HEADS) == set(sg.torch.HEADS)


@every_head
@every_shape
@pytest.mark.parametrize("sparse", [False, True])
def test_loss_and_gradients_are_those_of_the_definition(head: Any, shape: tuple[int, ...], sparse: bool) -> None:
    if sparse and head.name == "softmax":
        pytest.skip("it refuses: all rows are candidates")
    made = module(head, sparse=sparse, reduction="none")
    hidden, target = batch(shape)
    draws = made.draw()
    loss = made(hidden, target, draws)
    assert loss.shape == shape
    loss.sum().backward()
    losses, d_hidden, d_rows, d_bias = by_definition(made, head, hidden, target, draws)
    np.testing.assert_allclose(loss.detach().numpy().reshape(-1), losses, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(hidden.grad.numpy().reshape(-1, DIM), d_hidden, rtol=1e-8, atol=1e-9)
    rows, bias = gradients(made)
    np.testing.assert_allclose(rows, d_rows, rtol=1e-8, atol=1e-9)
    if made.bias is not None:
        np.testing.assert_allclose(bias, d_bias, rtol=1e-8, atol=1e-9)


@every_head
@pytest.mark.usefixtures("small_blocks")
def test_gradients_are_the_slopes_of_the_loss(head: Any) -> None:
    made = module(head, bias=True, label_smoothing=0.2 if head.name == "softmax" else 0.0)
    hidden, target = batch((4,))
    target[1] = -100
    draws, named = made.draw(), dict(made.named_parameters())

    def loss(hidden: Any, *parameters: Any) -> Any:
        given = dict(zip(named, parameters, strict=True))
        return torch.func.functional_call(made, given, (hidden, target, draws))

    assert torch.autograd.gradcheck(loss, (hidden, *(p.detach().requires_grad_() for p in named.values())))


@every_head
@every_shape
@pytest.mark.usefixtures("small_blocks")
def test_probabilities_sum_to_one_and_are_those_of_the_definition(head: Any, shape: tuple[int, ...]) -> None:
    made = module(head, reduction="none")
    hidden, target = batch(shape)
    if head.name == "negative":
        with pytest.raises(ValueError, match="learns no probabilities"):
            made.log_prob(hidden)
        rows, _ = tables(made)
        share = np.log(head.define(zipf(WORDS)).q)
        log_p = torch.log_softmax(hidden @ torch.tensor(rows.T) + torch.tensor(share), -1)
    else:
        log_p = made.log_prob(hidden)
        assert log_p.shape == (*shape, WORDS)
        rows, bias = tables(made)
        definition = (
            head.define(zipf(WORDS)) if head.name in ("hierarchical", "adaptive") else Softmax().define(zipf(WORDS))
        )
        for h, p in zip(
            hidden.detach().reshape(-1, DIM).numpy(), log_p.detach().reshape(-1, WORDS).numpy(), strict=True
        ):
            scores = rows @ h + (0 if bias is None else bias)
            np.testing.assert_allclose(p, definition.log_probabilities(scores), atol=1e-9)
    torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(shape, dtype=torch.float64))
    exact = made.exact_loss(hidden, target)
    assert not exact.requires_grad
    torch.testing.assert_close(exact, -log_p.detach().gather(-1, target[..., None])[..., 0], atol=1e-8, rtol=1e-8)
    top = made.topk(hidden, 4)
    expected = log_p.detach().topk(4)
    torch.testing.assert_close(top.log_prob, expected.values, atol=1e-8, rtol=1e-8)
    assert torch.equal(top.ids, expected.indices)


@every_head
def test_where_a_head_is_exact_its_loss_is_the_exact_one(head: Any) -> None:
    made = module(head, 300)
    hidden, target = batch((6,), 300)
    near = torch.isclose(made(hidden, target), made.exact_loss(hidden, target), rtol=1e-9)
    assert bool(near) == (head.name in ("softmax", "hierarchical", "adaptive"))


@every_head
def test_targets_that_are_ignored_and_reductions(head: Any) -> None:
    each, total, mean = (module(head, reduction=r, ignore_index=-1) for r in ("none", "sum", "mean"))
    for other in (total, mean):
        other.load_state_dict(each.state_dict())
    hidden, target = batch((3, 4))
    target[0, 1] = target[2] = -1
    draws = each.draw()
    losses = each(hidden, target, draws)
    kept = each(hidden[target >= 0], target[target >= 0], draws)
    assert not losses[target < 0].any()
    torch.testing.assert_close(losses[target >= 0], kept)
    torch.testing.assert_close(total(hidden, target, draws), kept.sum())
    torch.testing.assert_close(mean(hidden, target, draws), kept.mean())
    torch.testing.assert_close(
        mean.exact_loss(hidden, target), each.exact_loss(hidden, target).sum() / (target >= 0).sum()
    )
    mean(hidden, target, draws).backward()
    assert not hidden.grad[target < 0].any()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_exact_softmax_is_pytorchs_cross_entropy(smoothing: float) -> None:
    made = module(Softmax(), label_smoothing=smoothing)
    hidden, target = batch((3, 4))
    target[0, 1] = -100
    found = torch.autograd.grad(made(hidden, target), [hidden, made.weight, made.bias])
    scores = functional.linear(hidden, made.weight, made.bias).flatten(0, 1)
    loss = functional.cross_entropy(scores, target.flatten(), label_smoothing=smoothing)
    torch.testing.assert_close(made(hidden, target), loss)
    for one, other in zip(found, torch.autograd.grad(loss, [hidden, made.weight, made.bias]), strict=True):
        torch.testing.assert_close(one, other)


class Largest(TorchDispatchMode):
    """The numbers in the largest tensor that any operation makes."""

    numbers = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = operation(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(tensor, torch.Tensor) and not tensor.is_sparse:
                self.numbers = max(self.numbers, tensor.numel())
        return made


@every_head
def test_memory_does_not_grow_with_predictions_times_words(head: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from skipgrad.torch import dense
    from skipgrad.torch import head as base

    words, number, block = 4000, 2000, 1 << 16
    monkeypatch.setattr(base, "BLOCK", block)
    monkeypatch.setattr(dense, "BLOCK", block)
    made = module(head, words, dtype=torch.float32)
    hidden, target = batch((number,), words, torch.float32)
    with Largest() as largest:
        made(hidden, target).backward()
        made.exact_loss(hidden, target)
        made.topk(hidden, 3)
        made.sample(hidden)
    assert largest.numbers <= max(2 * block, number * 256)  # 256: the draws, and the least block of words


def test_pytorchs_fused_cross_entropy_is_the_same() -> None:
    if not hasattr(torch.nn, "LinearCrossEntropyOptions"):
        pytest.skip("this PyTorch has no chunked linear_cross_entropy")
    from skipgrad.torch import dense

    made = module(Softmax())
    hidden, target = batch((9,))
    expected = dense.cross_entropy(hidden, target, made.weight, made.bias)
    torch.testing.assert_close(dense.fused(hidden, target, made.weight, made.bias), expected)


@every_head
def test_a_sparse_gradient_has_the_rows_that_are_scored(head: Any) -> None:
    if head.name == "softmax":
        with pytest.raises(ValueError, match="sparse is True"):
            module(head, sparse=True)
        return
    words = 500
    made = module(head, words, sparse=True)
    hidden, target = batch((3,), 4)
    draws = made.draw()
    before = copy.deepcopy(made.state_dict())
    shared = [made.weight] if made.bias is None else [made.weight, made.bias]
    optimiser = torch.optim.SparseAdam(shared, lr=0.1)
    made(hidden, target, draws).backward()
    optimiser.step()
    scored = {*head.define(zipf(words)).own(target.numpy()).tolist(), *draws.tolist()}
    for name in ("weight", "bias")[: len(shared)]:
        assert getattr(made, name).grad.is_sparse
        change = (made.state_dict()[name] != before[name]).reshape(words, -1).any(1)
        assert set(change.nonzero()[:, 0].tolist()) <= scored
        assert change[target].any() or head.name == "hierarchical"
    assert len(scored) < words / 2 + 200


@every_head
def test_a_weight_that_is_given_is_shared(head: Any) -> None:
    embedding = torch.nn.Embedding(WORDS, DIM, sparse=head.name != "softmax")
    made = module(head, weight=embedding.weight, sparse=head.name != "softmax", dtype=None)
    assert made.weight is embedding.weight
    inputs = torch.arange(6)
    made(embedding(inputs), inputs).backward()
    assert embedding.weight.grad.to_dense().any()
    assert len(list(torch.nn.ModuleList([embedding, made]).parameters())) == len(list(made.parameters()))


@every_head
def test_bfloat16(head: Any) -> None:
    made = module(head, dtype=torch.float32)
    short = copy.deepcopy(made).to(torch.bfloat16)
    hidden, target = batch((4, 3), dtype=torch.bfloat16)
    draws = made.draw()
    loss = short(hidden, target, draws)
    loss.backward()
    assert loss.dtype == torch.float32
    assert hidden.grad.dtype == short.weight.grad.dtype == torch.bfloat16
    made.load_state_dict(short.state_dict())
    assert loss.item() == pytest.approx(made(hidden.float(), target, draws).item(), rel=2e-2)
    assert short.exact_loss(hidden, target).item() == pytest.approx(
        made.exact_loss(hidden.float(), target).item(), rel=2e-2
    )


@every_head
@pytest.mark.usefixtures("small_blocks")
def test_autocast(head: Any) -> None:
    made = module(head, dtype=torch.float32)
    hidden, target = batch((4, 3), dtype=torch.float32)
    draws = made.draw()
    with torch.autocast("cpu", torch.bfloat16):
        loss = made(hidden, target, draws)
        shorter = made(hidden.bfloat16(), target, draws)
        exact = made.exact_loss(hidden, target)
    (loss + shorter).backward()
    assert loss.dtype == hidden.grad.dtype == made.weight.grad.dtype == torch.float32
    assert loss.item() == pytest.approx(made(hidden, target, draws).item(), rel=3e-2)
    assert exact.item() == pytest.approx(made.exact_loss(hidden, target).item(), rel=3e-2)


@every_head
def test_no_predictions_at_all(head: Any) -> None:
    made = module(head, reduction="none")
    hidden, target = batch((2, 0))
    assert made(hidden, target).shape == made.exact_loss(hidden, target).shape == made.sample(hidden).shape == (2, 0)
    assert made.topk(hidden, 3).ids.shape == (2, 0, 3)


@every_head
def test_a_state_dict_goes_around(head: Any, tmp_path: Any) -> None:
    made, other = module(head), module(head)
    torch.save(made.state_dict(), tmp_path / "head.pt")
    other.load_state_dict(torch.load(tmp_path / "head.pt", weights_only=True))
    hidden, target = batch((5,))
    draws = made.draw()
    assert torch.equal(made(hidden, target, draws), other(hidden, target, draws))
    assert set(made.state_dict()) <= {"weight", "bias", "clusters", "cluster_bias", "log_z"}


@every_head
def test_compiled_without_a_break(head: Any) -> None:
    """The graph is whole, also backward; which code is made of it is the compiler's affair."""
    if head.name in ("adaptive", "hierarchical"):
        pytest.skip("how many rows are scored depends on the targets")
    made = module(head)
    compiled = torch.compile(made, fullgraph=True, backend="aot_eager")
    hidden, target = batch((4, 3))
    draws = made.draw()
    expected = torch.autograd.grad(made(hidden, target, draws), [hidden, made.weight])
    loss = compiled(hidden, target, draws)
    for one, other in zip(torch.autograd.grad(loss, [hidden, made.weight]), expected, strict=True):
        torch.testing.assert_close(one, other)
    assert compiled(hidden, target).isfinite()
    torch.compiler.reset()


@every_head
def test_seeds_repeat(head: Any) -> None:
    made = module(head, words=300)
    hidden, target = batch((5,), 300)

    def twice(run: Any) -> tuple[Any, Any]:
        torch.manual_seed(5)
        first, other = run(None), run(None)
        torch.manual_seed(5)
        assert torch.equal(first, run(None))
        assert torch.equal(run(torch.Generator().manual_seed(3)), run(torch.Generator().manual_seed(3)))
        return first, other

    first, other = twice(lambda generator: made(hidden, target, generator=generator))
    assert torch.equal(first, other) == (head.name in ("softmax", "hierarchical", "adaptive"))
    first, other = twice(lambda generator: made.sample(hidden.expand(20, 5, DIM), generator=generator))
    assert not torch.equal(first, other)


@pytest.mark.parametrize("words", [10, 1000])
@pytest.mark.parametrize("name", [name for name, head in SAMPLES.items() if head.draws(6)])
def test_draws_follow_their_distribution(name: str, words: int) -> None:
    """Chi-square at the level 1e-4, which stratified draws meet more easily than independent ones would."""
    head = SAMPLES[name]
    made, exact = module(head, words), getattr(head, "exact", 0)
    drawn = np.bincount(torch.cat([made.draw()[exact:] for _ in range(2000)]).numpy(), minlength=words)
    expected = head.define(zipf(words)).q * drawn.sum()
    assert not drawn[expected == 0].any()
    assert stats.chisquare(drawn[expected > 0], expected[expected > 0]).pvalue > 1e-4
    log_q = made.log_q(torch.arange(words), torch.float64).numpy()
    np.testing.assert_allclose(log_q[exact:], np.log(head.define(zipf(words)).q[exact:]), atol=1e-9)


@every_head
@pytest.mark.usefixtures("small_blocks")
def test_samples_follow_the_probabilities(head: Any) -> None:
    made = module(head)
    hidden = torch.randn(DIM, dtype=torch.float64)
    top = made.topk(hidden, WORDS)
    p = torch.empty(WORDS, dtype=torch.float64).scatter_(0, top.ids, top.log_prob.exp()).numpy()
    many = hidden.expand(3000, DIM)

    def drawn(**options: Any) -> npt.NDArray[np.int64]:
        return np.bincount(made.sample(many, **options).numpy(), minlength=WORDS)

    for temperature in (1.0, 2.0):
        expected = p ** (1 / temperature) / (p ** (1 / temperature)).sum() * len(many)
        rare = expected < 5
        pooled = [np.append(x[~rare], x[rare].sum()) for x in (drawn(temperature=temperature), expected)]
        usable = pooled[1] > 0
        assert stats.chisquare(pooled[0][usable], pooled[1][usable]).pvalue > 1e-4
    assert set(drawn(top_k=3, temperature=5.0).nonzero()[0]) <= set(top.ids[:3].tolist())
    nucleus = int((top.log_prob.exp().cumsum(0) < 0.6).sum()) + 1
    assert set(drawn(top_p=0.6).nonzero()[0]) <= set(top.ids[:nucleus].tolist())
    assert drawn(temperature=0)[top.ids[0]] == len(many)
    assert made.sample(hidden).shape == ()


@pytest.mark.parametrize(
    "head",
    [
        Importance(samples=8192, proposal="unigram"),
        Importance(samples=4096, exact=8, proposal="unigram"),
        Sampled(samples=8192),
        Sampled(samples=8192, target="drawn"),
        Nce(64, shared=1024),
        Negative(64, shared=1024),
    ],
)
def test_with_many_draws_it_meets_the_exact_gradient(head: Any) -> None:
    """Of the softmax; of the noise heads, as the tests of the definitions have it, the mean over draws."""
    made = module(head)
    hidden, target = batch((6,))
    (found,) = torch.autograd.grad(made(hidden, target), hidden)
    if head.name in ("nce", "negative"):
        definition = head.define(zipf(WORDS))
        rows, bias = tables(made)
        scores = hidden.detach().numpy() @ rows.T + (0 if bias is None else bias)
        r = [definition.expected(np.array([o]), np.ones(1), s)[1] for o, s in zip(target.numpy(), scores, strict=True)]
        expected = torch.tensor(np.array(r) @ rows / 6)
    else:
        exact = sg.torch.ExactSoftmax(DIM, zipf(WORDS), weight=made.weight, bias=made.bias)
        (expected,) = torch.autograd.grad(exact(hidden, target), hidden)
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0.02)


@every_head
def test_a_model_trained_with_one_head_is_evaluated_with_another(head: Any) -> None:
    """What the hidden vector says about the target is learned: the exact loss falls, on shared weights for all."""
    if head.name == "importance":  # with few draws of the unigram its scores grow without bound, as its page says
        head = replace(head, samples=512)
    words, torch_head = 40, module(head, 40, dtype=torch.float32)
    embedding = torch.nn.Embedding(words, DIM)
    optimiser = torch.optim.Adam([*embedding.parameters(), *torch_head.parameters()], lr=0.03)
    shared = None
    if head.name not in ("hierarchical", "adaptive", "negative"):  # whose rows or scores mean something else
        shared = sg.torch.ExactSoftmax(DIM, zipf(words), weight=torch_head.weight, bias=torch_head.bias)
    losses = []
    for step in range(400):
        inputs = torch.randint(words, (64,))
        target = (inputs * 7 + torch.randint(3, (64,))) % words
        if step % 399 == 0:
            losses.append(torch_head.exact_loss(embedding(inputs), target).item())
            if shared is not None:
                assert shared.exact_loss(embedding(inputs), target).item() == pytest.approx(losses[-1], rel=1e-4)
        optimiser.zero_grad()
        torch_head(embedding(inputs), target).backward()
        optimiser.step()
    assert losses[-1] < min(losses[0] - 0.8, 2.6)  # the entropy is log 3 = 1.1; that of all words log 40 = 3.7


def test_a_learned_log_z() -> None:
    made = sg.torch.NoiseContrastive(DIM, zipf(WORDS), log_z=1.5, learn_log_z=True, bias=False)
    fixed = sg.torch.NoiseContrastive(DIM, zipf(WORDS), log_z=1.5, weight=made.weight, bias=False)
    hidden, target = batch((6,), dtype=torch.float32)
    draws = made.draw()
    loss = made(hidden, target, draws)
    torch.testing.assert_close(loss, fixed(hidden, target, draws))
    loss.backward()
    assert made.log_z.grad.item() != 0
    assert "log_z" in made.state_dict()
    assert "log_z" not in fixed.state_dict()


@every_head
@pytest.mark.parametrize("words", [1, 2, 300_000])
def test_small_and_large_vocabularies(head: Any, words: int) -> None:
    if getattr(head, "exact", 0) >= words or (head.name == "adaptive" and words < 6):
        pytest.skip("its options are for more words")
    made = sg.torch.Head.of(2, zipf(words), head)
    hidden, target = torch.randn(3, 2), torch.randint(words, (3,))
    assert made(hidden, target).isfinite()
    assert made.exact_loss(hidden, target).isfinite()
    assert made.topk(hidden, 1).ids.max() < words


@every_head
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_show_in_the_loss(head: Any, bad: float) -> None:
    made = module(head)
    hidden, target = batch((3,))
    with torch.no_grad():
        hidden[0] = bad
    assert not made(hidden, target).isfinite()


def test_counts_are_given_in_any_form() -> None:
    counts = np.array([7, 2, 1])
    vocab = sg.Vocab.from_counts({"a": 7, "b": 2, "c": 1})
    forms = [counts, counts.tolist(), torch.tensor(counts), vocab]
    made = [sg.torch.ImportanceSoftmax(DIM, form, samples=64) for form in forms]
    made.append(sg.torch.ImportanceSoftmax(DIM, 3, proposal=counts, samples=64))
    assert all(torch.equal(one.cumulative, made[0].cumulative) for one in made)
    assert all(torch.equal(one.bias, made[0].bias) for one in made)
    log_q = sg.torch.SampledSoftmax(DIM, 4).log_q(torch.arange(4), torch.float64)
    torch.testing.assert_close(log_q.exp(), torch.full((4,), 0.25, dtype=torch.float64))


def test_zero_counts_stay_finite() -> None:
    for head in SAMPLES.values():
        made = sg.torch.Head.of(DIM, [9] * 9 + [0] * 3, head)
        assert made(torch.randn(12, DIM), torch.arange(12)).isfinite(), made


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: sg.torch.SampledSoftmax(DIM, 9, samples=12), ValueError, "samples is 12"),
        (lambda: sg.torch.SampledSoftmax(DIM, 9, Negative()), TypeError, "takes either a skipgrad.heads.Sampled"),
        (lambda: sg.torch.SampledSoftmax(DIM, 9, Sampled(), samples=8), TypeError, "or its options as keywords"),
        (lambda: sg.torch.Head.of(DIM, 99, Importance()), ValueError, "proposal is bigram"),
        (lambda: sg.torch.ImportanceSoftmax(DIM, 99, effective=8.0), ValueError, "effective"),
        (lambda: sg.torch.ImportanceSoftmax(DIM, 5, proposal=[1, 2]), ValueError, "one for each word"),
        (lambda: sg.torch.NegativeSampling(DIM, 9, way="counts"), ValueError, "way='counts'"),
        (lambda: sg.torch.SampledSoftmax(DIM, 9, label_smoothing=0.1), ValueError, "does not score all words"),
        (lambda: sg.torch.ExactSoftmax(DIM, 9, label_smoothing=1.0), ValueError, "label_smoothing is 1.0"),
        (lambda: sg.torch.ExactSoftmax(DIM, 9, reduction="max"), ValueError, "reduction is 'max'"),
        (lambda: sg.torch.ExactSoftmax(DIM, 9, weight=torch.zeros(9, 4)), ValueError, r"weight is \(9, 4\)"),
        (lambda: sg.torch.ExactSoftmax(DIM, 9, bias=torch.zeros(8)), ValueError, r"bias is \(8,\)"),
        (lambda: sg.torch.ExactSoftmax(DIM, [0.5, 0.5]), ValueError, "whole numbers"),
        (lambda: sg.torch.AdaptiveSoftmax(DIM, [1, 5, 9]), ValueError, "falling counts"),
    ],
)
def test_options_out_of_range_are_refused(make: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        make()


@every_head
def test_what_does_not_fit_is_refused(head: Any) -> None:
    made = module(head)
    hidden, target = batch((2, 3))
    for call, sentence in (
        (lambda: made(hidden[..., :2], target), "last dimension must be 5"),
        (lambda: made(hidden, target[0]), r"must be \(2, 3\)"),
        (lambda: made(hidden, target.double()), "of torch.int64"),
        (lambda: made(hidden, target + 50), "ids are from 0 to 11"),
        (lambda: made(hidden, target - 50), "ids are from 0 to 11"),
        (lambda: made.topk(hidden, 13), "k is 13"),
        (lambda: made.sample(hidden, temperature=-1.0), "temperature is -1"),
        (lambda: made.sample(hidden, top_p=0.0), "top_p 0.0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()


def test_the_python_of_the_guide_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    exec(example, {})


def test_the_table_of_the_guide_is_that_of_the_record() -> None:
    from benchmarks.settings import RESULTS
    from benchmarks.torch_heads import HEADS as MEASURED
    from benchmarks.torch_heads import table

    record = json.loads((RESULTS / "torch" / "heads.json").read_text())
    assert set(record["heads"]) == set(MEASURED)
    assert table(record["heads"]) in GUIDE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_example_learns() -> None:
    example = Path(__file__).parents[1] / "examples" / "torch_items.py"
    told = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True).stdout
    found, popular = (int(share) for share in re.findall(r"in (\d+)%", told))
    assert found > 40 > 10 * popular
