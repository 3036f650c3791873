"""ABLR: Bayesian linear regression for each task, on a network that all tasks share.

Network and heads are fitted together, by L-BFGS on the sum of the tasks' marginal likelihoods, and
again when the current task has clearly more evaluations; its head is fitted after every one.
"""

from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.extras import NEURAL
from hpobench_ordered.methods._blr.method import LinearHead
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._blr.heads import Head

HIDDEN = (50, 50, 50)
"""Tanh units of each layer; the last one gives the features. The supplement names no network."""
EMBEDDING = 4
"""Size of a learned embedding."""
EMBEDDING_SD = 0.1
"""Standard deviation of embeddings before they are learned."""
BEFOREHAND = (200, 60)
"""Number of evaluations of the joint likelihood in the fit to the previous tasks: largest, and
smallest (with very many evaluations of configurations, as the time of each grows with them)."""
ONLINE = (6, 3)
"""The same for each refit, when the current task has `GROWTH` times as many evaluations."""
GROWTH = 1.3
"""Refitting after every evaluation takes 1.6 times as long and finds nothing better."""
ALONE = (10, 3)
"""The same without previous tasks, where every fit starts from scratch."""
LARGE = 10_000
"""Number of evaluations of configurations above which the likelihood is evaluated less often."""


class ABLR(LinearHead):
    """A network and a head, fitted to the current task's evaluations alone.

    Every fit starts from the random initial network and is short: few evaluations do not determine
    a network, and one that is fully fitted to them is overconfident.

    Attributes:
        embedding: Size of the vector learned for each task, an input of the network.
    """

    uses_history = False
    embedding = 0

    def prepare(self) -> None:
        """Fit the feature map to the previous tasks."""
        from hpobench_ordered.methods._blr.joint import Parameters
        from hpobench_ordered.methods._networks.features import Network, padded_inputs

        super().prepare()
        self._sources = self.prepare_sources()
        used = self.embedding + self.make_inputs(np.empty((0, self.space.dimension))).shape[1]
        self.phi = Network(padded_inputs(used), HIDDEN)
        self._fitted_to = 0
        tasks = len(self._sources[0]) + 1
        z = self.phi.initial(self.rng, used)
        embedded = EMBEDDING_SD * self.rng.standard_normal((tasks, self.embedding))
        self._parameters = self._start = Parameters.initial(z, embedded)
        if tasks > 1:
            self._fit(np.empty((0, used - self.embedding)), np.empty(0), BEFOREHAND)

    def features(self, X: FloatArray) -> FloatArray:
        """Features (m, d) of inputs (m, p) on this task."""
        own = self._parameters.embedded[-1]
        return super().features(np.hstack([np.broadcast_to(own, (len(X), len(own))), X]))

    def fit_head(self, X: FloatArray, y: FloatArray) -> "Head":
        """Fit the head to X (n, p), y (n,) and, from time to time, all parameters to all tasks."""
        from hpobench_ordered.methods._blr.heads import Head

        sources = len(self._sources[0])
        if not sources:
            self._parameters = self._start
            self._fit(X, y, ALONE)
        elif len(y) >= GROWTH * self._fitted_to:
            self._fit(X, y, ONLINE)
            self._fitted_to = len(y)
        fitted = self._parameters
        start = fitted.median_precisions(sources) if sources else fitted.precisions_of(-1)
        head = Head.fit(self.features(X), y, start)
        self._parameters = self._parameters.with_precisions(-1, head.precisions)
        return head

    def _fit(self, X: FloatArray, y: FloatArray, evaluations: tuple[int, int]) -> None:
        """Continue the descent with a limited number of evaluations of the joint likelihood."""
        from hpobench_ordered.methods._blr.joint import fit_jointly

        inputs, losses = [*self._sources[0], X], [*self._sources[1], y]
        most, least = evaluations
        affordable = most * LARGE // max(1, sum(map(len, losses)))
        count = min(most, max(least, affordable))
        self._parameters = fit_jointly(
            self.phi, inputs, losses, self._parameters, evaluations=count
        )

    @property
    def z(self) -> FloatArray:
        """Parameters of the feature map."""
        return self._parameters.z

    @property
    def embeddings(self) -> FloatArray:
        """Learned embeddings, (tasks, k): previous tasks with finite losses, then this one."""
        return self._parameters.embedded


class ABLRTransfer(ABLR):
    """ABLR on a network that all tasks share.

    Every fit continues from the last one. The current task's head is fitted separately, starting
    from the medians of the previous tasks' precisions. Without previous tasks it is `ABLR`.
    """

    uses_history = True


class ABLRContext(ABLRTransfer):
    """ABLR on a shared network with the tasks' contexts as inputs.

    Fixed embeddings of tasks, such as those learned by `ABLREmbeddings` on another benchmark, can
    be used as contexts, too.
    """

    uses_context = True


class ABLREmbeddings(ABLRTransfer):
    """ABLR on a shared network with a learned embedding of each task."""

    embedding = EMBEDDING


PAPER = "Perrone et al. (2018), Scalable hyperparameter transfer learning"

SPECS = (
    MethodSpec(
        name="ablr",
        method=ABLR,
        summary="Bayesian linear regression on a network, fitted to the current task alone.",
        source=f"{PAPER}, supplement, section A; its network of 3 layers of 50 tanh units is ours",
        uses_history=False,
        changed_spaces=True,
        extras=(NEURAL,),
        version=2,
    ),
    MethodSpec(
        name="ablr-transfer",
        method=ABLRTransfer,
        summary="ablr on one network for all tasks, with a head for each.",
        source=f"{PAPER}, supplement, section A: network and heads fitted together by L-BFGS",
        min_history=1,
        extras=(NEURAL,),
        version=3,
    ),
    MethodSpec(
        name="ablr-ctx",
        method=ABLRContext,
        summary="ablr-transfer with the context of the tasks as inputs of the network.",
        source=f"{PAPER}, supplement, section B.4: network of configuration and context",
        min_history=1,
        extras=(NEURAL,),
        version=3,
    ),
    MethodSpec(
        name="ablr-embeddings",
        method=ABLREmbeddings,
        summary=f"ablr-transfer with {EMBEDDING} learned numbers that describe each task.",
        source=f"{PAPER}, supplement, section B.4: task embeddings, k = {EMBEDDING}",
        min_history=1,
        extras=(NEURAL,),
        version=3,
    ),
)
