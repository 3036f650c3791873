"""BOHAMIANN: Bayesian optimisation with a neural network sampled by Hamiltonian Monte Carlo.

A suggestion takes 0.08 s, the first one of a task 0.25 s (one core), fifty times as long as with
`bo`.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
n        scalar  evaluations that the network is fitted to
m        scalar  candidates
d        scalar  hyperparameters
p        scalar  inputs of the network
X        (n, p)  inputs
y        (n,)    standardised losses
=======  ======  ==================================================================================
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods._model_based import ModelBased, Scorer
from hpobench_ordered.methods._multi_task import TaskByTask, draw_sample_counts, sample_standardised
from hpobench_ordered.methods.base import MethodKind, MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._networks.bayesian import BayesianNetwork

MAX_SOURCES = 3000
"""The network is fitted to at most this many evaluations of other tasks. In the papers, the 29
tasks of `quadratic` have 100 each."""
MAX_CURRENT = 1000
"""The network is fitted to at most this many evaluations of the current task, the latest ones."""


class Bohamiann(ModelBased):
    """Makes a few initial trials, then suggests the candidate of highest expected improvement.

    The model is a network of three layers of 50 tanh units with learned noise. Its posterior is
    sampled by stochastic-gradient Hamiltonian Monte Carlo, in one chain that continues from one
    suggestion to the next. Candidates are those of `bo`. Pending evaluations are assumed to give
    the mean loss (the constant liar of Ginsbourger, Le Riche and Carraro 2010).
    """

    searches_near_best = True

    def prepare(self) -> None:
        """Set up the search; the network is made for the first suggestion that needs it."""
        super().prepare()
        self._network: BayesianNetwork | None = None

    def make_scorer(self) -> Scorer:
        """Sample the network's posterior, and make the function that scores candidates.

        The score is the log expected improvement. Pending evaluations, asked for but not told yet,
        are assumed to give the mean loss.
        """
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement
        from hpobench_ordered.methods._networks.bayesian import BayesianNetwork

        X, y = self.observations()
        if len(y) == 0:  # without losses no configuration is better than another
            return lambda unit: self.rng.random(len(unit))
        if self._network is None:
            input_count = X.shape[1]
            self._network = BayesianNetwork(input_count, self.rng)
        network = self._network

        pending_X = self.features(self.pending_units())
        pending_y = np.zeros(len(pending_X))  # the mean of standardised losses
        network.fit(np.concatenate([X, pending_X]), np.concatenate([y, pending_y]))
        lowest_loss = self.incumbent(network, y)

        def score(unit: FloatArray) -> FloatArray:
            """Compute log expected improvement (m,) of candidates in the unit cube, (m, d)."""
            mean, sd = network.predict(self.features(unit))
            return log_expected_improvement(mean, sd, lowest_loss)

        return score

    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Return features (n, p) and standardised losses (n,) that the network is fitted to.

        They are those of the latest `MAX_CURRENT` evaluations of this task, or of all if there are
        fewer. Losses are standardised over all evaluations, including those that are left out.
        """
        from hpobench_ordered.methods._gp.model import standardise

        standardised_losses = standardise(self.evaluated_losses())
        latest_losses = standardised_losses[-MAX_CURRENT:]
        latest_units = self.evaluated_units()[-MAX_CURRENT:]
        return self.features(latest_units), latest_losses

    def incumbent(self, network: "BayesianNetwork", y: FloatArray) -> float:
        """Find the standardised loss that a suggestion should improve on: the lowest so far.

        Args:
            network: The model. It is not needed here; a subclass whose task may have no evaluations
                yet predicts the loss with it.
            y: Standardised losses of the evaluations on this task, shape (n,).
        """
        return float(y.min())

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute features (m, p), in [0, 1], of configurations in the unit cube, (m, d)."""
        return self.region.features(unit)


class ContextBohamiann(TaskByTask, Bohamiann):
    """`Bohamiann` over all tasks, with the context as an input.

    Losses are standardised task by task, contexts over all tasks. The first trial is already based
    on the other tasks. Of more than `MAX_SOURCES` evaluations in the history a random subset is
    used, drawn once. Without a common context, the input is the task's index in the history.
    """

    def choose_source_evaluations(
        self, tasks: Sequence[Evaluations], task_features: FloatArray
    ) -> Sequence[Evaluations]:
        """Draw at most `MAX_SOURCES` evaluations of the previous tasks together, at random.

        Args:
            tasks: Finite evaluations of the previous tasks.
            task_features: Not used here, as the choice does not depend on the tasks' contexts.

        Returns:
            The drawn evaluations of each task, with standardised losses.
        """
        # A single task has no other limit than all tasks together.
        counts = draw_sample_counts(
            tasks, max_per_task=MAX_SOURCES, max_total=MAX_SOURCES, rng=self.rng
        )
        return sample_standardised(tasks, counts, self.rng)

    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Return inputs (N + n, p) and losses (N + n,) that the network is fitted to.

        They are those of N evaluations of other tasks, followed by n evaluations of the current
        task. Losses are standardised task by task.
        """
        X, y = super().observations()
        return self.prepend_sources(X, y)

    def incumbent(self, network: "BayesianNetwork", y: FloatArray) -> float:
        """Find the standardised loss that a suggestion should improve on.

        It is the lowest loss on this task so far. Before the first evaluation of this task it is
        the lowest loss that the network predicts for the configurations of the other tasks.

        Args:
            network: The network, fitted to y.
            y: Losses of N evaluations of other tasks, followed by n of this one, shape (N + n,).
        """

        def predict_mean(X: FloatArray) -> FloatArray:
            """Predict the mean loss (m,) at model inputs X (m, p)."""
            mean, _ = network.predict(X)
            return mean

        return self.best_of_task(y, predict_mean)


SPECS = (
    MethodSpec(
        name="bohamiann",
        method=Bohamiann,
        summary="Bayesian optimisation with a Bayesian neural network, sampled by SGHMC.",
        source=(
            "Springenberg et al. (2016); a baseline of Perrone et al. (2018) and Horvath et al. "
            "(2021), section 5"
        ),
        uses_history=False,
        changed_spaces=True,
        kind=MethodKind.NETWORK,
        version=2,
    ),
    MethodSpec(
        name="bohamiann-ctx",
        method=ContextBohamiann,
        summary="bohamiann over previous and current tasks, with the context as an input.",
        source="Perrone et al. (2018), supplement B.3: BOHAMIANN transfer (ctx)",
        min_history=1,
        kind=MethodKind.NETWORK,
        uses_context=True,
        version=2,
    ),
)
