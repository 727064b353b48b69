"""A PyTorch model that predicts the next of 500,000 items: one line changes, and it trains.

    python examples/torch_items.py

needs pip install 'skipgrad[torch]', and takes half a minute on one core. The items are made up: there are 500 kinds of
1,000 items, a session has items of one kind, and some items of a kind are more popular than others.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

import skipgrad as sg

ITEMS, KINDS, DIM, BATCH, SESSION = 500_000, 500, 32, 1024, 5


class Linear(nn.Linear):
    """What the model had: all items are scored for every session."""

    def forward(self, hidden: Tensor, target: Tensor) -> Tensor:
        """The cross entropy."""
        return functional.cross_entropy(super().forward(hidden), target)


class NextItem(nn.Module):
    """The mean of a session's items, a layer, and the next item."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.items = nn.EmbeddingBag(ITEMS, DIM, mode="mean", sparse=True)
        self.layer = nn.Linear(DIM, DIM)
        self.head = head

    def hidden(self, session: Tensor) -> Tensor:
        """What is known of a session."""
        return torch.tanh(self.layer(self.items(session)))

    def forward(self, session: Tensor, following: Tensor) -> Tensor:
        """The loss of the item that follows."""
        loss: Tensor = self.head(self.hidden(session), following)
        return loss


def sessions(number: int) -> Tensor:
    """Items (number, SESSION + 1) of a kind each; the j-th of a kind as often as 1/j."""
    of_kind = ITEMS // KINDS
    places = torch.multinomial(1 / torch.arange(1, of_kind + 1), number * (SESSION + 1), replacement=True)
    return torch.randint(KINDS, (number, 1)) + KINDS * places.reshape(number, -1)


def train(model: NextItem, steps: int, batch: int = BATCH) -> float:
    """Sessions a second."""
    tables = [model.items, model.head] if getattr(model.head, "sparse", False) else [model.items]
    sparse = [table for module in tables for table in module.parameters()]
    dense = [table for table in model.parameters() if all(table is not other for other in sparse)]
    optimisers = [torch.optim.SparseAdam(sparse, lr=0.02), torch.optim.Adam(dense, lr=0.01)]
    began = time.perf_counter()
    for _ in range(steps):
        data = sessions(batch)
        for optimiser in optimisers:
            optimiser.zero_grad()
        model(data[:, :-1], data[:, -1]).backward()
        for optimiser in optimisers:
            optimiser.step()
    return steps * batch / (time.perf_counter() - began)


def entropy(counts: npt.NDArray[np.int64]) -> float:
    """The entropy of the items, in nats."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def main() -> None:
    """Before, after, and what was learned."""
    torch.manual_seed(1)
    torch.set_num_threads(1)

    model = NextItem(Linear(DIM, ITEMS))
    print(f"nn.Linear and cross_entropy: {train(model, steps=2, batch=64):,.0f} sessions a second")

    counts = np.bincount(sessions(200_000).flatten().numpy(), minlength=ITEMS)
    head = sg.torch.SampledSoftmax(DIM, counts, samples=512, target="drawn", sparse=True)  # this changes
    model = NextItem(head)
    print(f"SampledSoftmax:              {train(model, steps=1000):,.0f} sessions a second")

    test = sessions(500)
    hidden, following = model.hidden(test[:, :-1]), test[:, -1]
    top = model.head.topk(hidden, 100).ids
    found = (top == following[:, None]).any(1).float().mean()
    popular = (torch.tensor(counts).topk(100).indices == following[:, None]).any(1).float().mean()
    loss = model.head.exact_loss(hidden, following)
    print(f"of new sessions, exactly: {loss:.2f} nats, where popularity alone has {entropy(counts):.2f}")
    print(f"the next item is among the likeliest 100 in {found:.0%}, among the most popular 100 in {popular:.0%}")


if __name__ == "__main__":
    main()
