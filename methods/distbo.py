"""Transfer by similarity of the tasks' training data, and the paper's baselines.

Law et al. (2019), Hyperparameter learning via distributional transfer.

Some methods have one model of all tasks, a Gaussian process or Bayesian linear regression, with a
description of each task as input: an embedding of its training data, learned with the model
(`dist-`), handcrafted meta-features (`manual-`), or the identity of the task (`multi-`). The others
have a model of the current task alone, started at random (`none-`) or with the best configurations
of the tasks with the closest meta-features (`init-`).

Losses are standardised over all tasks together, assuming that they are on one scale, as accuracies
are. Unlike in the paper, outliers among the bad ones are clipped first: an R2 of -30 is no more
informative than one of -2, and a Gaussian process fits both badly.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
T        scalar  tasks of the model: the usable earlier ones, then the current one
q        scalar  numbers that describe a task
m        scalar  candidates
d        scalar  hyperparameters
p        scalar  features of a configuration
moments  (2, m)  posterior means and standard deviations of candidates
=======  ======  ==================================================================================
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, IntArray
from hpobench_ordered.data.extras import NEURAL, SKLEARN, Extra
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.task_data import TaskData
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods._candidates import CANDIDATES
from hpobench_ordered.methods._distribution.parts import Embedded
from hpobench_ordered.methods._model_based import (
    ModelBased,
    ModelError,
    Scorer,
    replace_failed_evaluations,
)
from hpobench_ordered.methods._multi_task import draw_sample_counts
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.methods.bo import group_features

if TYPE_CHECKING:
    from hpobench_ordered.methods._distribution.descriptions import Descriptions
    from hpobench_ordered.methods._distribution.models import (
        JointModel,
        Posterior,
        ProcessModel,
        TaskKernel,
    )
    from hpobench_ordered.methods._distribution.product_gp import ProcessData

MIN_IMPROVEMENT = 0.01
"""Smallest improvement that counts, in standard deviations of all losses. In appendix A.3 it is in
accuracy; losses here may have any unit."""
BOUND_WIDTH = 2.58
"""Width of the confidence bounds, in standard deviations, kappa (appendix A.3)."""
MIN_LOG_IMPROVEMENT = -20.0
"""The improvement vanishes if its log expectation is below this: the paper's program computes 0."""
MAX_SOURCES_OF_PROCESS, MAX_SOURCES_OF_LINEAR = 500, 1500
"""Number of evaluations of earlier tasks that a model uses, as in the paper's experiments. The time
of a step of a Gaussian process grows with their cube."""
WARM_TASKS, WARM_PER_TASK = 3, 3
"""Number of closest tasks, and of best configurations of each, that `init-` (section 5) and
`-warm` start with."""
REFINED, AROUND_EACH = 10, 20
"""Number of best candidates that are refined, and of configurations drawn around each."""
RADII = (0.1, 0.03, 0.01)
"""Standard deviations with which these are drawn in the unit cube, one for each round."""
FEATURE_SCALE = math.sqrt(12.0)
"""One over the standard deviation of the uniform distribution on [0, 1]."""
CHOICE_SCALE = 0.25
"""Scale of one-hot columns in a network, relative to a number's range. With 1, two choices would
be 1.4 times as far apart as the ends of that range."""


class JointlyModelled(ModelBased):
    """Bayesian optimisation with one model of the current and the earlier tasks.

    The first configuration minimises an upper confidence bound of the loss. The others maximise
    expected improvement or, if that vanishes, minimise a lower confidence bound. Candidates are
    about 1000 random ones and, in three rounds, others drawn closer and closer to the best.

    Attributes:
        is_linear: Whether the model is a linear regression, else a Gaussian process.
        best_per_task: Number of best configurations of each earlier task that the first suggestions
            of a linear model are chosen among.
        trials_among_best: Number of these suggestions.
        has_noise_per_task: Whether each task has its own noise, else all have the same.
    """

    random_trials = 0
    is_linear = False
    best_per_task = 1
    trials_among_best = 1
    has_noise_per_task = False

    def prepare(self) -> None:
        """Draw the earlier tasks' evaluations for the model, which is fitted by `make_scorer`."""
        self._earlier, self._data = self._select_usable_tasks()
        # This chooses the initial configurations. Methods that use earlier tasks for nothing else
        # then clear `_earlier`.
        super().prepare()
        tasks = self._earlier
        counts = [len(task) for task in tasks]
        # A linear model is faster and may use more evaluations.
        max_sources = MAX_SOURCES_OF_LINEAR if self.is_linear else MAX_SOURCES_OF_PROCESS
        if sum(counts) > max_sources:
            # The limit is for all tasks together; there is none for a single one.
            largest_count = max(counts)
            counts = draw_sample_counts(
                tasks, max_per_task=largest_count, max_total=max_sources, rng=self.rng
            )

        sources = []
        for task, count in zip(tasks, counts, strict=True):
            sources.append(draw_evaluations(task, count, self.rng))
        # Of the N evaluations that were drawn: the index of the task (N,), the configuration in the
        # unit cube (N, d), and the loss (N,).
        self._source_task = np.repeat(np.arange(len(tasks)), counts)
        self._source_units = self._encode([task.values for task in sources])
        no_losses = np.empty(0)  # numpy cannot concatenate an empty list
        self._source_losses = np.concatenate([no_losses, *(task.losses for task in sources)])

        # The best configurations of the earlier tasks, in the unit cube.
        best_values = [select_best_values(task, self.best_per_task) for task in tasks]
        self._best_units = self._encode(best_values)

        self._model: JointModel | None = None  # as fitted last
        # The candidates that `_refine` returned last, and their posterior means and standard
        # deviations (2, m): `_score` recognises the block and need not predict them again.
        self._refined_block: FloatArray = np.empty(0)
        self._refined_moments: FloatArray = np.empty(0)
        # Set by each `make_scorer`: moments (2, m) of candidates (m, d), and scores of moments.
        self._predict_moments: Scorer
        self._acquisition: Scorer

    def is_usable(self, data: TaskData | None) -> bool:
        """Whether an earlier task with these training data can be used. Default: always."""
        return True

    @property
    def noise_count(self) -> int:
        """Number of noise variances of the model: 1, or one for each task."""
        return len(self._earlier) + 1 if self.has_noise_per_task else 1

    @abstractmethod
    def make_model(self) -> "JointModel":
        """Make the unfitted model of the earlier tasks and, last, the current one."""

    def make_scorer(self) -> Scorer:
        """Fit the model, and return the function that scores candidates by it.

        Two attributes are set, as refining candidates needs both: `_predict_moments` gives the
        posterior means and standard deviations (2, m) of candidates in the unit cube (m, d), and
        `_acquisition` the scores (m,) of these moments.
        """
        if not len(self._source_units) and not self.evaluation_count:
            # Nothing to fit a model to: scores are random. The moments only have the right shape,
            # a column for each candidate.
            self._predict_moments = lambda unit: np.empty((2, len(unit)))
            self._acquisition = lambda moments: self.rng.random(len(moments.T))
            return self._score

        observations = self._collect_observations()
        source_count = len(self._source_task)
        current_losses = observations.y[source_count:]  # they follow the earlier tasks' losses
        best = float(current_losses.min(initial=math.inf))  # infinite if there are none yet
        posterior = self._fit(observations)
        if self._pending:  # asked for, but not told yet: assumed to give the posterior mean
            pending_X = self.features(self.pending_units())
            posterior, pending_losses = posterior.with_fantasies(pending_X)
            best = min(best, float(pending_losses.min()))

        self._predict_moments = lambda unit: np.stack(posterior.predict(self.features(unit)))
        self._acquisition = self._make_acquisition(best)
        return self._score

    def _collect_observations(self) -> "ProcessData":
        """Join the evaluations of all tasks, with losses standardised together.

        Those of the earlier tasks, `_source_units`, `_source_task` and `_source_losses`, come
        first; the current task is the last, so that its index is the number of earlier ones.
        """
        from hpobench_ordered.methods._distribution.product_gp import ProcessData
        from hpobench_ordered.methods._gp.model import standardise

        units = np.concatenate([self._source_units, self.evaluated_units()])
        losses = np.concatenate([self._source_losses, self.evaluated_losses()])
        current_task = np.full(self.evaluation_count, len(self._earlier))
        return ProcessData(
            X=self.features(units),
            groups=group_features(self.space),  # the hyperparameter of each feature
            task=np.concatenate([self._source_task, current_task]),
            y=standardise(clip_outliers(losses)),
        )

    def _make_acquisition(self, best: float) -> Scorer:
        """Make the function that scores candidates by their posterior means and sds (2, m).

        The score is log expected improvement, or minus a confidence bound of the loss: the upper
        one, to be safe, before there are evaluations of this task, and the lower one where no
        improvement is expected.

        Args:
            best: Lowest standardised loss of this task so far.
        """
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        has_evaluations = self.evaluation_count > 0

        def acquisition(moments: FloatArray) -> FloatArray:
            """Score candidates (m,) by their posterior means and standard deviations (2, m).

            Bounds are `BOUND_WIDTH` standard deviations from the mean.
            """
            mean: FloatArray = moments[0]
            sd: FloatArray = moments[1]
            if not has_evaluations:  # no loss to improve on: a candidate that is surely not bad
                upper_bound = mean + BOUND_WIDTH * sd
                return -upper_bound

            # Smaller improvements on the best loss than `MIN_IMPROVEMENT` do not count.
            log_improvement = log_expected_improvement(mean, sd, best - MIN_IMPROVEMENT)
            # The improvements of all candidates are so small that the paper's program would compute
            # 0 for each of them: the lower bound decides.
            if log_improvement.max() < MIN_LOG_IMPROVEMENT:
                lower_bound = mean - BOUND_WIDTH * sd
                return -lower_bound
            return log_improvement

        return acquisition

    def _score(self, unit: FloatArray) -> FloatArray:
        """Score candidates in the unit cube, (m, d), by the acquisition function.

        It needs their posterior means and standard deviations, (2, m), which are known of the block
        that was refined last.
        """
        # `_refine` predicted this block, the same array, when it chose the candidates.
        if unit is self._refined_block:
            return self._acquisition(self._refined_moments)
        return self._acquisition(self._predict_moments(unit))

    def _fit(self, observations: "ProcessData") -> "Posterior":
        """Fit the model to all evaluations, from the parameters of the last fit if possible.

        A new model is fitted if there is none yet, or if the last one's fit raises a ModelError: it
        failed, or came out poorer than one may expect.

        Raises:
            ModelError: The fit of a new model fails, too.
        """
        last_model = self._model
        self._model = None  # until a fit has succeeded
        if last_model is not None:
            with suppress(ModelError):
                posterior = last_model.fit(observations)
                self._model = last_model
                return posterior
        model = self.make_model()
        posterior = model.fit(observations)
        self._model = model
        return posterior

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Yield a refined block of candidates, then random ones if all of these were tried.

        The first suggestions of a linear model are chosen among the earlier tasks' best,
        `_best_units`, as networks do not extrapolate as well as Gaussian processes.

        Yields:
            Configurations in the unit cube, shape (m, d).
        """
        is_among_best = self.is_linear and self.evaluation_count < self.trials_among_best
        if is_among_best and len(self._best_units):
            yield self._best_units
        if self.region.size > CANDIDATES:  # else all configurations are candidates
            yield self._refine(self.region.sample_unit(self.rng, CANDIDATES))
        yield from super().iter_candidates()

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute features (m, p) of configurations in the unit cube, (m, d).

        Those of the region, which are in [0, 1], are scaled so that uniform numbers have mean 0 and
        variance 1, by a factor of sqrt(12).
        """
        return FEATURE_SCALE * (self.region.features(unit) - 0.5)

    def _refine(self, block: FloatArray) -> FloatArray:
        """Add configurations around the `REFINED` best candidates, in rounds that come ever closer.

        The result and its posterior moments, means and standard deviations (2, m), are remembered
        for `_score`.

        Args:
            block: Candidates in the unit cube, shape (m, d).

        Returns:
            These candidates and those that were added.
        """
        moments = self._predict_moments(block)
        scores = self._acquisition(moments)
        for radius in RADII:  # ever smaller
            best_rows = np.argsort(-scores, kind="stable")[:REFINED]
            added = self._draw_around(block[best_rows], radius)
            added_moments = self._predict_moments(added)
            block = np.concatenate([block, added])
            moments = np.concatenate([moments, added_moments], axis=1)
            scores = np.concatenate([scores, self._acquisition(added_moments)])
        self._refined_block = block
        self._refined_moments = moments
        return block

    def _draw_around(self, centres: FloatArray, radius: float) -> FloatArray:
        """Draw `AROUND_EACH` configurations around each centre.

        Args:
            centres: Configurations in the unit cube, shape (k, d).
            radius: Standard deviation of the steps from the centre.

        Returns:
            The new configurations in the unit cube, shape (k * AROUND_EACH, d).
        """
        unit = np.repeat(centres, AROUND_EACH, axis=0)
        # An inactive hyperparameter may become active with another choice, and then needs a value.
        is_inactive = np.isnan(unit)
        unit[is_inactive] = self.rng.random(np.count_nonzero(is_inactive))
        steps = radius * self.rng.standard_normal(unit.shape)
        # `canonical` moves discrete values to the middle of bins, and makes inactive ones NaN.
        return self.space.canonical(np.clip(unit + steps, 0.0, 1.0))

    def _select_usable_tasks(self) -> tuple[list[Evaluations], list[TaskData | None]]:
        """Select the earlier tasks with finite losses whose training data `is_usable`.

        Methods without training data can use all tasks.

        Returns:
            Their finite evaluations, and the training data of these tasks and of the current one.

        Raises:
            ExperimentError: The number of data sets is not that of the tasks.
        """
        task_count = len(self.history) + 1  # earlier ones and the current one
        all_data: Sequence[TaskData | None] = self.data or [None] * task_count
        if len(all_data) != task_count:
            raise ExperimentError(
                f"training data must be given for {len(self.history)} earlier tasks and the "
                f"current one, but got data of {len(all_data)} tasks"
            )
        *earlier_data, current_data = all_data
        usable_tasks: list[Evaluations] = []
        usable_data: list[TaskData | None] = []
        for task, data in zip(self.history, earlier_data, strict=True):
            finite_task = replace_failed_evaluations([task])
            if finite_task and self.is_usable(data):
                usable_tasks += finite_task
                usable_data.append(data)
        return usable_tasks, [*usable_data, current_data]

    def list_best_configurations(self, tasks: IntArray) -> list[Config]:
        """List the `WARM_PER_TASK` best configurations of each of some earlier tasks.

        Args:
            tasks: Indices of these tasks among the usable earlier ones, shape (k,), at least one.

        Returns:
            Those of the first task, the best one first, then those of the second, and so on.
        """
        best_values = [select_best_values(self._earlier[t], WARM_PER_TASK) for t in tasks]
        return self.space.configs(np.concatenate(best_values))

    def _encode(self, values: Sequence[FloatArray]) -> FloatArray:
        """Join coded values, (n, d) each, and encode them in the unit cube.

        Coded values are numbers as they are, and choices as their index. In the unit cube, discrete
        values are in the middle of their bins, and inactive ones NaN.
        """
        no_values = np.empty((0, self.space.dimension))  # numpy cannot concatenate an empty list
        joined = np.concatenate([no_values, *values])
        return self.space.canonical(self.space.encode(joined))


class UsesTrainingData(JointlyModelled):
    """Needs training data; earlier tasks without any, or with another kind, are left out."""

    def prepare(self) -> None:
        """Check that the current task, the last of `data`, has training data.

        Raises:
            ExperimentError: It has none.
        """
        if not self.data or self.data[-1] is None:
            raise ExperimentError(
                "the method uses the training data of the task, but the task has none: every "
                "optimised task needs some"
            )
        super().prepare()

    def is_usable(self, data: TaskData | None) -> bool:
        """Whether the data have the same kind, such as classification, as the current task's."""
        current_data = self.data[-1]
        return data is not None and current_data is not None and data.kind is current_data.kind

    @property
    def task_data(self) -> list[TaskData]:
        """Training data of the usable earlier tasks and, last, the current one.

        `_data` has them as selected by `prepare`; none is None, as `is_usable` needs them.
        """
        return [data for data in self._data if data is not None]


class EmbedsFeatures(UsesTrainingData):
    """Embeds the features; tasks with another number of features are left out, too."""

    def is_usable(self, data: TaskData | None) -> bool:
        """Whether the data have the same kind and number of features as the current task's."""
        current_data = self.data[-1]
        if data is None or current_data is None:
            return False
        has_same_width = data.features.shape[1] == current_data.features.shape[1]
        return has_same_width and super().is_usable(data)


class WithProcess(JointlyModelled):
    """The model is a Gaussian process."""

    def make_model(self) -> "ProcessModel":
        """Make a Gaussian process on configuration and task.

        It has a length scale for each hyperparameter.
        """
        from hpobench_ordered.methods._distribution.models import ProcessModel

        return ProcessModel(
            self.make_task_kernel(), self.space.dimension, self.rng, noise_count=self.noise_count
        )

    @abstractmethod
    def make_task_kernel(self) -> "TaskKernel":
        """Make the covariance of the earlier tasks and, last, the current one."""

    def similarities(self) -> FloatArray:
        """Compute the correlation of each earlier task with the current one, (T - 1,).

        It is NaN before the first fit of the model.
        """
        from hpobench_ordered.methods._distribution.models import ProcessModel

        if not isinstance(self._model, ProcessModel):
            return np.full(len(self._earlier), np.nan)
        return self._model.similarities()


class WithLinearModel(JointlyModelled):
    """The model is Bayesian linear regression on a network."""

    is_linear = True

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute features (m, p) of configurations in the unit cube, (m, d).

        They are as in other models, but one-hot columns are multiplied by `CHOICE_SCALE`. At full
        scale, two choices would be farther apart than the ends of a number's range.
        """
        features = super().features(unit)
        parameter_of_column = group_features(self.space)
        column_counts = np.bincount(parameter_of_column)  # of each hyperparameter
        is_one_hot = column_counts[parameter_of_column] > 1
        return np.where(is_one_hot, CHOICE_SCALE * features, features)

    def make_model(self) -> "JointModel":
        """Make a Bayesian linear regression on a network.

        Inputs of the network are the features of the configuration and a description of the task.
        """
        from hpobench_ordered.methods._distribution.models import LinearModel

        no_units = np.empty((0, self.space.dimension))
        width = self.features(no_units).shape[1]  # number of features of a configuration
        return LinearModel(self.make_descriptions(), width, self.rng, noise_count=self.noise_count)

    @abstractmethod
    def make_descriptions(self) -> "Descriptions":
        """Make the descriptions of the earlier tasks and, last, the current one."""


class DistGP(EmbedsFeatures, WithProcess):
    """distGP: a Gaussian process with embeddings of the tasks' training data.

    Attributes:
        embedded: What is embedded of features and numeric labels.
    """

    embedded = Embedded.CONCATENATED

    def make_task_kernel(self) -> "TaskKernel":
        """Make the covariance of the tasks: a kernel of their data's embeddings."""
        from hpobench_ordered.methods._distribution.descriptions import LearnedDescriptions
        from hpobench_ordered.methods._distribution.models import DescribedTasks

        return DescribedTasks(LearnedDescriptions(self.task_data, of_regression=self.embedded))


class DistGPJoint(DistGP):
    """distGP with the joint distribution of features and labels."""

    embedded = Embedded.JOINT


class DistGPJointMean(DistGP):
    """distGP with the mean embedding of features and label as one vector."""

    embedded = Embedded.PAIRS


class DistGPConditional(DistGP):
    """distGP with the distribution of labels given features alone."""

    embedded = Embedded.CONDITIONAL


class DistGPTaskNoise(DistGP):
    """distGP with a noise variance for each task (footnote 4)."""

    has_noise_per_task = True


class DistGPWarm(DistGP):
    """distGP that starts with the best configurations of the tasks it learnt to be similar."""

    def prepare(self) -> None:
        """Fit the model to the earlier tasks, and choose the initial configurations by it.

        They are the `WARM_PER_TASK` best of each of the `WARM_TASKS` tasks that correlate most with
        the current one (appendix A.3). If the fit is poor, there are none.
        """
        super().prepare()
        if not self._earlier:
            return
        with suppress(ModelError):
            self._fit(self._collect_observations())
            most_similar = np.argsort(-self.similarities(), kind="stable")[:WARM_TASKS]
            # `_initial` has the configurations to suggest before those that the model chooses.
            self._initial.extend(self.list_best_configurations(most_similar))


class DistBLR(EmbedsFeatures, WithLinearModel):
    """distBLR: Bayesian linear regression with embeddings of the tasks' training data.

    Attributes:
        embedded: What is embedded of features and numeric labels.
    """

    embedded = Embedded.CONCATENATED

    def make_descriptions(self) -> "Descriptions":
        """Make the descriptions of the tasks: embeddings of their data."""
        from hpobench_ordered.methods._distribution.descriptions import LearnedDescriptions

        return LearnedDescriptions(self.task_data, of_regression=self.embedded)


class DistBLRJoint(DistBLR):
    """distBLR with the joint distribution of features and labels."""

    embedded = Embedded.JOINT


class DistBLRJointMean(DistBLR):
    """distBLR with the mean embedding of features and label as one vector."""

    embedded = Embedded.PAIRS


class DistBLRConditional(DistBLR):
    """distBLR with the distribution of labels given features alone."""

    embedded = Embedded.CONDITIONAL


class DistBLRTaskNoise(DistBLR):
    """distBLR with a noise variance for each task (footnote 4)."""

    has_noise_per_task = True


class DistBLRWarm(DistBLR):
    """distBLR whose first suggestions are all among several best of each task (appendix A.3).

    A regression has no similarity of tasks: the acquisition function chooses among those of all.
    """

    best_per_task = WARM_PER_TASK
    trials_among_best = WARM_TASKS * WARM_PER_TASK


class ManualGP(UsesTrainingData, WithProcess):
    """manualGP: a Gaussian process with handcrafted meta-features of the tasks' training data."""

    def make_task_kernel(self) -> "TaskKernel":
        """Make the covariance of the tasks: a kernel of their data's meta-features and sizes."""
        from hpobench_ordered.methods._distribution.descriptions import FixedDescriptions
        from hpobench_ordered.methods._distribution.models import DescribedTasks

        return DescribedTasks(FixedDescriptions(describe_tasks(self.task_data)))


class ManualBLR(UsesTrainingData, WithLinearModel):
    """manualBLR: Bayesian linear regression with handcrafted meta-features."""

    def make_descriptions(self) -> "Descriptions":
        """Describe the tasks by meta-features and sizes of their training data."""
        from hpobench_ordered.methods._distribution.descriptions import FixedDescriptions

        return FixedDescriptions(describe_tasks(self.task_data))


class MultiGP(WithProcess):
    """multiGP: a Gaussian process with a free covariance of the tasks; one random trial."""

    random_trials = 1

    def make_task_kernel(self) -> "TaskKernel":
        """Make a free covariance of the earlier tasks and the current one.

        It is L L^T, where the entries of the triangle L are positive parameters.
        """
        from hpobench_ordered.methods._distribution.models import FreeTasks

        return FreeTasks(len(self._earlier) + 1)


class MultiBLR(WithLinearModel):
    """multiBLR: Bayesian linear regression with the one-hot task as input; one random trial."""

    random_trials = 1

    def make_descriptions(self) -> "Descriptions":
        """Describe each task, earlier ones and the current one, by its one-hot code."""
        from hpobench_ordered.methods._distribution.descriptions import FixedDescriptions

        return FixedDescriptions(np.eye(len(self._earlier) + 1))


class NoneGP(WithProcess):
    """noneGP: a Gaussian process of the current task alone, after random trials."""

    random_trials = 5

    def is_usable(self, data: TaskData | None) -> bool:
        """Return False for all tasks: the model is of the current task alone."""
        return False

    def make_task_kernel(self) -> "TaskKernel":
        """Make the trivial covariance of one task, which is 1."""
        from hpobench_ordered.methods._distribution.descriptions import FixedDescriptions
        from hpobench_ordered.methods._distribution.models import DescribedTasks

        no_description = np.empty((1, 0))  # the only task needs none
        return DescribedTasks(FixedDescriptions(no_description))


class NoneBLR(WithLinearModel):
    """noneBLR: Bayesian linear regression of the current task alone, after random trials."""

    random_trials = 5

    def is_usable(self, data: TaskData | None) -> bool:
        """Return False for all tasks: the model is of the current task alone."""
        return False

    def make_descriptions(self) -> "Descriptions":
        """Describe the only task by no number: there is no other to tell it from."""
        from hpobench_ordered.methods._distribution.descriptions import FixedDescriptions

        no_description = np.empty((1, 0))
        return FixedDescriptions(no_description)


class WarmStarted(UsesTrainingData):
    """A model of the current task alone, started with the best configurations of similar tasks."""

    def initial_configurations(self) -> Sequence[Config]:
        """Choose the `WARM_PER_TASK` best configurations of each of the `WARM_TASKS` closest tasks.

        Closest are those with the most similar meta-features of training data. Earlier tasks serve
        for this alone: they are removed here, before the model is made.
        """
        if not self._earlier:
            return ()
        *earlier, current = describe_tasks(self.task_data)
        distances = np.square(np.array(earlier) - current).sum(axis=1)
        closest_tasks = np.argsort(distances, kind="stable")[:WARM_TASKS]
        best_configurations = self.list_best_configurations(closest_tasks)

        # The model is of the current task alone, whose data come last.
        self._earlier = []
        self._data = self._data[-1:]
        return best_configurations


class InitGP(WarmStarted, NoneGP):
    """initGP: noneGP started with the best configurations of the closest tasks by meta-features."""

    random_trials = 0


class InitBLR(WarmStarted, NoneBLR):
    """initBLR: noneBLR started with the best configurations of the closest tasks."""

    random_trials = 0


def describe_tasks(data: Sequence[TaskData]) -> FloatArray:
    """Describe T tasks by q numbers each, (T, q): meta-features and, last, sizes of the data.

    Meta-features are scaled to [0, 1] over the tasks, sizes are shares of the largest.
    """
    from hpobench_ordered.methods._distribution.descriptions import compute_relative_sizes
    from hpobench_ordered.methods._meta_features import (
        compute_meta_features,
        scale_to_unit_interval,
    )

    # The number of classes of all tasks, from 0, so that each has as many meta-features.
    all_labels = [task.labels for task in data if task.labels is not None]
    class_count = 1 + max((int(labels.max()) for labels in all_labels), default=0)
    meta_features = [compute_meta_features(task, classes=class_count) for task in data]
    scaled_meta_features = scale_to_unit_interval(np.stack(meta_features))
    sizes = compute_relative_sizes(data)
    return np.hstack([scaled_meta_features, sizes[:, None]])


def select_best_values(task: Evaluations, count: int) -> FloatArray:
    """Select the coded values of the `count` best evaluations of a task, the best one first."""
    best_rows = np.argsort(task.losses, kind="stable")[:count]
    best_values: FloatArray = task.values[best_rows]
    return best_values


def clip_outliers(losses: FloatArray) -> FloatArray:
    """Clip losses (n,) at their upper quartile plus twice its distance from the best.

    The median is not used, because most losses of a good optimiser are near the best.
    """
    # Three quarters up the sorted losses; one of the losses, without interpolation.
    quartile_row = 3 * (len(losses) - 1) // 4
    upper_quartile = float(np.sort(losses)[quartile_row])
    distance = upper_quartile - float(losses.min())
    if distance <= 0.0:  # most are equal to the best: any other one would be clipped to it
        return losses
    return np.minimum(losses, upper_quartile + 2.0 * distance)


def draw_evaluations(task: Evaluations, count: int, rng: np.random.Generator) -> Evaluations:
    """Draw `count` evaluations of a task at random; they stay in their order."""
    if count == len(task):  # all: leaves the generator as it is
        return task
    rows = np.sort(rng.permutation(len(task))[:count])
    # Losses follow from the objective.
    return replace(task, values=task.values[rows], objective=task.objective[rows])


PAPER = "Law et al. (2019), Hyperparameter learning via distributional transfer"
EMBEDDED = f"{PAPER}, section 4: networks of 20 and 10 units on features and labels"


def _spec(
    name: str,
    method: type[JointlyModelled],
    summary: str,
    source: str,
    *extras: Extra,
    min_history: int = 1,
) -> MethodSpec:
    """Make the specification of one of the paper's methods.

    Only methods without transfer, which need no history, may run on a changed search space.

    Args:
        name: Name of the method.
        method: Its class.
        summary: One line.
        source: Where the method is described.
        extras: Extras that must be installed.
        min_history: Smallest number of earlier tasks; 0 for methods without transfer.
    """
    # A version is raised when a method's suggestions change; methods of one model change together.
    version = 5 if issubclass(method, WithLinearModel) else 4
    return MethodSpec(
        name=name,
        method=method,
        summary=summary,
        source=source,
        min_history=min_history,
        version=version,
        uses_data=issubclass(method, UsesTrainingData),
        extras=extras,
        kind=MethodKind.TRAINING_DATA,
        uses_history=min_history > 0,
        changed_spaces=min_history == 0,
    )


VARIANTS: tuple[tuple[str, str, str, dict[str, type[JointlyModelled]]], ...] = (
    (
        "joint-mean",
        "dist-{} that embeds features and label of each point as one vector.",
        f"{PAPER}, section 4.1",
        {"gp": DistGPJointMean, "blr": DistBLRJointMean},
    ),
    (
        "conditional",
        "dist-{} that embeds the distribution of labels given features alone.",
        f"{PAPER}, section 4.1",
        {"gp": DistGPConditional, "blr": DistBLRConditional},
    ),
    (
        "task-noise",
        "dist-{} with a noise variance for each task.",
        f"{PAPER}, section 4.2, footnote 4",
        {"gp": DistGPTaskNoise, "blr": DistBLRTaskNoise},
    ),
    (
        "warm",
        "dist-{} started with the best configurations of earlier tasks.",
        f"{PAPER}, appendix A.3",
        {"gp": DistGPWarm, "blr": DistBLRWarm},
    ),
)
"""Variants of dist-gp and dist-blr: end of the name, summary, source, and classes by model.

In the summary, {} stands for the model, "gp" or "blr"."""

SPECS = (
    _spec(
        "dist-gp",
        DistGP,
        "Gaussian process with an embedding of each task's training data.",
        EMBEDDED,
        NEURAL,
    ),
    _spec(
        "dist-gp-joint",
        DistGPJoint,
        "dist-gp that embeds the joint distribution of features and labels.",
        f"{PAPER}, section 4.1 and appendix C.1",
        NEURAL,
    ),
    _spec(
        "dist-blr",
        DistBLR,
        "dist-gp with Bayesian linear regression on a network.",
        EMBEDDED,
        NEURAL,
    ),
    _spec(
        "dist-blr-joint",
        DistBLRJoint,
        "dist-blr that embeds the joint distribution of features and labels.",
        f"{PAPER}, section 4.1 and appendix C.1",
        NEURAL,
    ),
    *(
        _spec(f"dist-{model}-{variant}", method, summary.format(model), source, NEURAL)
        for variant, summary, source, methods in VARIANTS
        for model, method in methods.items()
    ),
    _spec(
        "manual-gp",
        ManualGP,
        "Gaussian process with meta-features of each task's training data.",
        f"{PAPER}, appendix B.1",
        SKLEARN,
    ),
    _spec(
        "manual-blr",
        ManualBLR,
        "manual-gp with Bayesian linear regression on a network.",
        f"{PAPER}, appendix B.1",
        NEURAL,
        SKLEARN,
    ),
    _spec(
        "multi-gp",
        MultiGP,
        "Gaussian process with a learned covariance of the tasks.",
        f"{PAPER}, appendix B.2, after Swersky et al. (2013)",
    ),
    _spec(
        "multi-blr",
        MultiBLR,
        "Bayesian linear regression on a network with the task as an input.",
        f"{PAPER}, appendix B.2, after Perrone et al. (2018)",
        NEURAL,
    ),
    _spec(
        "init-gp",
        InitGP,
        "none-gp started with the best of the tasks with the closest meta-features.",
        f"{PAPER}, appendix B.3, after Feurer et al. (2015)",
        SKLEARN,
    ),
    _spec(
        "init-blr",
        InitBLR,
        "none-blr started with the best of the tasks with the closest meta-features.",
        f"{PAPER}, appendix B.3, after Feurer et al. (2015)",
        NEURAL,
        SKLEARN,
    ),
    _spec(
        "none-gp",
        NoneGP,
        "Gaussian process of the current task alone, after five random trials.",
        f"{PAPER}, section 5: Matern-3/2, marginal likelihood",
        min_history=0,
    ),
    _spec(
        "none-blr",
        NoneBLR,
        "Bayesian linear regression of the current task alone, after five random trials.",
        f"{PAPER}, section 5",
        NEURAL,
        min_history=0,
    ),
)
