"""dist-gp and its relatives: what they learn from training data, and what they do without."""

from collections.abc import Sequence

import numpy as np
import pytest
from by_hand import make_method
from histories import minimised

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.data import DataKind, TaskData
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods import distbo
from hpobench_ordered.methods._distribution import models
from hpobench_ordered.methods.registry import method_spec

SPACE = hbo.SearchSpace([hbo.Parameter.number("theta", -8, 8)])
SOURCES = 8
"""Number of earlier tasks."""
SIMILAR = 3
"""Number of these, the first ones, that are like the current task."""
CURRENT_TASK = -1
"""Index of the current task among the data, which have it last."""


class Toy:
    """The toy example of section 5.1: the best theta is the mean of the task's data."""

    def __init__(self, seed: int) -> None:
        """Draw the data of all tasks, and evaluations of the earlier ones."""
        rng = np.random.default_rng(seed)
        # Data of the first earlier tasks have a mean near 0, like those of the current task; data
        # of the others have a mean near 4.
        similar_means = rng.normal(0, 1, SIMILAR)
        other_means = rng.normal(4, 1, SOURCES - SIMILAR)
        current_mean = rng.normal(0, 1)
        means = [*similar_means, *other_means, current_mean]
        samples = [rng.normal(mean, 1, (60, 1)) for mean in means]  # 60 points, one feature
        self.data = [TaskData(x, None, DataKind.UNSUPERVISED) for x in samples]
        self.history = [self._evaluate(task, rng) for task in range(SOURCES)]

    def _evaluate(self, task: int, rng: np.random.Generator) -> hbo.Evaluations:
        """Evaluate theta at eight random places of its range, and at eight near the optimum."""
        anywhere = rng.uniform(-8, 8, size=8)
        near_optimum = self.data[task].features.mean() + rng.normal(0, 1, size=8)
        theta = np.clip(np.concatenate([anywhere, near_optimum]), -8, 8)
        losses = -self.compute_values(task, theta)
        return minimised(str(task), {}, theta[:, None], losses, SPACE)

    def compute_values(self, task: int, theta: FloatArray) -> FloatArray:
        """The objective of a task, which is maximised; its maximum is 1."""
        best_theta = self.data[task].features.mean()
        return np.exp(-((theta - best_theta) ** 2) / 2)

    def make_method(
        self,
        name: str,
        *,
        history: Sequence[hbo.Evaluations] | None = None,
        data: Sequence[TaskData | None] | None = None,
    ) -> hbo.Method:
        """A method on the current task, by default with the toy's history and data of all tasks.

        Methods that do not use data take none.
        """
        if history is None:
            history = self.history
        if data is None:
            data = self.data
        spec = method_spec(name)
        data_option = {"data": data} if spec.uses_data else {}
        return spec.method(
            space=SPACE,
            rng=np.random.default_rng(0),
            history=history,
            context={},
            budget=5,
            **data_option,
        )

    def find_best_value(self, method: hbo.Method, trials: int) -> float:
        """Play a method on the current task, and return the best value.

        Checks that no suggestion was random for want of a model.
        """
        values = []
        for _ in range(trials):
            config = method.ask()
            value = float(self.compute_values(CURRENT_TASK, config["theta"]))
            method.tell(config, -value)
            values.append(value)
        assert method.fallbacks == 0
        return max(values)


# -- what training data tell -----------------------------------------------------------------------


def compute_mean_first_value(name: str) -> float:
    """Mean objective, at most 1, of a method's first suggestion on six toy examples."""
    first_values = []
    for seed in range(6):
        toy = Toy(seed)
        method = toy.make_method(name)
        first_values.append(toy.find_best_value(method, trials=1))
    return float(np.mean(first_values))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dist-gp", "dist-blr", "manual-gp"])
def test_first_suggestion_is_good_with_data(name):
    """By data, methods see which earlier tasks are like the current one; the best value is 1."""
    assert compute_mean_first_value(name) > 0.6


@pytest.mark.slow
def test_first_suggestion_is_poor_without_data():
    """`multi-gp` does not use data, so that all earlier tasks look alike to it."""
    assert compute_mean_first_value("multi-gp") < 0.3


def test_embeddings_reveal_similar_tasks():
    """The first tasks, `SIMILAR` of `SOURCES`, have data like the current task's."""
    method = Toy(0).make_method("dist-gp")
    method.ask()  # fits the model
    similarities = method.similarities()
    assert len(similarities) == SOURCES
    assert similarities[:SIMILAR].min() > similarities[SIMILAR:].max()


def distance_from_earlier_bests(toy: Toy, config: Config) -> float:
    """Distance of theta from the nearest of the values that were best on the earlier tasks."""
    distances = []
    for task in toy.history:
        (best_theta,) = task.values[task.losses.argmin()]
        distances.append(abs(config["theta"] - best_theta))
    return float(min(distances))


@pytest.mark.slow
def test_regression_starts_with_earlier_best():
    """The linear model's first suggestion is an earlier task's best configuration."""
    toy = Toy(1)
    first = toy.make_method("dist-blr").ask()
    assert distance_from_earlier_bests(toy, first) < 1e-9


def test_warm_start_is_best_of_closest():
    """The first suggestions are the best configurations of the tasks closest by meta-features."""
    toy = Toy(2)
    *earlier_tasks, current_task = distbo.describe_tasks(toy.data)
    distances = np.linalg.norm(np.array(earlier_tasks) - current_task, axis=1)
    closest_tasks = np.argsort(distances)[: distbo.WARM_TASKS]
    expected = []
    for number in closest_tasks:
        task = toy.history[number]
        best_rows = np.argsort(task.losses)[: distbo.WARM_PER_TASK]
        expected += task.values[best_rows, 0].tolist()

    method = toy.make_method("init-gp")
    first_suggestions = [method.ask()["theta"] for _ in expected]
    assert first_suggestions == expected


def test_warm_start_is_best_of_most_similar():
    """`dist-gp-warm` starts with the best of the tasks that its model finds most similar.

    These are the `SIMILAR` first ones, as many as it takes; the order depends on the model.
    """
    toy = Toy(0)
    expected = []
    for task in toy.history[:SIMILAR]:
        best_rows = np.argsort(task.losses)[: distbo.WARM_PER_TASK]
        expected += task.values[best_rows, 0].tolist()

    method = toy.make_method("dist-gp-warm")
    first_suggestions = [method.ask()["theta"] for _ in expected]
    assert sorted(first_suggestions) == sorted(expected)


@pytest.mark.slow
def test_regression_warms_among_earlier_bests():
    """The first nine suggestions of `dist-blr-warm` are among three best of each earlier task."""
    toy = Toy(1)
    bests = []
    for task in toy.history:
        bests += task.values[np.argsort(task.losses)[:3], 0].tolist()
    method = toy.make_method("dist-blr-warm")
    for _ in range(9):
        config = method.ask()
        assert np.abs(np.array(bests) - config["theta"]).min() < 1e-9
        method.tell(config, -float(toy.compute_values(CURRENT_TASK, config["theta"])))


# -- which tasks are used --------------------------------------------------------------------------

NO_DATA = None
LABELLED = TaskData(np.zeros((60, 1)), np.zeros(60), DataKind.REGRESSION)
TWO_FEATURES = TaskData(np.zeros((5, 2)), None, DataKind.UNSUPERVISED)


@pytest.mark.parametrize(
    "name", ["dist-gp", pytest.param("dist-blr", marks=pytest.mark.slow), "manual-gp", "init-gp"]
)
@pytest.mark.parametrize("unusable", [NO_DATA, LABELLED])
def test_task_without_comparable_data_is_ignored(name, unusable):
    """The data of one earlier task are unusable: missing, or labelled while the others' are not.

    The method suggests what it does without the data and the evaluations of that task.
    """
    toy = Toy(3)
    data = toy.data.copy()
    data[2] = unusable
    suggestion = toy.make_method(name, data=data).ask()

    # Without the third task.
    remaining_history = toy.history[:2] + toy.history[3:]
    remaining_data = toy.data[:2] + toy.data[3:]
    expected = toy.make_method(name, history=remaining_history, data=remaining_data).ask()
    assert suggestion == expected


@pytest.mark.parametrize("name", ["dist-gp", pytest.param("dist-blr", marks=pytest.mark.slow)])
def test_embeddings_need_same_number_of_features(name):
    """The network that embeds the data of a task takes a fixed number of features, here one.

    A task whose data have two counts as a task without data.
    """
    toy = Toy(3)
    data_with_two_features = toy.data.copy()
    data_with_two_features[2] = TWO_FEATURES
    data_with_none = toy.data.copy()
    data_with_none[2] = NO_DATA
    with_other = toy.make_method(name, data=data_with_two_features)
    without = toy.make_method(name, data=data_with_none)
    assert with_other.ask() == without.ask()


@pytest.mark.parametrize("name", ["manual-gp", "init-blr"])
def test_meta_features_compare_differing_data(name):
    """Two earlier tasks and the current one differ in features and classes, and no fit fails."""
    rng = np.random.default_rng(0)
    data = []
    numbers_of_features_and_classes = ((3, 2), (5, 3), (4, 2))
    for features, classes in numbers_of_features_and_classes:
        X = rng.standard_normal((40, features))
        labels = rng.integers(classes, size=40)
        data.append(TaskData(X, labels, DataKind.CLASSIFICATION))
    toy = Toy(5)
    method = toy.make_method(name, history=toy.history[:2], data=data)
    # Checks that no suggestion is random for want of a model.
    toy.find_best_value(method, trials=2)


def test_large_history_is_subsampled(monkeypatch):
    """Of 128 evaluations of eight earlier tasks, at most 50 are used."""
    monkeypatch.setattr(distbo, "MAX_SOURCES_OF_PROCESS", 50)
    toy = Toy(0)
    method = toy.make_method("multi-gp")
    assert len(method._source_losses) == 50
    # With them, suggestions can be made.
    assert toy.find_best_value(method, trials=4) > 0


each_user_of_data = pytest.mark.parametrize("name", ["dist-gp", "manual-blr", "init-blr"])


@each_user_of_data
@pytest.mark.parametrize("has_earlier", [False, True])
def test_missing_current_data_are_refused(name, has_earlier):
    """There are data of the earlier tasks alone, or none at all."""
    toy = Toy(0)
    data = [*toy.data[:-1], NO_DATA] if has_earlier else ()
    with pytest.raises(ExperimentError, match="training data of the task"):
        toy.make_method(name, data=data)


# -- poor fits and poor data -----------------------------------------------------------------------


def test_poor_fit_falls_back_to_random(monkeypatch):
    """Where the fit is refused as poor, the suggestion is random, and counted as a fallback."""
    method = Toy(0).make_method("manual-gp")
    # A fit is poor if its minus log likelihood is above this limit, as here any fit's is.
    monkeypatch.setattr(models, "MAX_NATS_PER_EVALUATION", -1e9)
    method.ask()
    assert method.fallbacks == 1
    # Similarities of tasks are those of a model, and there is none.
    assert np.isnan(method.similarities()).all()


# -- losses, candidates, features ------------------------------------------------------------------


def test_losses_far_above_others_are_clipped():
    """Losses are clipped at the upper quartile plus twice its distance from the best loss."""
    losses = np.array([-1.0, -0.5, 0.0, 0.5, 1.5, 1.0, 30.0, 2.5, 3.9])
    limit = 2.5 + 2 * (2.5 - -1.0)
    expected = np.array([-1.0, -0.5, 0.0, 0.5, 1.5, 1.0, limit, 2.5, 3.9])
    np.testing.assert_array_equal(distbo.clip_outliers(losses), expected)


@pytest.mark.parametrize(
    ("name", "choice_scale"), [("none-gp", 1.0), ("none-blr", distbo.CHOICE_SCALE)]
)
def test_networks_see_choices_closer(name, choice_scale):
    """Linear models on networks scale the columns of choices; Gaussian processes do not.

    At full scale, two choices are farther apart than the ends of a number's range.
    """
    space = hbo.SearchSpace([hbo.Parameter.choice("kind", "abc"), hbo.Parameter.number("x", 0, 1)])
    method = make_method(method_spec(name).method, space=space)
    # A choice and a number, and configurations that differ from the first in one of them.
    values = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    first, other_choice, other_number = method.features(space.encode(values))
    distance_of_numbers = np.linalg.norm(other_number - first)
    distance_of_choices = np.linalg.norm(other_choice - first)

    # Features in [0, 1] are multiplied by the root of 12, so that uniform ones have variance 1.
    range_of_features = np.sqrt(12.0)
    assert distance_of_numbers == pytest.approx(range_of_features)
    # Two one-hot columns differ.
    distance_at_full_scale = np.sqrt(2.0) * range_of_features
    assert distance_of_choices == pytest.approx(choice_scale * distance_at_full_scale)
