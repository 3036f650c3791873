"""meta-tpe: TPE whose densities are mixtures over tasks, weighted by similarity.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
T        scalar  tasks, the current one last
d        scalar  hyperparameters that are searched
good_i           density of the good configurations of task i; bad_i of its bad ones
N_i      scalar  number of these configurations
D_i      scalar  total variation distance of good_i from the current task's
S_i      scalar  similarity, (1 - D_i) / (1 + D_i): their overlap divided by their union
k_i      scalar  weight: S_i / T, for the current task 1 minus the sum of the others
=======  ======  ==================================================================================

The mixture of good configurations is proportional to the sum of k_i N_i good_i, and that of bad
ones likewise.

Watanabe, Awad, Onishi and Hutter (2023), section 3.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, IntArray
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods._model_based import Scorer, replace_failed_evaluations
from hpobench_ordered.methods._multi_task import sample_standardised
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.tpe import TPE

if TYPE_CHECKING:
    from hpobench_ordered.methods._tpe import Density

MAX_PER_TASK = 100
"""At most this many evaluations of an earlier task are used; they are drawn at random."""
GOOD_SHARE = 0.1
"""Share of a task's configurations that are good, gamma."""
RANDOM_SHARE = 0.05
"""Share of the suggestions after the initial ones that are random, epsilon."""
INITIAL_SHARE = 0.05
"""This share of the trials, at least one, evaluate the best configurations of earlier tasks."""
CANDIDATES_PER_TASK = 100
"""Number of candidates that are drawn from each task's density of good configurations."""
LOG_BASE = 2.5
"""Tasks are compared in as many hyperparameters as the logarithm, to this base, of the number of
evaluations."""
POINT_COUNT = 1000
"""Number of random configurations on which densities are compared."""
MIN_BANDWIDTH = 0.1
"""Smallest bandwidth; for choices, the smallest probability of another choice."""


@dataclass(frozen=True, eq=False, slots=True)
class SplitTask:
    """A task's configurations in the unit cube, split by loss; only searched hyperparameters.

    Attributes:
        good: Those with the lowest losses, shape (N_good, d).
        bad: The others, shape (N_bad, d).
    """

    good: FloatArray
    bad: FloatArray


class MetaTPE(TPE):
    """TPE with the densities of the current task and of the earlier ones.

    The first configurations are among the best of the earlier tasks. Later, an earlier task has the
    more weight, the more the distribution of its good configurations overlaps with the current
    task's in the most important hyperparameters. Until the current task has two evaluations, all
    similarities are 1. Configurations of another search space are converted to the current one.
    Without two finite evaluations of an earlier task it is `tpe`.
    """

    def prepare(self) -> None:
        """Choose evaluations of earlier tasks, and split each task's into good and bad ones.

        At most `MAX_PER_TASK` evaluations of each task are used, drawn at random.
        """
        history = replace_failed_evaluations(convert_history(self.history, self.space, self.rng))
        # A single evaluation cannot be split.
        self._earlier_tasks = [task for task in history if len(task) > 1]
        super().prepare()  # asks for the initial configurations, which are drawn from these tasks

        # The evaluations of each earlier task, split.
        counts = [MAX_PER_TASK] * len(self._earlier_tasks)
        samples = sample_standardised(self._earlier_tasks, counts, self.rng)
        self._sources = [self._split(self.space.encode(s.values), s.losses) for s in samples]
        if self._sources:
            self.random_trials = 0  # a model of the earlier tasks needs none
            self.random_fraction = RANDOM_SHARE  # of suggestions
            # Random configurations on which the tasks' densities are compared, without
            # hyperparameters that have a single value.
            unit = self.region.sample_unit(self.rng, POINT_COUNT)
            self._points = unit[:, self._is_searched]

    def initial_configurations(self) -> Sequence[Config]:
        """Draw some of the best configurations of the earlier tasks, `_earlier_tasks`.

        Their number is the share `INITIAL_SHARE` of the budget. They are drawn from as few of the
        best of each task as suffice.
        """
        if not self._earlier_tasks:
            return ()
        initial_count = max(1, math.floor(INITIAL_SHARE * self.budget))
        best_count = math.ceil(initial_count / len(self._earlier_tasks))
        best_values = []
        for task in self._earlier_tasks:
            best_rows = np.argsort(task.losses, kind="stable")[:best_count]
            best_values.append(task.values[best_rows])
        chosen_values = self.rng.permutation(np.concatenate(best_values))[:initial_count]
        return self.space.configs(chosen_values)

    def make_scorer(self) -> Scorer:
        """Fit the mixtures of the tasks' densities, and make the function that scores candidates.

        The score is the log ratio of two densities, the mixtures of good and of bad configurations.
        A task's weight in both grows with its similarity to the current one. Without earlier tasks
        the score is that of TPE.
        """
        if not self._sources:
            return super().make_scorer()
        tasks = list(self._sources)
        current = None  # before its first evaluation, the current task has no densities to mix
        if self.evaluation_count:
            current = self._split(self.evaluated_units(), self.evaluated_losses())
            tasks.append(current)

        # Of the earlier tasks; all are 1 as long as there is nothing to compare them with.
        similarities = self._compute_similarities(current)
        # One for each of `tasks`: the current task's weight is left out if it has no densities.
        weights = compute_task_weights(similarities, task_count=len(tasks))
        good = Mixture([self._fit_density(task.good) for task in tasks], weights)
        bad = Mixture([self._fit_density(task.bad) for task in tasks], weights)
        self._good = good  # candidates are drawn from it
        is_searched = self._is_searched  # hyperparameters with one value are not in the densities
        return lambda unit: good.log(unit[:, is_searched]) - bad.log(unit[:, is_searched])

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield draws around each task's good configurations; if all were tried, random ones.

        Without earlier tasks the candidates are those of TPE.

        Yields:
            Configurations in the unit cube, shape (m, number of hyperparameters).
        """
        if self._sources:
            # From each task's density of good configurations.
            drawn = self._good.sample_each(self.rng, CANDIDATES_PER_TASK)
            # Densities have only the hyperparameters with more than one value, where `_is_searched`
            # is true. The others have their single value in the middle of the region.
            unit = np.tile(self.region.middle, (len(drawn), 1))
            unit[:, self._is_searched] = drawn
            # `canonical` moves discrete values to the middle of their bins, and makes inactive ones
            # NaN.
            yield self.region.canonical(unit)
        # With earlier tasks these are random: TPE's own model, of the current task alone, is not
        # fitted then, and without it TPE draws at random.
        yield from super().iter_candidates()

    def _compute_similarities(self, current: SplitTask | None) -> FloatArray:
        """Compute the similarity (T - 1,) of the earlier tasks, `_sources`, to the current one.

        Tasks are similar if the densities of their good configurations overlap. With few
        evaluations, densities can be estimated in few hyperparameters only, so that tasks are
        compared in the most important ones.

        Args:
            current: The current task; None if it has no evaluations.
        """
        if current is None or self.evaluation_count < 2:  # nothing to compare with
            return np.ones(len(self._sources))

        # Their number grows with the logarithm of the number of evaluations.
        parameter_count = max(1, math.floor(math.log(self.evaluation_count, LOG_BASE)))
        columns = np.sort(self.importance[:parameter_count])
        points = self._points[:, columns]  # random ones, on which densities are compared
        current_density = self._evaluate_density(current.good, columns, points)
        similarities = []
        for task in self._sources:
            task_density = self._evaluate_density(task.good, columns, points)
            similarities.append(compute_similarity(task_density, current_density))
        return np.array(similarities)

    def _split(self, unit: FloatArray, losses: FloatArray) -> SplitTask:
        """Split configurations into the share `GOOD_SHARE` with the lowest losses, and the others.

        Args:
            unit: Configurations in the unit cube, with all hyperparameters; those that have only
                one value, where `_is_searched` is false, are left out.
            losses: Their losses, shape (n,).
        """
        best_first = np.argsort(losses, kind="stable")
        searched = np.ascontiguousarray(unit[best_first][:, self._is_searched])
        good_count = math.ceil(GOOD_SHARE * len(searched))
        return SplitTask(searched[:good_count], searched[good_count:])

    def _fit_density(self, data: FloatArray) -> "Density":
        """Fit a kernel density to configurations (N, d), and add a uniform kernel, the prior.

        `_choices` is the number of choices of each hyperparameter, 0 for numbers, (d,).
        """
        return add_prior(fit_density(data, self._choices))

    def _evaluate_density(
        self, data: FloatArray, columns: IntArray, points: FloatArray
    ) -> FloatArray:
        """Evaluate the density of configurations (N, d) in some hyperparameters.

        `_choices` is the number of choices of each hyperparameter, 0 for numbers, (d,).

        Args:
            data: The configurations.
            columns: Indices of these hyperparameters, shape (k,).
            points: Where it is evaluated, shape (m, k).

        Returns:
            The density (m,) at each point.
        """
        density = fit_density(data[:, columns], self._choices[columns])
        return np.exp(density.log(np.ascontiguousarray(points)))

    @cached_property
    def importance(self) -> IntArray:
        """Indices of the hyperparameters, the most important first.

        A hyperparameter is important if the good configurations of earlier tasks concentrate at
        some of its values, so that their density there varies much over random points.
        """
        total_variance = np.zeros(len(self._choices))  # of the densities of all earlier tasks
        for j in range(len(total_variance)):
            column = self._points[:, j]  # values of hyperparameter j, NaN where it is inactive
            active_points = column[~np.isnan(column)][:, None]
            if not len(active_points):
                continue
            for task in self._sources:
                density = self._evaluate_density(task.good, np.array([j]), active_points)
                total_variance[j] += np.var(density / density.mean())
        return np.argsort(-total_variance, kind="stable")


@dataclass(frozen=True, eq=False, slots=True)
class Mixture:
    """A mixture of the tasks' densities.

    Attributes:
        densities: Densities of the tasks.
        weights: Weights k of the tasks, shape (T,). The share of a task's density is proportional
            to its weight times its number of configurations.
    """

    densities: "Sequence[Density]"
    weights: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Share of each task's density in the mixture, shape (T,).

        It is proportional to the task's weight times its number of configurations.
        """
        weighted_counts = self.weights * [len(density.data) for density in self.densities]
        shares: FloatArray = weighted_counts / weighted_counts.sum()
        return shares

    def log(self, unit: FloatArray) -> FloatArray:
        """Compute the log density (m,) at configurations in the unit cube, (m, d).

        It is the log of the densities' sum, weighted by their shares in the mixture.
        """
        unit = np.ascontiguousarray(unit)
        total = np.zeros(len(unit))
        for share, density in zip(self.shares, self.densities, strict=True):
            total += share * np.exp(density.log(unit))
        logs: FloatArray = np.log(total)
        return logs

    def sample_each(self, rng: np.random.Generator, m: int) -> FloatArray:
        """Draw m points of the unit cube from each density, (T m, d), grouped by density."""
        # From the densities as they are, and not from wider ones as in TPE.
        drawn = [density.sample(rng, m, width_factor=1.0) for density in self.densities]
        return np.concatenate(drawn)


def fit_density(data: FloatArray, choices: IntArray) -> "Density":
    """Fit a kernel density to configurations, whose bandwidths are at least `MIN_BANDWIDTH`.

    Args:
        data: The configurations in the unit cube, shape (N, d).
        choices: Number of choices of each hyperparameter, 0 for numbers, shape (d,).
    """
    from hpobench_ordered.methods._tpe import Density, choose_bandwidths

    data = np.ascontiguousarray(data)
    bandwidths = np.maximum(choose_bandwidths(data, choices), MIN_BANDWIDTH)
    return Density(data, choices, bandwidths)


def add_prior(density: "Density") -> "Density":
    """Add a kernel that is uniform over the search space, as if it were one more configuration.

    So each density is positive everywhere, even one without configurations, and rules no region
    out. A configuration without any active hyperparameter, all NaN, has the uniform kernel.
    """
    from hpobench_ordered.methods._tpe import Density

    inactive = np.full((1, density.data.shape[1]), np.nan)
    return Density(np.concatenate([density.data, inactive]), density.choices, density.bandwidths)


def compute_similarity(p: FloatArray, q: FloatArray) -> float:
    """Compute the similarity of two densities, known up to a factor at uniform points, (m,) each.

    It is the overlap of the normalised densities divided by their union, which are 1 - D and 1 + D
    for a total variation distance D.
    """
    normalised_p = p / p.sum()
    normalised_q = q / q.sum()
    distance = 0.5 * float(np.abs(normalised_p - normalised_q).sum())  # total variation
    overlap = max(0.0, 1.0 - distance)
    union = 1.0 + distance
    return overlap / union


def compute_task_weights(similarities: FloatArray, task_count: int) -> FloatArray:
    """Compute the weights of the tasks, shape (task_count,).

    The weight of an earlier task is its similarity divided by the number T of tasks, and the
    weight of the current task is 1 minus the sum of the others.

    Args:
        similarities: Similarities of the earlier tasks, shape (T - 1,).
        task_count: T, or T - 1 to leave out the current task, whose weight comes last.
    """
    T = len(similarities) + 1
    earlier_weights = similarities / T
    current_weight = 1.0 - earlier_weights.sum()
    weights = np.append(earlier_weights, current_weight)
    return weights[:task_count]


SPECS = (
    MethodSpec(
        name="meta-tpe",
        method=MetaTPE,
        summary="TPE with the densities of all tasks, weighted by similarity.",
        source=(
            "Watanabe, Awad, Onishi and Hutter (2023), section 3: similarity by total variation, "
            "and settings of the released program: "
            f"{GOOD_SHARE:.0%} are good, {RANDOM_SHARE:.0%} of the suggestions random"
        ),
        min_history=1,
        changed_spaces=True,
        version=2,
    ),
)
