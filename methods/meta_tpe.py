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
        """Draw evaluations of each earlier task, and split them into good and bad ones.

        At most `MAX_PER_TASK` evaluations of each task are used.
        """
        converted = convert_history(self.history, self.space, self.rng)
        history = replace_failed_evaluations(converted)
        # A single evaluation cannot be split.
        self._earlier_tasks = [task for task in history if len(task) > 1]
        # This asks for the initial configurations, which are drawn from `_earlier_tasks`.
        super().prepare()

        counts = [MAX_PER_TASK] * len(self._earlier_tasks)  # a task with fewer gives all
        samples = sample_standardised(self._earlier_tasks, counts, self.rng)
        # The drawn evaluations of each earlier task, split.
        self._sources: list[SplitTask] = []
        for sample in samples:
            unit = self.space.encode(sample.values)
            self._sources.append(self._split(unit, sample.losses))

        if self._sources:
            self.random_trials = 0  # there is a model before the first trial
            self.random_fraction = RANDOM_SHARE
            # Random configurations on which the tasks' densities are compared, without the
            # hyperparameters that have a single value.
            random_units = self.region.sample_unit(self.rng, POINT_COUNT)
            self._points = random_units[:, self._is_searched]

    def initial_configurations(self) -> Sequence[Config]:
        """Draw some of the best configurations of the earlier tasks.

        Their number is the share `INITIAL_SHARE` of the budget, at least one. They are drawn from
        the best few configurations of each task: as few as are enough for that number.
        """
        if not self._earlier_tasks:
            return ()
        initial_count = max(1, math.floor(INITIAL_SHARE * self.budget))
        count_per_task = math.ceil(initial_count / len(self._earlier_tasks))
        best_values = []  # coded values of the best configurations, for each task
        for task in self._earlier_tasks:
            best_first = np.argsort(task.losses, kind="stable")
            best_values.append(task.values[best_first[:count_per_task]])
        shuffled_values = self.rng.permutation(np.concatenate(best_values))
        return self.space.configs(shuffled_values[:initial_count])

    def make_scorer(self) -> Scorer:
        """Fit the mixtures of the tasks' densities, and make the function that scores candidates.

        The score is the log ratio of two densities, the mixtures of good and of bad configurations.
        A task's weight in both grows with its similarity to the current one. Without earlier tasks
        the score is that of TPE.
        """
        if not self._sources:
            return super().make_scorer()
        tasks = list(self._sources)
        if self.evaluation_count > 0:
            current = self._split(self.evaluated_units(), self.evaluated_losses())
            tasks.append(current)
            weights = compute_task_weights(self._compute_similarities(current))
        else:
            # The current task has no densities yet, so that only those of earlier tasks are mixed.
            # Nothing tells the earlier tasks apart: all have the same weight.
            equal_similarities = np.ones(len(self._sources))
            weights = compute_task_weights(equal_similarities)[:-1]

        good = Mixture([self._fit_density(task.good) for task in tasks], weights)
        bad = Mixture([self._fit_density(task.bad) for task in tasks], weights)
        self._good = good  # candidates are drawn from it
        is_searched = self._is_searched

        def score(unit: FloatArray) -> FloatArray:
            """Compute the log ratio (m,) of both densities at candidates in the unit cube, (m, d).

            Hyperparameters with a single value are not in the densities.
            """
            searched = unit[:, is_searched]
            return good.log(searched) - bad.log(searched)

        return score

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield draws around each task's good configurations; if all were tried, random ones.

        Without earlier tasks the candidates are those of TPE.

        Yields:
            Configurations in the unit cube, shape (m, number of hyperparameters).
        """
        if self._sources:
            # `_good` is the mixture that `make_scorer` has fitted to good configurations.
            drawn = self._good.sample_each(self.rng, CANDIDATES_PER_TASK)
            # The mixture has only the hyperparameters with more than one value, where
            # `_is_searched` is true. The others have their single value in the middle of the
            # region.
            unit = np.tile(self.region.middle, (len(drawn), 1))
            unit[:, self._is_searched] = drawn
            # `canonical` moves discrete values to the middle of their bins, and makes inactive ones
            # NaN.
            yield self.region.canonical(unit)
        # TPE draws around good configurations of its own model, which is not fitted if there are
        # earlier tasks. Without a model it draws at random.
        yield from super().iter_candidates()

    def _compute_similarities(self, current: SplitTask) -> FloatArray:
        """Compute the similarity of each earlier task, of `_sources`, to the current one, (T - 1,).

        Tasks are similar if the densities of their good configurations overlap. From few
        evaluations a density can be estimated in few hyperparameters only. Tasks are therefore
        compared in the most important ones, whose number grows with the logarithm of the number of
        evaluations.

        Args:
            current: The current task. If it has a single evaluation, all similarities are 1, as
                that is not enough for a comparison.
        """
        if self.evaluation_count < 2:
            return np.ones(len(self._sources))

        parameter_count = max(1, math.floor(math.log(self.evaluation_count, LOG_BASE)))
        columns = np.sort(self.importance[:parameter_count])
        points = self._points[:, columns]  # random ones, at which densities are compared
        current_density = self._evaluate_density(current.good, columns, points)
        similarities = []
        for task in self._sources:
            task_density = self._evaluate_density(task.good, columns, points)
            similarities.append(compute_similarity(task_density, current_density))
        return np.array(similarities)

    def _split(self, unit: FloatArray, losses: FloatArray) -> SplitTask:
        """Split configurations into the share `GOOD_SHARE` with the lowest losses, and the others.

        Args:
            unit: Configurations in the unit cube, shape (n, number of hyperparameters).
            losses: Their losses, shape (n,).

        Returns:
            The two parts, without the hyperparameters that have a single value.
        """
        best_first = np.argsort(losses, kind="stable")
        searched = np.ascontiguousarray(unit[best_first][:, self._is_searched])
        good_count = math.ceil(GOOD_SHARE * len(searched))
        return SplitTask(good=searched[:good_count], bad=searched[good_count:])

    def _fit_density(self, data: FloatArray) -> "Density":
        """Fit a kernel density to configurations (N, d), and add a uniform kernel, the prior."""
        density = fit_density(data, self._choices)
        return add_prior(density)

    def _evaluate_density(
        self, data: FloatArray, columns: IntArray, points: FloatArray
    ) -> FloatArray:
        """Fit a density to configurations in k of the hyperparameters, and evaluate it at m points.

        Args:
            data: The configurations, shape (N, d).
            columns: Indices of the hyperparameters, shape (k,).
            points: The points, in these hyperparameters alone, shape (m, k).

        Returns:
            The density at each point, shape (m,).
        """
        choices = self._choices[columns]  # number of choices of each; 0 for numbers
        density = fit_density(data[:, columns], choices)
        log_density = density.log(np.ascontiguousarray(points))
        return np.exp(log_density)

    @cached_property
    def importance(self) -> IntArray:
        """Indices of the searched hyperparameters, the most important first, shape (d,).

        A hyperparameter is important if the good configurations of earlier tasks concentrate at
        some of its values, so that their density varies much between random values.
        """
        total_variance = np.zeros(len(self._choices))  # the sum over the earlier tasks
        for j in range(len(total_variance)):
            random_values = self._points[:, j]  # of hyperparameter j, NaN where it is inactive
            active_values = random_values[~np.isnan(random_values)]
            if not len(active_values):
                continue
            points = active_values[:, None]  # in this hyperparameter alone
            for task in self._sources:
                density = self._evaluate_density(task.good, np.array([j]), points)
                relative_density = density / density.mean()
                total_variance[j] += np.var(relative_density)
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
        """Share of each task's density in the mixture, shape (T,), of sum 1.

        It is proportional to the task's weight times its number of configurations.
        """
        counts = [len(density.data) for density in self.densities]
        weighted_counts = self.weights * counts
        shares: FloatArray = weighted_counts / weighted_counts.sum()
        return shares

    def log(self, unit: FloatArray) -> FloatArray:
        """Compute the log density (m,) of the mixture at configurations in the unit cube, (m, d).

        The density of the mixture is the sum of the tasks' densities times their shares.
        """
        unit = np.ascontiguousarray(unit)  # as compiled code requires
        mixture_density = np.zeros(len(unit))
        for share, density in zip(self.shares, self.densities, strict=True):
            mixture_density += share * np.exp(density.log(unit))
        log_density: FloatArray = np.log(mixture_density)
        return log_density

    def sample_each(self, rng: np.random.Generator, m: int) -> FloatArray:
        """Draw m points of the unit cube from each task's density; join them, shape (T m, d)."""
        # The factor 1 draws from the densities themselves; TPE draws from wider ones.
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

    The density is then positive everywhere, so that no region is ruled out. It is defined even
    without a configuration.
    """
    from hpobench_ordered.methods._tpe import Density

    # The kernel of an inactive hyperparameter, NaN, is uniform. So is the kernel of a configuration
    # whose hyperparameters are all inactive.
    dimension = density.data.shape[1]
    all_inactive = np.full((1, dimension), np.nan)
    data = np.concatenate([density.data, all_inactive])
    return Density(data, density.choices, density.bandwidths)


def compute_similarity(p: FloatArray, q: FloatArray) -> float:
    """Compute the similarity of two densities: their overlap divided by their union.

    For normalised densities these are 1 - D and 1 + D, where D is the total variation distance.

    Args:
        p: One density at m uniformly distributed points, shape (m,); a factor does not matter.
        q: The other one at the same points, shape (m,).
    """
    normalised_p = p / p.sum()
    normalised_q = q / q.sum()
    total_variation = 0.5 * float(np.abs(normalised_p - normalised_q).sum())
    overlap = max(0.0, 1.0 - total_variation)  # rounding may make it negative
    union = 1.0 + total_variation
    return overlap / union


def compute_task_weights(similarities: FloatArray) -> FloatArray:
    """Compute the weights of T tasks: T - 1 earlier ones and, last, the current one, shape (T,).

    The weight of an earlier task is its similarity divided by T. The weight of the current task is
    1 minus the sum of the others.

    Args:
        similarities: Similarities of the earlier tasks to the current one, shape (T - 1,).
    """
    task_count = len(similarities) + 1
    earlier_weights = similarities / task_count
    current_weight = 1.0 - earlier_weights.sum()
    return np.append(earlier_weights, current_weight)


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
