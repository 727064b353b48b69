"""The exact softmax over a model's scores: what an estimate is held against."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from skipgrad.heads.head import Definition, Doubles, Ids
from skipgrad.heads.proposal import Proposal
from skipgrad.vectors import Vectors

BLOCK = 1 << 22  # numbers of the table that are float64 at a time: 32 MB

Bias = Literal["auto", "unigram", "none"]


class Model:
    """A table of rows (R, D) and a bias (R): s = U h + b, for hidden vectors that are input rows."""

    def __init__(
        self, input: npt.NDArray[np.float32], table: npt.NDArray[np.float32], bias: Doubles, says: str
    ) -> None:
        self.input, self.table, self.bias, self.says = input, table, bias, says

    def hidden(self, words: Ids) -> Doubles:
        """Hidden vectors (C, D) of the words."""
        return self.input[words].astype(np.float64)

    def scores(self, hidden: Doubles) -> Doubles:
        """Scores (C, R) of all rows."""
        result = np.empty((len(hidden), len(self.table)))
        for part in self._blocks():
            result[:, part] = hidden @ self.rows(part).T
        return result + self.bias

    def mean(self, weights: Doubles) -> Doubles:
        """sum_r weights_r u_r (C, D), for weights (C, R)."""
        result = np.zeros((len(weights), self.table.shape[1]))
        for part in self._blocks():
            result += weights[:, part] @ self.rows(part)
        return result

    def rows(self, which: Ids | slice) -> Doubles:
        """Some rows, in float64."""
        return self.table[which].astype(np.float64)

    def _blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK // self.table.shape[1])
        for begin in range(0, len(self.table), step):
            yield slice(begin, begin + step)


def model_of(vectors: Vectors, definition: Definition, bias: Bias) -> Model:
    """The rows that the head scores, with a bias if the head has one."""
    table = vectors.parts.get("nodes") if hasattr(definition, "tree") else None
    table = vectors.output if table is None else table
    if table is None:
        other = "nodes of a tree, and only the head hierarchical scores those"
        raise ValueError(
            "these vectors have no output table of words, and without it nothing is predicted: "
            + (f"they have {other}." if "nodes" in vectors.parts else "audit a folder that `skipgrad train` saved.")
        )
    if not np.any(table[: 1 << 16]):
        raise ValueError("the output table is all zeros, as before the first step: every gradient is 0; train first.")
    clusters = vectors.parts.get("clusters")  # (K, D + 1), the bias last
    if len(table) < definition.rows and clusters is not None:
        table = np.concatenate([table, clusters[:, :-1]])
    elif len(table) < definition.rows:
        table = _with_cluster_rows(table, vectors.vocab.counts, definition)
    offsets, says = _bias(vectors, definition, bias)
    if vectors.metadata.get("model") == "CBOW":
        says += " The model is CBOW: a hidden vector is taken to have a single context."
    return Model(vectors.input, table, offsets, says)


def _with_cluster_rows(
    table: npt.NDArray[np.float32], counts: npt.NDArray[np.int64], definition: Any
) -> npt.NDArray[np.float32]:
    """Rows of an adaptive softmax's clusters, where the model has none: the means of their words' rows."""
    ends, weights = definition.ends, np.maximum(counts, 1).astype(np.float32)
    rows = [weights[a:b] @ table[a:b] / weights[a:b].sum() for a, b in pairwise(ends)]
    return np.concatenate([table, np.stack(rows)])


def _bias(vectors: Vectors, definition: Definition, bias: Bias) -> tuple[Doubles, str]:
    """What is added to the scores, and a sentence that says so."""
    if bias not in ("auto", "unigram", "none"):
        raise ValueError(f"bias={bias!r} is not known; expected 'auto', 'unigram' or 'none'.")
    nothing = np.zeros(definition.rows)
    if definition.bias is None:
        return nothing, "The head has no bias."
    if bias == "none":
        return nothing, "No bias is added to the scores."
    own = vectors.parts.get("bias")
    if bias == "auto" and own is not None:
        learned = np.asarray(own, np.float64).ravel()
        rest = definition.bias[len(learned) :] if "clusters" not in vectors.parts else vectors.parts["clusters"][:, -1]
        return np.append(learned, rest)[: definition.rows], "The scores have the model's own bias."
    trained = vectors.metadata.get("options", {}).get("head", {})
    if bias == "auto" and trained.get("name") == "negative" and definition.rows == len(vectors):
        q = Proposal("unigram", trained["exponent"]).q(vectors.vocab.counts)
        noise = np.log(np.maximum(trained["negatives"] * q, 1e-300))
        return noise, "The model was trained by negative sampling and has no bias: log(K q) makes its scores log P."
    return definition.bias, "The model has no bias: the log of a word's share is added to its score."


class Target(NamedTuple):
    """What the mean over draws should be, and a statistic of the draws whose mean is known.

    control = 1/N sum_i a_i (u_i - centre) - mean has the mean 0 whatever the head does. An estimate minus it has the
    same bias and, for a right head, far less noise: a weighted mean keeps only what is of the order of its bias.
    """

    loss: float
    gradient: Doubles  # d loss / d h (D)
    a: Doubles  # (R)
    centre: Doubles  # (D)
    mean: Doubles  # (D)
    predicted: Doubles  # N times the first-order bias (D)
    spread: float  # 1 + chi2(p, q) of what is drawn; NaN where no softmax is estimated
    loss_mean: float  # of 1/N sum_i a_i; NaN where that says nothing of the loss


def softmax(scores: Doubles) -> tuple[Doubles, Doubles]:
    """Probabilities (C, R) and log Z (C)."""
    log_z = np.logaddexp.reduce(scores, axis=1)
    return np.exp(scores - log_z[:, None]), log_z


def softmax_targets(
    model: Model, definitions: list[Any], outputs: Ids, scores: Doubles, means: Doubles
) -> list[Target]:
    """The softmax's own loss and gradient of a batch, for heads that weigh draws by p/q.

    Z^/Z = A and the weighted rows B have the means 1 and mu, and B/A - mu = (B - mu A) + (B - mu A)(1/A - 1). The first
    part is the control; the mean of the second is -cov(B - mu A, A) to the first order, the predicted bias.
    """
    p, log_z = softmax(scores)
    each = np.arange(len(outputs))
    q = np.stack([definition.q for definition in definitions])
    drawn = q > 0
    if getattr(definitions[0], "included", False):  # draws that are o do not count, and o does always
        drawn[each, outputs] = False
    mass = np.where(drawn, p, 0.0)
    a = np.divide(mass, q, out=np.zeros_like(p), where=drawn)
    total = mass.sum(axis=1, keepdims=True)
    first = total * mass - a * mass
    if getattr(definitions[0], "included", True) is False:  # o is scored once more, as if it had been drawn
        first[each, outputs] += a[each, outputs]
    expected, predicted = model.mean(mass) - total * means, model.mean(first) - first.sum(axis=1, keepdims=True) * means
    gradients = means - model.rows(outputs)
    losses = log_z - scores[each, outputs]
    spread = (a * mass).sum(axis=1) / total[:, 0] ** 2
    columns = losses, gradients, a, means, expected, predicted, spread, total[:, 0]
    return [Target(*row) for row in zip(*columns, strict=True)]


def own_targets(model: Model, definitions: list[Any], outputs: Ids, scores: Doubles) -> list[Target]:
    """The mean over draws that a head says it has (`expected`), for heads that are no softmax.

    Its residuals are those of o plus q_i f_i: f is what one draw brings, and the control sums f_i u_i / N.
    """
    found = []
    nothing = np.zeros(0, np.int64)
    for definition, output, s in zip(definitions, outputs, scores, strict=True):
        one = np.array([output]), np.ones(1)
        loss, residual = definition.expected(*one, s)
        noise = residual.copy()
        noise[output] -= definition.answer(*one, nothing, s[[output]], np.zeros(0)).own[0]
        f = np.divide(noise, definition.q, out=np.zeros_like(s), where=definition.q > 0)
        both = model.mean(np.stack([residual, noise]))
        zeros = np.zeros(both.shape[1])
        found.append(Target(loss, both[0], f, zeros, both[1], zeros, np.nan, np.nan))
    return found


def implied(definition: Any) -> Doubles:
    """What is added to a head's scores to make them the log probabilities that it takes them for.

    The optimum of negative sampling is s = log P - log(K q), that of NCE log P + log Z with a constant log Z.
    """
    if not hasattr(definition, "negatives"):
        return np.zeros(1)
    log_kq = np.log(np.maximum(definition.negatives * definition.q, 1e-300))
    result: Doubles = log_kq + getattr(definition, "offset", 0.0)
    return result


def drawing_from(definition: Definition, q: Doubles) -> Any:
    """The same head, with its draws from another distribution."""
    changed: Any = copy.copy(definition)
    exact = getattr(definition, "exact", 0)
    changed.q = np.where(np.arange(len(q)) < exact, 0.0, q)
    changed.q /= changed.q.sum()
    if hasattr(definition, "offset"):  # NCE has -log Z - log(K q) ready
        some = int(np.argmax(changed.q * (definition.q if definition.q is not None else 1)))
        constant = implied(definition)[some]
        changed.offset = constant - np.log(np.maximum(changed.negatives * changed.q, 1e-300))
    return changed
