"""Recurrent networks that are written out, held against PyTorch's and against finite differences."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'skipgrad[torch]'")

import skipgrad as sg  # noqa: E402

CELLS = ("rnn", "gru", "lstm")
every_cell = pytest.mark.parametrize("cell", CELLS)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)


def start(plain: Any, batch: int) -> Any:
    """A state that is not zero."""
    parts = [torch.randn(plain.layers, batch, plain.hidden, dtype=torch.float64) for _ in range(2)]
    return tuple(parts) if plain.cell == "lstm" else parts[0]


def flat(state: Any) -> Any:
    return torch.stack(state) if isinstance(state, tuple) else state


@every_cell
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("given", [False, True])
def test_it_is_pytorchs(cell: Any, layers: int, given: bool) -> None:
    """Hidden vectors, state and all gradients, through twelve steps of time."""
    plain = sg.torch.Recurrence(5, 7, layers, cell).double()
    twin = getattr(torch.nn, cell.upper())(5, 7, layers).double()
    twin.load_state_dict(plain.state_dict())
    x = torch.randn(12, 4, 5, dtype=torch.float64, requires_grad=True)
    state = start(plain, 4) if given else None
    answers = []
    for network in (plain, twin):
        hidden, end = network(x, state)
        loss = (hidden * torch.linspace(-1, 1, 7)).sum() + flat(end).square().sum()
        answers.append([hidden, flat(end), *torch.autograd.grad(loss, [x, *network.parameters()])])
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@every_cell
def test_gradients_through_time_are_slopes(cell: Any) -> None:
    plain = sg.torch.Recurrence(2, 3, cell=cell).double()
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in plain.named_parameters()]

    def run(x: Any, *tables: Any) -> Any:
        return torch.func.functional_call(plain, dict(zip(names, tables, strict=True)), (x,))[0]

    assert torch.autograd.gradcheck(run, (x, *(p.detach().requires_grad_() for p in plain.parameters())))


@every_cell
def test_the_state_carries_a_text_on(cell: Any) -> None:
    """Two halves, one after the other, are the whole; and a detached state cuts the gradient."""
    plain = sg.torch.Recurrence(5, 7, 2, cell).double()
    x = torch.randn(10, 3, 5, dtype=torch.float64, requires_grad=True)
    whole, end = plain(x)
    first, state = plain(x[:6])
    second, last = plain(x[6:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(flat(last), flat(end))
    cut = tuple(part.detach() for part in state) if cell == "lstm" else state.detach()
    (gradient,) = torch.autograd.grad(plain(x[6:], cut)[0].sum(), x)
    assert not gradient[:6].any()
    assert gradient[6:].any()


@every_cell
def test_the_fast_twin_shares_its_parameters(cell: Any) -> None:
    plain = sg.torch.Recurrence(5, 7, 2, cell)
    twin = plain.fast()
    assert [id(p) for p in twin.parameters()] == [id(p) for p in plain.parameters()]
    x = torch.randn(6, 3, 5)
    with torch.no_grad():
        plain.weight_hh_l1 += 0.5
    torch.testing.assert_close(twin(x)[0], plain(x)[0])


@every_cell
def test_with_a_head_it_learns_a_text(cell: Any) -> None:
    """The text repeats every six words, two of which are the same: what follows them is known from what was before."""
    plain = sg.torch.Recurrence(8, 16, cell=cell)
    embedding, head = torch.nn.Embedding(5, 8), sg.torch.ExactSoftmax(16, 5)
    parts = torch.nn.ModuleList([plain, embedding, head])
    optimiser = torch.optim.Adam(parts.parameters(), lr=0.03)
    text = torch.tensor([0, 1, 2, 0, 3, 4] * 5)[:, None]
    for _ in range(80):
        optimiser.zero_grad()
        loss = head(plain(embedding(text[:-1]))[0], text[1:])
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: sg.torch.Recurrence(5, 7, cell="elman"), "cell is 'elman'"),
        (lambda: sg.torch.Recurrence(5, 0), "hidden 0"),
        (lambda: sg.torch.Recurrence(5, 7)(torch.zeros(3, 5)), r"must be \(time, batch, 5\)"),
        (lambda: sg.torch.Recurrence(5, 7, cell="gru")(torch.zeros(3, 2, 5), torch.zeros(2, 7)), "state is"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
