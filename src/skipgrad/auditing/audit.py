"""`audit`: how far a head's loss and gradient are from the exact softmax over the same scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

import numpy as np

from skipgrad.auditing.exact import (
    Bias,
    Model,
    Target,
    drawing_from,
    implied,
    model_of,
    own_targets,
    softmax,
    softmax_targets,
)
from skipgrad.auditing.measure import GROUPS, Measured, Stopwatch, draw, estimate, group_sizes, measure
from skipgrad.auditing.probe import Text, centres, inverted, keeps
from skipgrad.auditing.proposals import Fixed, Source, source
from skipgrad.auditing.result import Audit, Cost, Estimate, Kind
from skipgrad.heads import HEADS, Adaptive, Head
from skipgrad.heads.head import Definition, Doubles, Ids
from skipgrad.vectors import Vectors

KNOWN: dict[str, type[Any]] = {**HEADS, Adaptive.name: Adaptive}
BATCH = 8  # contexts whose scores of all words are in memory at once


def audit(
    vectors: Vectors,
    head: str | Head = "importance",
    samples: Sequence[int] = (8, 32, 128, 512, 2048),
    proposals: Sequence[str] = (),
    *,
    bias: Bias = "auto",
    text: Any = None,
    predictions: int = 64,
    replicates: int = 64,
    mixture: float = 0.5,
    seed: int = 1,
) -> Audit:
    """Compare a head's loss and gradient, drawn many times over, with the exact softmax of the model's scores.

    bias = E[g^] - g,  g = sum_w p_w u_w - u_o,  p = softmax(U h + b)

    `head`: a name, or a head with options, of which `proposals` replaces the distribution of draws and `samples` their
    number (N). For `negative` and `nce` N draws stand for the K noise words of the options, and their mean should be
    that of their own objective, which the noise is a part of; `hierarchical` and `adaptive` draw nothing, and are
    checked to be exact.
    `proposals`: unigram, unigram^0.75 (any exponent), uniform, log-uniform, thinned (the words that subsampling left),
    bigram (needs a text), adaptive, softmax; none takes the head's own, or unigram where that needs a text.
    `text`: a Corpus, or what one is built of, that pairs of a word and a word it predicts are taken from; without one
    the first is drawn by count, as training meets it, and the second from the model's own probabilities.
    `predictions`, `replicates`: how many pairs, and how often each is drawn for.
    `mixture`: the share of the unigram in the proposals bigram and adaptive.
    `bias`: "auto" takes the model's own, or what its training implies; "unigram" the log of counts; "none" nothing.

    >>> from skipgrad import Vocab
    >>> random = np.random.default_rng(1)
    >>> vocab = Vocab.from_counts({f"w{rank}": 1000 // rank for rank in range(1, 201)})
    >>> vectors = Vectors(vocab, random.normal(size=(200, 8)), random.normal(size=(200, 8)) / 4)
    >>> found = audit(vectors, samples=[64, 256], proposals=["unigram", "softmax"], predictions=16, replicates=32)
    >>> [one.bias < 0.1 for one in found.of("softmax")], found.slope("unigram")[0] < -0.5
    ([True, True], True)
    """
    settings = Settings(sorted(set(samples)), predictions, replicates, mixture, seed)
    chosen = _head(head)
    definition = chosen.define(vectors.vocab.counts)
    model = model_of(vectors, definition, bias)
    return _Run(vectors, chosen, definition, model, settings, text).audit(list(dict.fromkeys(proposals)))


@dataclass(frozen=True)
class Settings:
    """How much is drawn."""

    samples: Sequence[int]
    predictions: int
    replicates: int
    mixture: float
    seed: int

    def __post_init__(self) -> None:
        if not self.samples or not all(2 <= number <= 1 << 17 for number in self.samples):
            raise ValueError(
                f"samples is {list(self.samples)}; expected numbers of draws from 2 to 131072: 8 32 128 512."
            )
        if self.predictions < 2 or self.replicates < 2 * GROUPS:
            raise ValueError(
                f"predictions is {self.predictions} and replicates {self.replicates}; expected at least 2, "
                f"and at least {2 * GROUPS}: standard errors are made of them."
            )
        if not 0 < self.mixture <= 1:
            raise ValueError(
                f"mixture is {self.mixture}; expected a share above 0, up to 1, so that every word is drawn."
            )


@dataclass
class _Run:
    """An audit on its way: predictions in batches, whose scores of all words are in memory at once."""

    vectors: Vectors
    head: Head
    definition: Definition
    model: Model
    settings: Settings
    source: Any
    text: Text | None = None
    kind: Kind = "softmax"
    found: dict[tuple[str, int], list[Measured]] = field(default_factory=dict)
    costs: dict[tuple[str, int], Cost] = field(default_factory=dict)
    exact: list[tuple[float, ...]] = field(default_factory=list)
    """Of each prediction: loss, log Z, |gradient - softmax's|^2, |softmax's|^2, |log sum P|, gradient error."""

    def audit(self, proposals: Sequence[str]) -> Audit:
        """Everything."""
        if self.source is not None:
            self.text = Text.read(self.source, self.vectors)
        self.kind = _kind(self.definition)
        sources = [] if self.kind == "exact" else self.sources(proposals)
        for first, contexts, outputs in self.batches():
            hidden = self.model.hidden(contexts)
            scores = self.model.scores(hidden)
            if self.kind == "exact":
                self.check(hidden, scores, first, outputs)
                continue
            p, log_z = softmax(scores + implied(self.definition))
            outputs = self.outputs(first, p) if outputs is None else outputs
            self.batch(sources, first, contexts, outputs, scores, p, log_z)
        return self.result()

    def sources(self, names: Sequence[str]) -> list[Source]:
        """The distributions of draws; the head's own where none is named."""
        if names and self.kind == "own":
            raise ValueError(
                f"the noise of {self.head.name} is part of its objective: choose it with the head's exponent, and "
                f"leave the proposal out ({', '.join(names)})."
            )
        if names:
            settings = self.settings
            return [
                source(name, self.vectors, self.model, self.text, settings.mixture, settings.seed) for name in names
            ]
        name, exponent = getattr(self.head, "proposal", "unigram"), getattr(self.head, "exponent", 1.0)
        if name == "adaptive" or (name == "bigram" and self.text is not None):
            return self.sources([name])
        name = "unigram" if name == "bigram" else name  # which is what it is mixed with
        assert self.definition.q is not None
        return [Fixed(name if exponent == 1 else f"{name}^{exponent:g}", self.definition.q)]

    def batches(self) -> Iterator[tuple[int, Ids, Ids | None]]:
        """The number of the first prediction, words, and what they predict, where a text says that."""
        random = np.random.default_rng([self.settings.seed, 1])
        number, outputs = self.settings.predictions, None
        if self.text is None:
            words = centres(self.vectors, number, random)
        else:
            words, outputs = self.text.pairs(number, keeps(self.vectors), random)
        for begin in range(0, number, BATCH):
            part = slice(begin, begin + BATCH)
            yield begin, words[part], None if outputs is None else outputs[part]

    def outputs(self, first: int, p: Doubles) -> Ids:
        """A word drawn from each softmax."""
        random = [np.random.default_rng([self.settings.seed, 2, first + k]) for k in range(len(p))]
        return np.array([int(inverted(np.cumsum(row), each, 1)[0]) for row, each in zip(p, random, strict=True)])

    def batch(
        self,
        sources: list[Source],
        first: int,
        contexts: Ids,
        outputs: Ids,
        scores: Doubles,
        p: Doubles,
        log_z: Doubles,
    ) -> None:
        """Measures predictions with every proposal and every number of draws."""
        means = self.model.mean(p)
        for index, one in enumerate(sources):
            definitions = [drawing_from(self.definition, q) for q in one.q(contexts, p)]
            if self.kind == "softmax":
                targets = softmax_targets(self.model, definitions, outputs, scores, means)
            else:
                targets = own_targets(self.model, definitions, outputs, scores)
            for samples in self.settings.samples:
                for k, output in enumerate(outputs):
                    random = np.random.default_rng([self.settings.seed, 3, index, samples, first + k])
                    draws = draw(definitions[k].q, self.settings.replicates, samples, random)
                    case = self.model, definitions[k], int(output), scores[k], targets[k], draws
                    self.found.setdefault((one.name, samples), []).append(measure(*case))
                    if not first and not k:
                        watch = Stopwatch(self.model, int(contexts[0]), int(output))
                        self.costs[one.name, samples] = watch.drawn(definitions[0], draws[0])
            if not index:
                self.compare(targets, means, outputs, log_z)

    def compare(self, targets: list[Target], means: Doubles, outputs: Ids, log_z: Doubles) -> None:
        """The head's mean gradient with that of the softmax."""
        for target, g, z in zip(targets, means - self.model.rows(outputs), log_z, strict=True):
            gap = target.gradient - g
            self.exact.append((target.loss, float(z), float(gap @ gap), float(g @ g), np.nan, np.nan))

    def check(self, hidden: Doubles, scores: Doubles, first: int, outputs: Ids | None) -> None:
        """A head that draws nothing: its probabilities, and its gradient against finite differences of them."""
        definition: Any = self.definition
        p = np.exp([definition.log_probabilities(s) for s in scores])
        outputs = self.outputs(first, p) if outputs is None else outputs
        nothing = np.zeros(0, np.int64)
        for h, s, chances, output in zip(hidden, scores, p, outputs, strict=True):
            own = definition.own(np.array([output]))
            answer = definition.answer(np.array([output]), np.ones(1), nothing, s[own], np.zeros(0))
            gradient = answer.own @ self.model.rows(own)
            length = max(float(np.linalg.norm(gradient)), 1e-300)
            # along the gradient, and across: an error that is at right angles to one of them shows in the other
            ways = np.stack([gradient / length, np.random.default_rng(first).normal(size=len(h)) / np.sqrt(len(h))])
            ends = self.model.scores(np.concatenate([h - 1e-4 * ways, h + 1e-4 * ways]))
            before, after = np.reshape([definition.log_probabilities(each)[output] for each in ends], (2, 2))
            wrong = np.abs((before - after) / 2e-4 - ways @ gradient).max() / length
            log_sum = float(np.log(chances.sum()))
            wrong = max(float(wrong), abs(answer.loss + float(np.log(chances[output]))))
            self.exact.append((answer.loss, log_sum, np.nan, np.nan, abs(log_sum), wrong))
            self.costs["", len(self.exact)] = Stopwatch(self.model, 0, int(output)).drawn(definition, nothing)

    def result(self) -> Audit:
        """All that was found."""
        settings = self.settings
        columns = np.array(self.exact).T
        gap = float(np.sqrt(columns[2].sum() / columns[3].sum())) if self.kind == "own" else np.nan
        return Audit(
            head=self.head.name,
            options=_options(self.head),
            kind=self.kind,
            words=len(self.vectors),
            dim=self.vectors.dim,
            predictions=settings.predictions,
            replicates=settings.replicates,
            seed=settings.seed,
            probe=self.probe(),
            scores=self.model.says,
            loss=float(columns[0].mean()),
            log_z=float(columns[1].mean()),
            log_z_drift=float(columns[1].std()),
            softmax_gap=gap,
            sum_error=float(columns[4].max()),
            gradient_error=float(columns[5].max()),
            exact=self.exact_cost(),
            estimates=tuple(self.estimates()),
        )

    def estimates(self) -> Iterator[Estimate]:
        """Proposals in the order in which they were given, N rising."""
        for key in self.found:
            yield estimate(*key, self.found[key], group_sizes(self.settings.replicates), self.costs[key])

    def exact_cost(self) -> Cost:
        """Of the softmax; of the head itself, the mean over the probe, where nothing is drawn."""
        if self.kind != "exact":
            return Stopwatch(self.model, 0, 0).softmax()
        costs = [(cost.rows, cost.flop, cost.microseconds) for cost in self.costs.values()]
        return Cost(*np.mean(costs, axis=0).tolist())

    def probe(self) -> str:
        """Where the predictions come from."""
        number = self.settings.predictions
        if self.text is not None:
            return f"{number} pairs of neighbors in the text, as often as training meets them."
        of = "the head's own distribution" if self.kind == "exact" else "the exact softmax of its scores"
        return f"{number} words drawn by count, as often as training meets them, and for each a word drawn from {of}."


def _head(head: str | Head) -> Head:
    if not isinstance(head, str):
        return head
    if head not in KNOWN:
        raise ValueError(f"head={head!r} is not known; there are {', '.join(KNOWN)}.")
    chosen: Head = KNOWN[head]()
    return chosen


def _options(head: Any) -> dict[str, Any]:
    """Those of a head, as JSON has them."""
    options = asdict(head) if is_dataclass(head) and not isinstance(head, type) else {}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}


def _kind(definition: Definition) -> Kind:
    """Heads with a mean of their own say it; those that draw and have none estimate the softmax."""
    if definition.q is None:
        return "exact"
    return "own" if hasattr(definition, "expected") else "softmax"
