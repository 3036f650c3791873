"""dist-gp and its relatives: what they learn from training data, and what they do without."""

from collections.abc import Sequence
from unittest.mock import Mock

import numpy as np
import pytest
from by_hand import make_method
from histories import minimised

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.core.data import TaskData
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods import distbo
from hpobench_ordered.methods._distribution import models
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.registry import method_spec

SPACE = hbo.SearchSpace([hbo.Parameter.number("theta", -8, 8)])
SOURCES, SIMILAR = 8, 3
"""Numbers of earlier tasks, and of those, the first ones, that are like the current one."""


class Toy:
    """The toy example of section 5.1: the best theta is the mean of the task's data."""

    def __init__(self, seed: int, points: int = 60) -> None:
        rng = np.random.default_rng(seed)
        # Of the earlier tasks, `SOURCES`, the first ones, `SIMILAR`, are like the current task.
        similar_means = rng.normal(0, 1, SIMILAR)
        other_means = rng.normal(4, 1, SOURCES - SIMILAR)
        current_mean = rng.normal(0, 1)
        means = [*similar_means, *other_means, current_mean]
        samples = [rng.normal(mean, 1, (points, 1)) for mean in means]
        self.data = [hbo.TaskData(x, None, hbo.DataKind.UNSUPERVISED) for x in samples]
        self.history = [self._evaluate(task, rng) for task in range(SOURCES)]

    def _evaluate(self, task: int, rng: np.random.Generator) -> hbo.Evaluations:
        """Evaluate theta everywhere, and near the optimum."""
        anywhere = rng.uniform(-8, 8, 8)
        near_optimum = self.data[task].features.mean() + rng.normal(0, 1, 8)
        theta = np.clip(np.concatenate([anywhere, near_optimum]), -8, 8)
        losses = -self.compute_values(task, theta)
        return minimised(str(task), {}, theta[:, None], losses, SPACE)

    def compute_values(self, task: int, theta: FloatArray) -> FloatArray:
        """The objective, which is maximised; its maximum is 1."""
        return np.exp(-((theta - self.data[task].features.mean()) ** 2) / 2)

    def make_method(
        self,
        name: str,
        *,
        history: Sequence[hbo.Evaluations] | None = None,
        data: Sequence[TaskData | None] | None = None,
    ) -> hbo.Method:
        """A method with the toy's history and, if it uses data, the data of all tasks."""
        spec = method_spec(name)
        data_options = {}
        if spec.uses_data:
            data_options["data"] = self.data if data is None else data
        return spec.method(
            space=SPACE,
            rng=np.random.default_rng(0),
            history=self.history if history is None else history,
            context={},
            budget=5,
            **data_options,
        )

    def find_best_value(self, method: hbo.Method, trials: int) -> float:
        """Play a method on the current task, and return the best value.

        Checks that no suggestion was random for want of a model.
        """
        values = []
        for _ in range(trials):
            config = method.ask()
            value = float(self.compute_values(-1, config["theta"]))
            method.tell(config, -value)
            values.append(value)
        assert method.fallbacks == 0
        return max(values)


# -- what training data tell -----------------------------------------------------------------------


def mean_first_value(name: str) -> float:
    """Mean objective, at most 1, of the first suggestion on six toy examples."""
    toys = [Toy(seed) for seed in range(6)]
    return float(np.mean([toy.find_best_value(toy.make_method(name), trials=1) for toy in toys]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dist-gp", "dist-blr", "manual-gp"])
def test_first_suggestion_is_good_with_data(name):
    """By data, methods see which earlier tasks are like the current one; the best value is 1."""
    assert mean_first_value(name) > 0.6


@pytest.mark.slow
def test_first_suggestion_is_poor_without_data():
    """`multi-gp` does not use data, so that all earlier tasks look alike to it."""
    assert mean_first_value("multi-gp") < 0.3


def test_embeddings_reveal_similar_tasks():
    """The first tasks, `SIMILAR` of `SOURCES`, have data like the current task's."""
    method = Toy(0).make_method("dist-gp")
    method.ask()  # fits the model
    similarities = method.similarities()
    assert len(similarities) == SOURCES
    assert similarities[:SIMILAR].min() > similarities[SIMILAR:].max()


def test_similarities_are_nan_before_fit():
    method = Toy(0).make_method("dist-gp")
    assert np.isnan(method.similarities()).all()


def distance_from_earlier_bests(toy: Toy, config: Config) -> float:
    """Distance of theta from the nearest of the earlier tasks' best ones."""
    bests = [task.values[task.losses.argmin(), 0] for task in toy.history]
    return float(min(abs(config["theta"] - best) for best in bests))


@pytest.mark.slow
def test_regression_starts_with_earlier_best():
    """The linear model's first suggestion is an earlier task's best configuration."""
    toy = Toy(1)
    first = toy.make_method("dist-blr").ask()
    assert distance_from_earlier_bests(toy, first) < 1e-9


@pytest.mark.slow
def test_process_starts_anywhere():
    """The process need not begin with an earlier task's best configuration."""
    toy = Toy(1)
    first = toy.make_method("dist-gp").ask()
    # Here it does not: 1e-9 is for rounding.
    assert distance_from_earlier_bests(toy, first) > 1e-9


def test_warm_start_is_best_of_closest():
    """The first suggestions are the best configurations of the tasks closest by meta-features."""
    toy = Toy(2)
    *earlier_tasks, current_task = distbo.describe_tasks(toy.data)
    distances = np.linalg.norm(np.array(earlier_tasks) - current_task, axis=1)
    expected = []
    for task in np.argsort(distances)[: distbo.WARM_TASKS]:
        best_rows = np.argsort(toy.history[task].losses)[: distbo.WARM_PER_TASK]
        expected += toy.history[task].values[best_rows, 0].tolist()

    method = toy.make_method("init-gp")
    assert [method.ask()["theta"] for _ in expected] == expected


# -- which tasks are used --------------------------------------------------------------------------

NO_DATA = None
LABELLED = hbo.TaskData(np.zeros((60, 1)), np.zeros(60), hbo.DataKind.REGRESSION)
TWO_FEATURES = hbo.TaskData(np.zeros((5, 2)), None, hbo.DataKind.UNSUPERVISED)


@pytest.mark.parametrize(
    "name", ["dist-gp", pytest.param("dist-blr", marks=pytest.mark.slow), "manual-gp", "init-gp"]
)
@pytest.mark.parametrize("unusable", [NO_DATA, LABELLED])
def test_task_without_comparable_data_is_ignored(name, unusable):
    """As if there were neither the data nor the evaluations of that earlier task."""
    toy = Toy(3)
    # The third task's data are missing, or labelled while the others' are not.
    data = [*toy.data[:2], unusable, *toy.data[3:]]
    suggestion = toy.make_method(name, data=data).ask()

    remaining_history = toy.history[:2] + toy.history[3:]
    remaining_data = toy.data[:2] + toy.data[3:]
    expected = toy.make_method(name, history=remaining_history, data=remaining_data).ask()
    assert suggestion == expected


@pytest.mark.parametrize("name", ["dist-gp", pytest.param("dist-blr", marks=pytest.mark.slow)])
def test_embeddings_need_same_number_of_features(name):
    """The network that embeds the data of a task takes a fixed number of features."""
    toy = Toy(3)
    # A task whose data have two features, among tasks of one, counts as a task without data.
    with_other = toy.make_method(name, data=[*toy.data[:2], TWO_FEATURES, *toy.data[3:]])
    without = toy.make_method(name, data=[*toy.data[:2], NO_DATA, *toy.data[3:]])
    assert with_other.ask() == without.ask()


@pytest.mark.parametrize("name", ["manual-gp", "init-blr"])
def test_meta_features_compare_differing_data(name):
    """Two earlier tasks and the current one differ in features and classes, and no fit fails."""
    rng = np.random.default_rng(0)
    data = []
    for features, classes in ((3, 2), (5, 3), (4, 2)):
        X, labels = rng.standard_normal((40, features)), rng.integers(classes, size=40)
        data.append(hbo.TaskData(X, labels, hbo.DataKind.CLASSIFICATION))
    toy = Toy(5)
    method = toy.make_method(name, history=toy.history[:2], data=data)
    # Checks that no suggestion is random for want of a model.
    toy.find_best_value(method, trials=2)


def test_large_history_is_subsampled(monkeypatch):
    """Of 128 evaluations of earlier tasks, at most 50 are used."""
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
    """With the earlier tasks' data, or without any."""
    toy = Toy(0)
    data = [*toy.data[:-1], NO_DATA] if has_earlier else ()
    with pytest.raises(ExperimentError, match="training data of the task"):
        toy.make_method(name, data=data)


@each_user_of_data
def test_wrong_number_of_data_is_refused(name):
    """There must be data of every earlier task and, last, of the current one."""
    toy = Toy(0)  # of eight earlier tasks
    data_of_two_earlier_and_current_task = toy.data[-3:]
    with pytest.raises(ExperimentError, match=r"for 8 earlier tasks .* data of 3 tasks"):
        toy.make_method(name, data=data_of_two_earlier_and_current_task)


# -- poor fits and poor data -----------------------------------------------------------------------


def test_poor_fit_falls_back_to_random(monkeypatch):
    method = Toy(0).make_method("manual-gp")
    # A limit on the fitted loss that no fit satisfies.
    monkeypatch.setattr(models, "MAX_LOSS", -1e9)
    method.ask()
    assert method.fallbacks == 1
    assert np.isnan(method.similarities()).all()


def test_next_fit_after_poor_one_succeeds(monkeypatch):
    method = Toy(0).make_method("manual-gp")
    # A limit on the fitted loss that no fit satisfies.
    with monkeypatch.context() as patched:
        patched.setattr(models, "MAX_LOSS", -1e9)
        method.tell(method.ask(), 0.0)
    method.ask()
    assert method.fallbacks == 1
    assert np.isfinite(method.similarities()).all()


def test_failing_continuation_starts_anew(monkeypatch):
    """A model without noise may be unable to go on from a loss that it did not expect."""
    method = Toy(0).make_method("manual-gp")
    method.tell(method.ask(), 0.0)
    last_model = method._model
    monkeypatch.setattr(last_model, "fit", Mock(side_effect=ModelError("the fit is poor")))
    method.ask()
    assert method.fallbacks == 0
    # Another model was fitted from the start.
    assert method._model not in (None, last_model)


NORMAL_FEATURES = np.random.default_rng(0).standard_normal((40, 2))
POOR_DATA = {
    "constant labels": hbo.TaskData(NORMAL_FEATURES, np.full(40, 2.0), hbo.DataKind.REGRESSION),
    "one class": hbo.TaskData(NORMAL_FEATURES, np.zeros(40), hbo.DataKind.CLASSIFICATION),
    "class 1 alone": hbo.TaskData(NORMAL_FEATURES, np.ones(40), hbo.DataKind.CLASSIFICATION),
    "one point": hbo.TaskData(np.ones((1, 3)), np.zeros(1), hbo.DataKind.CLASSIFICATION),
    "two equal points": hbo.TaskData(np.ones((2, 3)), np.zeros(2), hbo.DataKind.REGRESSION),
}


@pytest.mark.parametrize(
    "name",
    [
        "manual-gp",
        pytest.param("dist-gp", marks=pytest.mark.slow),
        pytest.param("dist-gp-joint", marks=pytest.mark.slow),
        pytest.param("dist-blr", marks=pytest.mark.slow),
        pytest.param("init-blr", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("case", POOR_DATA)
@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_poor_data_cause_no_failure(name, case, sources):
    """Where all tasks have such data, no suggestion is random for want of a model."""
    toy = Toy(4)
    data = [POOR_DATA[case]] * (sources + 1)  # of the earlier tasks and the current one
    method = toy.make_method(name, history=toy.history[:sources], data=data)
    # Checks that there were no fallbacks to random suggestions.
    toy.find_best_value(method, trials=3)


# -- losses, candidates, features ------------------------------------------------------------------


def test_losses_far_above_others_are_clipped():
    """At 9.5: the upper quartile 2.5 plus twice its distance from the best, -1."""
    losses = np.array([-1.0, -0.5, 0.0, 0.5, 1.5, 1.0, 30.0, 2.5, 3.9])
    expected = np.array([-1.0, -0.5, 0.0, 0.5, 1.5, 1.0, 9.5, 2.5, 3.9])
    np.testing.assert_array_equal(distbo.clip_outliers(losses), expected)


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param([-1.0] * 20 + np.linspace(-0.9, 0.0, 12).tolist(), id="mostly optimal"),
        pytest.param([0.0] * 5, id="equal"),
        pytest.param([0.0, 0.0, 0.0, 9.0], id="equal but one"),
        pytest.param([3.0], id="single"),
    ],
)
def test_other_losses_are_not_clipped(losses):
    np.testing.assert_array_equal(distbo.clip_outliers(np.array(losses)), losses)


def test_newly_active_hyperparameters_get_values():
    """Candidates around a configuration without x may have the choice that activates it.

    x is active if the kind is d, the choice of index 3. `_refine` adds candidates around the best
    ones.
    """
    space = hbo.SearchSpace(
        [hbo.Parameter.choice("kind", [*"abcdefgh"]), hbo.Parameter.number("x", 0, 1)],
        conditions={"x": hbo.Compare(0, hbo.Comparison.EQUAL, (3.0,))},
    )
    method = make_method(method_spec("none-gp").method, space=space)
    for loss in range(6):
        method.tell(method.ask(), float(loss))
    method.make_scorer()  # fits the model
    random_candidates = space.canonical(np.random.default_rng(1).random((50, 2)))

    refined = method._refine(random_candidates)

    kind, x = space.decode(refined).T
    has_x = kind == 3
    assert has_x.any()
    np.testing.assert_array_equal(np.isnan(x), ~has_x)


@pytest.mark.parametrize(
    ("name", "choice_scale"), [("none-gp", 1.0), ("none-blr", distbo.CHOICE_SCALE)]
)
def test_networks_see_choices_closer(name, choice_scale):
    """Linear models on networks scale the distance of choices; processes do not."""
    space = hbo.SearchSpace([hbo.Parameter.choice("kind", "abc"), hbo.Parameter.number("x", 0, 1)])
    method = make_method(method_spec(name).method, space=space)
    # Pairs of a choice and a number: two that differ from the first in either.
    values = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    first, other_choice, other_number = method.features(space.encode(values))
    # Numbers uniform on [0, 1] are scaled to unit variance, by the root of 12.
    number_range = np.sqrt(12.0)
    assert np.linalg.norm(other_number - first) == pytest.approx(number_range)
    # Two columns of the one-hot code differ.
    expected = choice_scale * np.sqrt(2.0) * number_range
    assert np.linalg.norm(other_choice - first) == pytest.approx(expected)
