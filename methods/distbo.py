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
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.core.data import TaskData
from hpobench_ordered.core.extras import NEURAL, SKLEARN, Extra
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods._candidates import CANDIDATES
from hpobench_ordered.methods._model_based import (
    ModelBased,
    ModelError,
    Scorer,
    remove_failed_evaluations,
)
from hpobench_ordered.methods._multi_task import draw_sample_counts
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bo import group_features

if TYPE_CHECKING:
    from hpobench_ordered.methods._distribution.descriptions import Descriptions
    from hpobench_ordered.methods._distribution.models import (
        JointModel,
        Posterior,
        ProcessModel,
        TaskKernel,
    )
    from hpobench_ordered.methods._distribution.product_gp import Observations

XI = 0.01
"""Smallest improvement that counts, in standard deviations of all losses. In appendix A.3 it is in
accuracy; losses here may have any unit."""
KAPPA = 2.58
"""Standard deviations of the confidence bounds (appendix A.3)."""
VANISHED = -20.0
"""Log expected improvement below which the paper's program computes 0."""
MOST_OF_PROCESS, MOST_OF_LINEAR = 500, 1500
"""Number of evaluations of earlier tasks that a model uses, as in the paper's experiments. The time
of a step of a Gaussian process grows with their cube."""
WARM_TASKS, WARM_EACH = 3, 3
"""Number of closest tasks, and of best configurations of each, that `init-` starts with (section
5)."""
BEST, AROUND = 10, 20
"""Number of best candidates that are refined, and of configurations drawn around each."""
RADII = (0.1, 0.03, 0.01)
"""Standard deviations of these in the unit cube, one for each round."""
SPREAD = math.sqrt(12.0)
"""One over the standard deviation of the uniform distribution on [0, 1]."""

CHOICE = 0.25
"""Scale of one-hot columns in a network, relative to a number's range. With 1, two choices would
be 1.4 times as far apart as the ends of that range."""


class OneModel(ModelBased):
    """Bayesian optimisation with one model of the current and the earlier tasks.

    The first configuration minimises an upper confidence bound of the loss. The others maximise
    expected improvement or, if that vanishes, minimise a lower confidence bound. Candidates are
    about 1000 random ones and, in three rounds, others drawn closer and closer to the best.
    """

    random_trials = 0
    is_linear = False

    def prepare(self) -> None:
        """Set up the model, which is fitted when the first configuration is asked for."""
        self._earlier, self._data = self._usable()
        super().prepare()
        tasks = self._earlier
        counts = [len(task) for task in tasks]
        most = MOST_OF_LINEAR if self.is_linear else MOST_OF_PROCESS
        if sum(counts) > most:
            counts = draw_sample_counts(tasks, max(counts), most, self.rng)
        parts = [_part(task, n, self.rng) for task, n in zip(tasks, counts, strict=True)]
        self._task = np.repeat(np.arange(len(tasks)), counts)
        self._units = self._canonical([part.values for part in parts])
        self._source_losses = np.concatenate([np.empty(0), *(part.losses for part in parts)])
        self._bests = self._canonical([t.values[[int(np.argmin(t.losses))]] for t in tasks])
        self._model: JointModel | None = None
        self._refined_block = np.empty(0), np.empty(0)
        self._moments: Scorer
        self._acquisition: Scorer

    def with_data(self, task: TaskData | None) -> bool:
        """Whether an earlier task with these training data can be used. Default: always."""
        return True

    @abstractmethod
    def model(self) -> "JointModel":
        """Make the unfitted model of the earlier tasks and, last, the current one."""

    def make_scorer(self) -> Scorer:
        """Fit the model; the score is the acquisition function."""
        from hpobench_ordered.methods._distribution.product_gp import Observations
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement
        from hpobench_ordered.methods._gp.model import standardise

        units = np.concatenate([self._units, self.evaluated_units()])
        if not len(units):
            self._moments = lambda unit: np.empty((2, len(unit)))
            self._acquisition = lambda moments: self.rng.random(len(moments.T))
            return self._score
        y = standardise(
            without_outliers(np.concatenate([self._source_losses, self.evaluated_losses()]))
        )
        current = np.full(self.evaluation_count, len(self._earlier))
        groups, tasks = group_features(self.space), np.concatenate([self._task, current])
        data = Observations(self.features(units), groups, tasks, y)
        posterior = self._fitted(data)
        best = float(y[len(self._task) :].min(initial=math.inf))
        if self._pending:
            posterior, losses = posterior.with_fantasies(self.features(self.pending_units()))
            best = min(best, float(losses.min()))

        def acquisition(moments: FloatArray) -> FloatArray:
            mean: FloatArray = moments[0]
            sd: FloatArray = moments[1]
            if not self.evaluation_count:
                return -(mean + KAPPA * sd)
            improvement = log_expected_improvement(mean, sd, best - XI)
            if improvement.max() < VANISHED:
                return KAPPA * sd - mean
            return improvement

        self._moments = lambda unit: np.stack(posterior.predict(self.features(unit)))
        self._acquisition = acquisition
        return self._score

    def _score(self, unit: FloatArray) -> FloatArray:
        """Acquisition function of candidates, reusing moments computed by `_refined`."""
        block, moments = self._refined_block
        return self._acquisition(moments if unit is block else self._moments(unit))

    def _fitted(self, data: "Observations") -> "Posterior":
        """Fit from the parameters of the last fit; anew if there is none or it fails or is poor."""
        last, self._model = self._model, None
        if last is not None:
            with suppress(ModelError):
                posterior = last.fit(data)
                self._model = last
                return posterior
        model = self.model()
        posterior = model.fit(data)
        self._model = model
        return posterior

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Refined blocks of candidates; the first of a linear model are earlier tasks' best."""
        if self.is_linear and not self.evaluation_count and len(self._bests):
            yield self._bests
        if self.region.size > CANDIDATES:
            yield self._refined(self.region.sample_unit(self.rng, CANDIDATES))
        yield from super().iter_candidates()

    def features(self, unit: FloatArray) -> FloatArray:
        """Features (m, p) of canonical unit vectors (m, d), of mean 0 and variance 1."""
        return SPREAD * (self.region.features(unit) - 0.5)

    def _refined(self, block: FloatArray) -> FloatArray:
        """Candidates and, around the best of them, further ones, (m, d)."""
        moments = self._moments(block)
        scores = self._acquisition(moments)
        for radius in RADII:
            top = np.repeat(block[np.argsort(-scores, kind="stable")[:BEST]], AROUND, axis=0)
            inactive = np.isnan(top)  # may become active with another choice
            top[inactive] = self.rng.random(np.count_nonzero(inactive))
            moved = np.clip(top + radius * self.rng.standard_normal(top.shape), 0.0, 1.0)
            around = self.space.canonical(moved)
            block, added = np.concatenate([block, around]), self._moments(around)
            moments = np.concatenate([moments, added], axis=1)
            scores = np.concatenate([scores, self._acquisition(added)])
        self._refined_block = block, moments
        return block

    def _usable(self) -> tuple[list[Evaluations], list[TaskData | None]]:
        """Usable earlier tasks with finite losses, and training data of them and of this task."""
        given: Sequence[TaskData | None] = self.data or [None] * (len(self.history) + 1)
        if len(given) != len(self.history) + 1:
            raise ExperimentError(
                f"training data must be given for {len(self.history)} earlier tasks and the "
                f"current one, but got data of {len(given)} tasks"
            )
        tasks, data = list[Evaluations](), list[TaskData | None]()
        for task, own in zip(self.history, given, strict=False):
            if self.with_data(own) and (finite := remove_failed_evaluations([task])):
                tasks += finite
                data.append(own)
        return tasks, [*data, given[-1]]

    def _canonical(self, values: Sequence[FloatArray]) -> FloatArray:
        joined = np.concatenate([np.empty((0, self.space.dimension)), *values])
        return self.space.canonical(self.space.encode(joined))


class LooksAtData(OneModel):
    """Needs training data; earlier tasks without any, or with another kind, are left out."""

    def prepare(self) -> None:
        """Check that the current task has training data."""
        if not self.data or self.data[-1] is None:
            raise ExperimentError(
                "the method uses the training data of the task, but the task has none: every "
                "optimised task needs some"
            )
        super().prepare()

    def with_data(self, task: TaskData | None) -> bool:
        """Whether the data have the same kind as the current task's."""
        here = self.data[-1]
        return task is not None and here is not None and task.kind is here.kind

    @property
    def known(self) -> list[TaskData]:
        """Training data of the earlier tasks and, last, the current one."""
        return [one for one in self._data if one is not None]


class Embeds(LooksAtData):
    """Embeds the features; tasks with another number of features are left out, too."""

    def with_data(self, task: TaskData | None) -> bool:
        """Whether the data have the same kind and number of features as the current task's."""
        here = self.data[-1]
        if task is None or here is None or task.features.shape[1] != here.features.shape[1]:
            return False
        return super().with_data(task)


class Process(OneModel):
    """The model is a Gaussian process."""

    def model(self) -> "ProcessModel":
        """A Gaussian process on configuration and task."""
        from hpobench_ordered.methods._distribution.models import ProcessModel

        return ProcessModel(self.tasks(), self.space.dimension, self.rng)

    @abstractmethod
    def tasks(self) -> "TaskKernel":
        """Covariance of the earlier tasks and, last, the current one."""

    def similarities(self) -> FloatArray:
        """Last fitted correlation of every earlier task with the current one, (tasks,), or NaN."""
        from hpobench_ordered.methods._distribution.models import ProcessModel

        if not isinstance(self._model, ProcessModel):
            return np.full(len(self._earlier), np.nan)
        return self._model.similarities()


class Linear(OneModel):
    """The model is Bayesian linear regression on a network."""

    is_linear = True

    def features(self, unit: FloatArray) -> FloatArray:
        """Features as in other models, with narrower columns of choices."""
        features = super().features(unit)
        groups = group_features(self.space)
        is_choice = np.bincount(groups)[groups] > 1
        return np.where(is_choice, CHOICE * features, features)

    def model(self) -> "JointModel":
        """Bayesian linear regression on a network of configuration and task."""
        from hpobench_ordered.methods._distribution.models import LinearModel

        width = self.features(np.empty((0, self.space.dimension))).shape[1]
        return LinearModel(self.descriptions(), width, self.rng)

    @abstractmethod
    def descriptions(self) -> "Descriptions":
        """Descriptions of the earlier tasks and, last, the current one."""


class DistGP(Embeds, Process):
    """distGP: a Gaussian process with embeddings of the tasks' training data.

    Attributes:
        joint: Whether the joint distribution is embedded, else marginal and conditional.
    """

    joint = False

    def tasks(self) -> "TaskKernel":
        """Covariance of the embeddings."""
        from hpobench_ordered.methods._distribution.descriptions import Learned
        from hpobench_ordered.methods._distribution.models import DescribedTasks

        return DescribedTasks(Learned(self.known, joint=self.joint))


class DistGPJoint(DistGP):
    """distGP with the joint distribution of features and labels."""

    joint = True


class DistBLR(Embeds, Linear):
    """distBLR: Bayesian linear regression with embeddings of the tasks' training data.

    Attributes:
        joint: Whether the joint distribution is embedded, else marginal and conditional.
    """

    joint = False

    def descriptions(self) -> "Descriptions":
        """The embeddings."""
        from hpobench_ordered.methods._distribution.descriptions import Learned

        return Learned(self.known, joint=self.joint)


class DistBLRJoint(DistBLR):
    """distBLR with the joint distribution of features and labels."""

    joint = True


class ManualGP(LooksAtData, Process):
    """manualGP: a Gaussian process with handcrafted meta-features of the tasks' training data."""

    def tasks(self) -> "TaskKernel":
        """Covariance of the meta-features and sizes."""
        from hpobench_ordered.methods._distribution.descriptions import Given
        from hpobench_ordered.methods._distribution.models import DescribedTasks

        return DescribedTasks(Given(described(self.known)))


class ManualBLR(LooksAtData, Linear):
    """manualBLR: Bayesian linear regression with handcrafted meta-features."""

    def descriptions(self) -> "Descriptions":
        """Meta-features and sizes."""
        from hpobench_ordered.methods._distribution.descriptions import Given

        return Given(described(self.known))


class MultiGP(Process):
    """multiGP: a Gaussian process with a free covariance of the tasks; one random trial."""

    random_trials = 1

    def tasks(self) -> "TaskKernel":
        """A free covariance L L^T, where the entries of L are positive."""
        from hpobench_ordered.methods._distribution.models import FreeTasks

        return FreeTasks(len(self._earlier) + 1)


class MultiBLR(Linear):
    """multiBLR: Bayesian linear regression with the one-hot task as input; one random trial."""

    random_trials = 1

    def descriptions(self) -> "Descriptions":
        """One-hot coding of the tasks."""
        from hpobench_ordered.methods._distribution.descriptions import Given

        return Given(np.eye(len(self._earlier) + 1))


class NoneGP(Process):
    """noneGP: a Gaussian process of the current task alone, after random trials."""

    random_trials = 5

    def with_data(self, task: TaskData | None) -> bool:
        """Earlier tasks are of no use."""
        return False

    def tasks(self) -> "TaskKernel":
        """The trivial covariance of one task."""
        from hpobench_ordered.methods._distribution.descriptions import Given
        from hpobench_ordered.methods._distribution.models import DescribedTasks

        return DescribedTasks(Given(np.empty((1, 0))))


class NoneBLR(Linear):
    """noneBLR: Bayesian linear regression of the current task alone, after random trials."""

    random_trials = 5

    def with_data(self, task: TaskData | None) -> bool:
        """Earlier tasks are of no use."""
        return False

    def descriptions(self) -> "Descriptions":
        """Nothing."""
        from hpobench_ordered.methods._distribution.descriptions import Given

        return Given(np.empty((1, 0)))


class WarmStarted(LooksAtData):
    """A model of the current task alone, started with the best configurations of similar tasks."""

    def initial_configurations(self) -> Sequence[Config]:
        """The best configurations of the closest tasks, closest first."""
        if not self._earlier:
            return ()
        table = described(self.known)
        distances = np.square(table[:-1] - table[-1]).sum(axis=1)
        closest = [self._earlier[t] for t in np.argsort(distances, kind="stable")[:WARM_TASKS]]
        best = [t.values[np.argsort(t.losses, kind="stable")[:WARM_EACH]] for t in closest]
        self._earlier, self._data = [], self._data[-1:]  # the model does not use them
        return self.space.configs(np.concatenate(best))


class InitGP(WarmStarted, NoneGP):
    """initGP: noneGP started with the best configurations of the closest tasks by meta-features."""

    random_trials = 0


class InitBLR(WarmStarted, NoneBLR):
    """initBLR: noneBLR started with the best configurations of the closest tasks."""

    random_trials = 0


def described(data: Sequence[TaskData]) -> FloatArray:
    """Meta-features of training data, scaled to [0, 1] over the tasks, and sizes; (T, q)."""
    from hpobench_ordered.methods._distribution.descriptions import relative_sizes
    from hpobench_ordered.methods._meta_features import meta_features, normalised

    labels = [one.labels for one in data if one.labels is not None]
    classes = 1 + max((int(each.max()) for each in labels), default=0)
    table = normalised(np.stack([meta_features(one, classes=classes) for one in data]))
    return np.hstack([table, relative_sizes(data)[:, None]])


def without_outliers(losses: FloatArray) -> FloatArray:
    """Clip losses (n,) at their upper quartile plus twice its distance from the best.

    The median is not used, because most losses of a good optimiser are near the best.
    """
    quartile = float(np.sort(losses)[3 * (len(losses) - 1) // 4])
    below = quartile - float(losses.min())
    return np.minimum(losses, quartile + 2.0 * below) if below > 0.0 else losses


def _part(task: Evaluations, count: int, rng: np.random.Generator) -> Evaluations:
    """Random evaluations of a task, in their order."""
    if count == len(task):
        return task
    rows = np.sort(rng.permutation(len(task))[:count])
    return replace(task, values=task.values[rows], objective=task.objective[rows])


PAPER = "Law et al. (2019), Hyperparameter learning via distributional transfer"
EMBEDDED = f"{PAPER}, section 4: networks of 20 and 10 units on features and labels"


def _spec(
    name: str,
    method: type[OneModel],
    summary: str,
    source: str,
    *extras: Extra,
    min_history: int = 1,
) -> MethodSpec:
    return MethodSpec(
        name=name,
        method=method,
        summary=summary,
        source=source,
        min_history=min_history,
        version=5 if issubclass(method, Linear) else 4,
        uses_data=issubclass(method, LooksAtData),
        extras=extras,
        uses_history=min_history > 0,
        changed_spaces=min_history == 0,
    )


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
