"""ABLR: Bayesian linear regression for each task, on a network that all tasks share.

Network and heads are fitted together, by L-BFGS on the sum of the tasks' marginal likelihoods, and
again when the current task has clearly more evaluations; its head is fitted after every one.

=======  =======  =================================================================================
symbol   shape    meaning
=======  =======  =================================================================================
n, m     scalar   evaluations of a task, candidates
p        scalar   inputs: features of a configuration and, possibly, of its task's context
d        scalar   features, outputs of the network: the inputs of the regression
k        scalar   size of a task's embedding, which the network gets before the other inputs
X        (n, p)   inputs
y        (n,)     standardised losses
z        (size,)  parameters of the network
=======  =======  =================================================================================
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.extras import NEURAL
from hpobench_ordered.methods._blr.method import LinearHead
from hpobench_ordered.methods.base import MethodKind, MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._blr.heads import Head, Precisions

HIDDEN = (50, 50, 50)
"""Tanh units of each layer; the last one gives the features. The supplement names no network."""
EMBEDDING = 4
"""Size of a learned embedding."""
EMBEDDING_SD = 0.1
"""Standard deviation of embeddings before they are learned."""
GROWTH = 1.3
"""All parameters are fitted again when the current task has this many times as many evaluations.
A fit after every evaluation takes 1.6 times as long and finds nothing better."""
MANY_CONFIGURATIONS = 10_000
"""With more trials than this, a fit evaluates the likelihood less often, because the time of each
evaluation of the likelihood grows with the number of trials."""


class Effort(NamedTuple):
    """How often a fit may evaluate the joint likelihood.

    Attributes:
        most: Largest number for up to `MANY_CONFIGURATIONS` evaluated configurations; with more it
            falls in inverse proportion to their number.
        least: The number that it does not fall below.
    """

    most: int
    least: int

    def limit_likelihood_evaluations(self, configuration_count: int) -> int:
        """Compute how often a fit to so many configurations may evaluate the likelihood.

        The time of an evaluation is proportional to the number of configurations. With more than
        `MANY_CONFIGURATIONS` of them the number of evaluations falls in inverse proportion, so that
        the time of the fit stays the same, but not below `least`.
        """
        affordable = self.most * MANY_CONFIGURATIONS // max(1, configuration_count)
        return min(self.most, max(self.least, affordable))


EFFORT_BEFOREHAND = Effort(200, 60)
"""Effort of the fit to the previous tasks."""
EFFORT_ONLINE = Effort(6, 3)
"""Effort of each fit that includes the current task."""
EFFORT_ALONE = Effort(10, 3)
"""Effort of each fit without previous tasks, which starts from scratch."""


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
        """Make the network, and fit it to the previous tasks if there are any.

        The network's inputs are the elements of the task's embedding, which is empty in most
        variants, then the p inputs from `make_inputs`: a configuration and perhaps the context.
        """
        from hpobench_ordered.methods._blr.joint import Parameters
        from hpobench_ordered.methods._networks.features import Network, pad_input_count

        super().prepare()
        # For each previous task: inputs (n, p) and standardised losses (n,) of its evaluations.
        self._source_inputs, self._source_losses = self.prepare_sources()
        no_configurations = np.empty((0, self.space.dimension))
        no_inputs = self.make_inputs(no_configurations)  # (0, p)
        network_input_count = self.embedding + no_inputs.shape[1]
        # Inputs are padded with zeros, so that search spaces share compiled programs. `HIDDEN` has
        # the number of units of each layer.
        self.phi = Network(pad_input_count(network_input_count), HIDDEN)

        task_count = len(self._source_inputs) + 1  # the current task comes last
        initial_z = self.phi.initial(self.rng, network_input_count)  # of the network
        # Embeddings are random at first, and then learned.
        embeddings = EMBEDDING_SD * self.rng.standard_normal((task_count, self.embedding))
        # Parameters of the network and of all tasks: random ones, and those fitted last.
        self._start = Parameters.initial(initial_z, embeddings)
        self._parameters = self._start
        # Number of evaluations of the current task that the last fit of all tasks used.
        self._count_at_last_fit = 0
        if self._source_inputs:
            no_losses = np.empty(0)  # the current task has no evaluations yet
            self._fit_all_tasks(no_inputs, no_losses, EFFORT_BEFOREHAND)

    def features(self, X: FloatArray) -> FloatArray:
        """Compute the network's outputs, the features (m, d), at inputs X (m, p) on this task.

        The network's first inputs are the task's embedding, the same for all m.
        """
        embedding = self._parameters.embedded[-1]  # the current task comes last
        embedding_columns = np.broadcast_to(embedding, (len(X), len(embedding)))
        network_inputs = np.hstack([embedding_columns, X])
        return super().features(network_inputs)

    def fit_head(self, X: FloatArray, y: FloatArray) -> "Head":
        """Fit the network and all tasks' heads if this is due, then the current task's head.

        A head is a Bayesian linear regression on the network's outputs. It has two parameters to
        fit: the precision of its weights and the precision of the noise.

        Args:
            X: Inputs of the current task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The head of the current task.

        Raises:
            ModelError: The fit of the head fails.
        """
        from hpobench_ordered.methods._blr.heads import Head

        if self._source_inputs:
            initial_precisions = self._update_network(X, y)
        else:
            initial_precisions = self._fit_network_anew(X, y)
        head = Head.fit(self.features(X), y, initial_precisions)
        # The next fit of all tasks starts from the newest precisions of this task, the last one.
        self._parameters = self._parameters.with_precisions(-1, head.precisions)
        return head

    def _fit_network_anew(self, X: FloatArray, y: FloatArray) -> "Precisions":
        """Fit the network and the head to the current task alone, from the random `_start`.

        The fit does not continue from the last one, because a network that is fitted to few
        evaluations for long is overconfident.

        Args:
            X: Inputs of the current task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The fitted precisions of this task's head.
        """
        self._parameters = self._start
        self._fit_all_tasks(X, y, EFFORT_ALONE)
        return self._parameters.precisions_of(-1)  # the current task comes last

    def _update_network(self, X: FloatArray, y: FloatArray) -> "Precisions":
        """Fit the network and all tasks' heads again, if this task has clearly more evaluations.

        That is, if their number has grown by the factor `GROWTH` since the last fit of all tasks.
        Otherwise the network stays as it is.

        Args:
            X: Inputs of the current task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The medians of the precisions over the previous tasks' heads.
        """
        if len(y) >= GROWTH * self._count_at_last_fit:
            self._fit_all_tasks(X, y, EFFORT_ONLINE)
            self._count_at_last_fit = len(y)
        previous_task_count = len(self._source_inputs)
        return self._parameters.median_precisions(previous_task_count)

    def _fit_all_tasks(self, X: FloatArray, y: FloatArray, effort: Effort) -> None:
        """Fit the network and the heads of all tasks together, starting from `_parameters`.

        The fitted parameters replace `_parameters`. The fit uses the evaluations of the previous
        tasks, `_source_inputs` and `_source_losses`, and those of the current one.

        Args:
            X: Inputs of the current task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).
            effort: How often the fit may evaluate the joint likelihood.
        """
        from hpobench_ordered.methods._blr.joint import fit_jointly

        inputs = [*self._source_inputs, X]
        losses = [*self._source_losses, y]
        configuration_count = sum(len(task_losses) for task_losses in losses)
        self._parameters = fit_jointly(
            self.phi,
            inputs,
            losses,
            self._parameters,
            evaluations=effort.limit_likelihood_evaluations(configuration_count),
        )

    @property
    def z(self) -> FloatArray:
        """Parameters of the network as fitted last, its weights in one array, shape (size,)."""
        return self._parameters.z

    @property
    def embeddings(self) -> FloatArray:
        """Learned embeddings of the tasks as fitted last, shape (T, k).

        A row describes a task by k numbers. The first T - 1 rows are those of the previous tasks
        with finite losses, and the last one is that of the current task.
        """
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
        kind=MethodKind.NETWORK,
        version=2,
    ),
    MethodSpec(
        name="ablr-transfer",
        method=ABLRTransfer,
        summary="ablr on one network for all tasks, with a head for each.",
        source=f"{PAPER}, supplement, section A: network and heads fitted together by L-BFGS",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        version=3,
    ),
    MethodSpec(
        name="ablr-ctx",
        method=ABLRContext,
        summary="ablr-transfer with the context of the tasks as inputs of the network.",
        source=f"{PAPER}, supplement, section B.4: network of configuration and context",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        uses_context=True,
        version=3,
    ),
    MethodSpec(
        name="ablr-embeddings",
        method=ABLREmbeddings,
        summary=f"ablr-transfer with {EMBEDDING} learned numbers that describe each task.",
        source=f"{PAPER}, supplement, section B.4: task embeddings, k = {EMBEDDING}",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        version=3,
    ),
)
