"""Tables of parameters, their rows, and the precision that scores are worked on in."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class _Take(torch.autograd.Function):
    """Rows of a table, whose gradient holds these rows and no others."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table.detach()[ids]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (ids,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(ids[None], gradients[0], ctx.shape, check_invariants=False), None


def take(table: Tensor, ids: Tensor, sparse: bool) -> Tensor:
    """Rows of a table (V, D), or numbers of a bias (V); sparse: their gradient costs len(ids) rows, and not V."""
    if sparse:
        rows: Tensor = _Take.apply(table, ids)
        return rows
    return F.embedding(ids, table) if table.dim() == 2 else table[ids]


def wide(x: Tensor) -> Tensor:
    """In float32 where it is shorter: exponentials and sums need it."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def parameter(given: Tensor) -> nn.Parameter:
    """A tensor as a parameter on the same memory; a parameter as it is, so that it is shared."""
    return given if isinstance(given, nn.Parameter) else nn.Parameter(given)
