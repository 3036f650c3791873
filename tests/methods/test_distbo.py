"""Methods that look at training data, and what they were compared with."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from by_hand import make
from histories import minimised

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods import distbo
from hpobench_ordered.methods._distribution import models
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.registry import method_spec

SPACE = hbo.SearchSpace([hbo.Parameter.number("theta", -8, 8)])
UNSUPERVISED = hbo.DataKind.UNSUPERVISED
LEARNED = ("dist-gp", "dist-gp-joint", "dist-blr", "init-blr")
SOURCES = 8
SIMILAR = 3
"""The first so many source tasks are like the current one."""


class Toy:
    """The toy example of section 5.1: the best theta is the mean of the data."""

    def __init__(self, seed: int, points: int = 60) -> None:
        rng = np.random.default_rng(seed)
        means = np.concatenate([rng.normal(0, 1, SIMILAR), rng.normal(4, 1, SOURCES - SIMILAR)])
        samples = [rng.normal(mean, 1, (points, 1)) for mean in (*means, rng.normal(0, 1))]
        self.data = [hbo.TaskData(sample, None, UNSUPERVISED) for sample in samples]
        self.history = []
        for t in range(SOURCES):
            theta = np.concatenate([rng.uniform(-8, 8, 8), samples[t].mean() + rng.normal(0, 1, 8)])
            theta = np.clip(theta, -8, 8)
            losses = -self.value(t, theta)
            self.history.append(minimised(str(t), {}, theta[:, None], losses, SPACE))

    def value(self, task: int, theta: Any) -> Any:
        return np.exp(-((theta - self.data[task].features.mean()) ** 2) / 2)

    def method(self, name: str, **changes: Any) -> Any:
        spec = method_spec(name)
        setting = {"history": self.history, "context": {}, "budget": 5, "space": SPACE}
        if spec.uses_data:
            setting["data"] = self.data
        return spec.method(rng=np.random.default_rng(0), **(setting | changes))

    def best(self, method: Any, trials: int) -> float:
        best = 0.0
        for _ in range(trials):
            config = method.ask()
            value = float(self.value(-1, config["theta"]))
            method.tell(config, -value)
            best = max(best, value)
        assert method.fallbacks == 0
        return best


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["dist-gp", pytest.param("dist-blr", marks=pytest.mark.slow), "manual-gp"]
)
def test_what_the_data_say_is_enough_for_a_good_start(name):
    toys = [Toy(seed) for seed in range(6)]
    assert np.mean([toy.best(toy.method(name), 1) for toy in toys]) > 0.6
    assert np.mean([toy.best(toy.method("multi-gp"), 1) for toy in toys]) < 0.3


def test_embeddings_tell_the_similar_tasks():
    toy = Toy(0)
    method = toy.method("dist-gp")
    assert np.isnan(method.similarities()).all()
    method.ask()
    similar = method.similarities()
    assert similar.shape == (SOURCES,)
    assert similar[:SIMILAR].min() > similar[SIMILAR:].max()


@pytest.mark.slow
def test_first_suggestion_of_the_regression_is_the_best_of_an_earlier_task():
    toy = Toy(1)
    bests = {float(task.values[task.losses.argmin(), 0]) for task in toy.history}
    linear, process = (toy.method(name).ask()["theta"] for name in ("dist-blr", "dist-gp"))
    assert min(abs(linear - best) for best in bests) < 1e-9
    assert min(abs(process - best) for best in bests) > 1e-9


def test_after_a_poor_fit_the_next_one_starts_anew(monkeypatch):
    """A model without noise may be unable to go on from a loss that it did not expect."""
    method = Toy(0).method("manual-gp")
    with monkeypatch.context() as changed:
        changed.setattr(models, "MAX_LOSS", -1e9)
        method.tell(method.ask(), 0.0)
    assert method.fallbacks == 1 and np.isnan(method.similarities()).all()
    method.ask()
    assert method.fallbacks == 1 and np.isfinite(method.similarities()).all()
    last = method._model
    monkeypatch.setattr(last, "fit", Mock(side_effect=ModelError("the fit is poor")))
    method.ask()
    assert method.fallbacks == 1 and method._model not in (None, last)


def test_warm_start_is_the_best_of_the_closest_tasks():
    toy = Toy(2)
    method = toy.method("init-gp")
    asked = [method.ask()["theta"] for _ in range(distbo.WARM_TASKS * distbo.WARM_PER_TASK)]
    table = distbo.describe_tasks(toy.data)
    closest = np.argsort(np.linalg.norm(table[:-1] - table[-1], axis=1))[: distbo.WARM_TASKS]
    expected: list[float] = []
    for t in closest:
        order = np.argsort(toy.history[t].losses)[: distbo.WARM_PER_TASK]
        expected += toy.history[t].values[order, 0].tolist()
    assert asked == expected


@pytest.mark.parametrize(
    "name", ["dist-gp", pytest.param("dist-blr", marks=pytest.mark.slow), "manual-gp", "init-gp"]
)
def test_a_task_without_data_or_with_others_is_left_out(name):
    toy = Toy(3)
    history, data = (few[:2] + few[3:] for few in (toy.history, toy.data))
    expected = toy.method(name, history=history, data=data).ask()
    more_features = hbo.TaskData(np.zeros((5, 2)), None, UNSUPERVISED)
    labelled = hbo.TaskData(toy.data[2].features, np.zeros(60), hbo.DataKind.REGRESSION)
    others = [None, labelled, *([more_features] if name.startswith("dist") else [])]
    for other in others:
        data = [*toy.data[:2], other, *toy.data[3:]]
        assert toy.method(name, data=data).ask() == expected


def test_meta_features_compare_data_with_other_features_and_classes():
    rng, toy, kind = np.random.default_rng(0), Toy(5), hbo.DataKind.CLASSIFICATION
    data = [
        hbo.TaskData(rng.standard_normal((40, p)), rng.integers(classes, size=40), kind)
        for p, classes in ((3, 2), (5, 3), (4, 2))
    ]
    for name in ("manual-gp", "init-blr"):
        toy.best(toy.method(name, history=toy.history[:2], data=data), 2)


@pytest.mark.parametrize("name", ["dist-gp", "manual-blr", "init-blr"])
def test_without_data_of_the_current_task_nothing_is_made(name):
    toy = Toy(0)
    for data in ((), [*toy.data[:-1], None]):
        with pytest.raises(ExperimentError, match="training data of the task"):
            toy.method(name, data=data)
    with pytest.raises(ExperimentError, match=r"for 8 earlier tasks .* data of 3 tasks"):
        toy.method(name, data=toy.data[-3:])


@pytest.mark.parametrize(
    "name",
    ["manual-gp", *(pytest.param(name, marks=pytest.mark.slow) for name in LEARNED)],
)
@pytest.mark.parametrize(
    ("kind", "labels", "points"),
    [
        (hbo.DataKind.REGRESSION, 2.0, 40),
        (hbo.DataKind.CLASSIFICATION, 0.0, 40),
        (hbo.DataKind.CLASSIFICATION, 1.0, 40),
        (hbo.DataKind.CLASSIFICATION, 0.0, 1),
        (hbo.DataKind.REGRESSION, 0.0, 2),
    ],
    ids=["constant labels", "one class", "class 1 alone", "one point", "two equal points"],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_data_that_tell_nothing(name, kind, labels, points):
    toy, features = Toy(4), np.ones((points, 3))
    if points > 2:
        features = np.random.default_rng(0).standard_normal((points, 2))
    data = hbo.TaskData(features, np.full(points, labels), kind)
    for sources in (1, 2):
        method = toy.method(name, history=toy.history[:sources], data=[data] * (sources + 1))
        toy.best(method, 3)


def test_of_many_evaluations_a_part_is_used(monkeypatch):
    monkeypatch.setattr(distbo, "MAX_SOURCES_OF_PROCESS", 50)
    toy = Toy(0)
    assert toy.best(toy.method("multi-gp"), 4) > 0


def test_only_losses_far_above_the_others_are_cut_off():
    losses = np.array([-1.0, -0.5, 0.0, 0.5, 1.5, 1.0, 30.0, 2.5, 3.9])
    cut = distbo.clip_outliers(losses)
    np.testing.assert_array_equal(cut, [-1.0, -0.5, 0.0, 0.5, 1.5, 1.0, 9.5, 2.5, 3.9])
    optimised = np.concatenate([np.full(20, -1.0), np.linspace(-0.9, 0.0, 12)])
    for same in (optimised, np.zeros(5), np.array([0.0, 0.0, 0.0, 9.0]), np.array([3.0])):
        np.testing.assert_array_equal(distbo.clip_outliers(same), same)


def test_what_another_choice_makes_active_has_a_value():
    """Candidates around a configuration without x may have the choice that asks for one."""
    space = hbo.SearchSpace(
        [hbo.Parameter.choice("kind", [*"abcdefgh"]), hbo.Parameter.number("x", 0, 1)],
        conditions={"x": hbo.Compare(0, hbo.Comparison.EQUAL, (3.0,))},
    )
    method = make(method_spec("none-gp").method, space=space)
    for index in range(6):
        method.tell(method.ask(), float(index))
    method.make_scorer()
    refined = method._refine(space.canonical(np.random.default_rng(1).random((50, 2))))
    values = space.decode(refined)
    assert (values[:, 0] == 3).any()
    assert np.array_equal(np.isnan(values[:, 1]), values[:, 0] != 3)


@pytest.mark.parametrize(("name", "width"), [("none-gp", 1.0), ("none-blr", 0.25)])
def test_in_networks_choices_are_closer(name, width):
    """A one-hot column is that wide, as part of the range of a number, sqrt(12)."""
    space = hbo.SearchSpace([hbo.Parameter.choice("kind", "abc"), hbo.Parameter.number("x", 0, 1)])
    method = make(method_spec(name).method, space=space)
    a, b, far = method.features(space.encode(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])))
    assert np.linalg.norm(a - far) == pytest.approx(np.sqrt(12.0))
    assert np.linalg.norm(a - b) == pytest.approx(width * np.sqrt(24.0))
