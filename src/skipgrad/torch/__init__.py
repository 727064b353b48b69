"""The output heads as PyTorch modules: `loss = head(hidden, target)` in place of a linear layer and cross entropy.

>>> import torch
>>> import skipgrad as sg
>>> head = sg.torch.SampledSoftmax(16, 1000, samples=64)
>>> hidden, target = torch.randn(4, 7, 16), torch.randint(1000, (4, 7))
>>> head(hidden, target).shape, head.topk(hidden, 5).ids.shape
(torch.Size([]), torch.Size([4, 7, 5]))
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "The heads as PyTorch modules need torch, which is missing: pip install 'skipgrad[torch]'"
    ) from error

from skipgrad.torch.adaptive import AdaptiveSoftmax
from skipgrad.torch.dense import ExactSoftmax
from skipgrad.torch.drawn import ImportanceSoftmax, NegativeSampling, NoiseContrastive, SampledSoftmax
from skipgrad.torch.head import Head, Top
from skipgrad.torch.recurrence import Recurrence
from skipgrad.torch.tree import HierarchicalSoftmax

HEADS: dict[str, type[Head]] = {
    module.kind.name: module
    for module in (
        NegativeSampling,
        ExactSoftmax,
        HierarchicalSoftmax,
        ImportanceSoftmax,
        SampledSoftmax,
        NoiseContrastive,
        AdaptiveSoftmax,
    )
}

__all__ = [
    "HEADS",
    "AdaptiveSoftmax",
    "ExactSoftmax",
    "Head",
    "HierarchicalSoftmax",
    "ImportanceSoftmax",
    "NegativeSampling",
    "NoiseContrastive",
    "Recurrence",
    "SampledSoftmax",
    "Top",
]
