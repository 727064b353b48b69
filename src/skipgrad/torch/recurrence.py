"""Recurrent networks written out, a formula a step: nn.RNN, nn.GRU and nn.LSTM are their fast twins."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Cell = Literal["rnn", "gru", "lstm"]
State = tuple[Tensor, Tensor]
"""What goes from a word to the next: h and c, each (B, H); only an LSTM has a c."""


def rnn(x: Tensor, u: Tensor, state: State) -> State:
    """A step: h' = tanh(W x + U h), biases included in both. Elman 1990."""
    return torch.tanh(x + u), state[1]


def gru(x: Tensor, u: Tensor, state: State) -> State:
    """A step with gates: h' = (1 - z) tanh(W_n x + r (U_n h)) + z h, where r and z = sigmoid(W x + U h).

    Cho et al. 2014, arXiv:1406.1078.
    """
    (x_r, x_z, x_n), (u_r, u_z, u_n) = x.chunk(3, dim=1), u.chunk(3, dim=1)
    r, z = torch.sigmoid(x_r + u_r), torch.sigmoid(x_z + u_z)
    return (1 - z) * torch.tanh(x_n + r * u_n) + z * state[0], state[1]


def lstm(x: Tensor, u: Tensor, state: State) -> State:
    """A step with a memory: c' = f c + i g, h' = o tanh(c'), i, f, o = sigmoid(W x + U h), g = tanh(W_g x + U_g h).

    Hochreiter and Schmidhuber 1997; the forget gate f is of Gers et al. 2000.
    """
    i, f, g, o = (x + u).chunk(4, dim=1)
    c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


CELLS = {"rnn": (rnn, 1, nn.RNN), "gru": (gru, 3, nn.GRU), "lstm": (lstm, 4, nn.LSTM)}
"""For each cell its step, how many rows of W and U a unit has, and the fast twin."""


class Recurrence(nn.Module):
    """Layers of a cell over time: hidden vectors (T, B, H) of inputs (T, B, D), and the state behind the last.

    Parameters have the names and the shapes that they have in nn.RNN, nn.GRU and nn.LSTM, so that a state_dict goes
    from one to the other; `fast()` is that twin, on the same parameters. A state is given and returned as there:
    (layers, B, H), for an LSTM a pair of them. It is where the gradient through time is cut: give it detached.

    >>> plain = Recurrence(8, 16, cell="gru")
    >>> hidden, state = plain(torch.zeros(5, 3, 8))
    >>> hidden.shape, state.shape
    (torch.Size([5, 3, 16]), torch.Size([1, 3, 16]))
    >>> torch.allclose(plain.fast()(torch.zeros(5, 3, 8))[0], hidden, atol=1e-6)
    True
    """

    def __init__(self, dim: int, hidden: int, layers: int = 1, cell: Cell = "lstm") -> None:
        super().__init__()
        if cell not in CELLS:
            raise ValueError(f"cell is {cell!r}, but must be one of {', '.join(map(repr, CELLS))}.")
        if min(dim, hidden, layers) < 1:
            raise ValueError(f"dim is {dim}, hidden {hidden} and layers {layers}, but must be 1 or more.")
        self.dim, self.hidden, self.layers, self.cell = dim, hidden, layers, cell
        rows = CELLS[cell][1] * hidden
        for layer in range(layers):
            for name, shape in (
                ("weight_ih", (rows, hidden if layer else dim)),
                ("weight_hh", (rows, hidden)),
                ("bias_ih", (rows,)),
                ("bias_hh", (rows,)),
            ):
                start = torch.empty(shape).uniform_(-(hidden**-0.5), hidden**-0.5)  # as nn.LSTM
                self.register_parameter(f"{name}_l{layer}", nn.Parameter(start))

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Hidden vectors of the last layer, and the state of all layers."""
        if x.dim() != 3 or x.shape[2] != self.dim:
            raise ValueError(f"x is {tuple(x.shape)}, but must be (time, batch, {self.dim}).")
        start = self._start(x, state)
        ends = []
        for layer, before in enumerate(start):
            x, end = self._run(layer, x, before)
            ends.append(end)
        h, c = (torch.stack(parts) for parts in zip(*ends, strict=True))
        return x, (h, c) if self.cell == "lstm" else h

    def _start(self, x: Tensor, state: Any) -> list[State]:
        """The state of each layer; zeros where none is given."""
        shape = (self.layers, x.shape[1], self.hidden)
        if state is None:
            state = (x.new_zeros(shape), x.new_zeros(shape))
        elif self.cell != "lstm":
            state = (state, torch.zeros_like(state))
        if any(tuple(part.shape) != shape for part in state):
            raise ValueError(f"state is {[tuple(part.shape) for part in state]}, but must be {shape}.")
        return list(zip(*state, strict=True))

    def _run(self, layer: int, x: Tensor, state: State) -> tuple[Tensor, State]:
        """A layer over time: what comes from its inputs is one product, what comes from the state one a step."""
        step = CELLS[self.cell][0]
        given = F.linear(x, getattr(self, f"weight_ih_l{layer}"), getattr(self, f"bias_ih_l{layer}"))
        rows, bias = getattr(self, f"weight_hh_l{layer}"), getattr(self, f"bias_hh_l{layer}")
        hidden = []
        for now in given:
            state = step(now, F.linear(state[0], rows, bias), state)
            hidden.append(state[0])
        return torch.stack(hidden) if hidden else given[:, :, : self.hidden], state

    def fast(self) -> nn.RNNBase:
        """PyTorch's network with these parameters, not copies of them."""
        twin: nn.RNNBase = CELLS[self.cell][2](self.dim, self.hidden, self.layers)
        for name, parameter in self.named_parameters():
            setattr(twin, name, parameter)
        return twin
