"""Speed of coding whole arrays, as ratios to one hyperparameter after the other in the same run."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from hpobench_ordered import load
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods import bo
from hpobench_ordered.methods._gp import acquisition, model
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind

CANDIDATES = 1000
CONDITIONAL, LOG_INTEGERS = "yahpo-svm-1220", "retrain-bike-sharing-mlp"


@pytest.fixture(scope="module", params=[CONDITIONAL, LOG_INTEGERS])
def space(request) -> SearchSpace:
    return load(request.param).space


def seconds(function: Callable[[], object], *, repeats: int = 30, times: int = 10) -> float:
    """Least CPU time of a call: what is slower was disturbed."""
    function()
    measured = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(times):
            function()
        measured.append((time.process_time() - start) / times)
    return min(measured)


def canonical_by_column(space: SearchSpace, unit: FloatArray) -> FloatArray:
    unit = unit.copy()
    for j, p in enumerate(space.parameters):
        if p.is_discrete:
            unit[:, j] = p.encode(p.decode(unit[:, j]))
    return unit


def features_by_column(space: SearchSpace, unit: FloatArray) -> FloatArray:
    columns = []
    for p, column in zip(space.parameters, unit.T, strict=True):
        if p.kind is Kind.CATEGORICAL:
            index = np.floor(column * len(p.choices))
            columns += [(index == k).astype(np.float64) for k in range(len(p.choices))]
        else:
            columns.append(np.where(np.isnan(column), 0.5, column))
    return np.stack(columns, axis=1)


def decode_by_column(space: SearchSpace, unit: FloatArray) -> FloatArray:
    return np.stack([p.decode(unit[:, j]) for j, p in enumerate(space.parameters)], axis=1)


def test_candidates_are_snapped_in_half_the_time_of_column_by_column():
    space = load(LOG_INTEGERS).space
    drawn = np.random.default_rng(0).random((CANDIDATES, space.dimension))
    whole = seconds(lambda: space.canonical(drawn))
    assert whole < 0.5 * seconds(lambda: canonical_by_column(space, drawn))


def test_features_take_half_the_time_of_column_by_column(space):
    unit = space.sample_unit(np.random.default_rng(0), CANDIDATES)
    whole = seconds(lambda: space.features(unit))
    assert whole < 0.5 * seconds(lambda: features_by_column(space, unit))


def test_one_configuration_is_decoded_faster_than_column_by_column(space):
    unit = space.sample_unit(np.random.default_rng(0), 1)
    assert seconds(lambda: space.decode(unit)) < 0.8 * seconds(
        lambda: decode_by_column(space, unit)
    )


def test_random_search_takes_a_fraction_of_drawing_one_by_one(space):
    rng = np.random.default_rng(0)
    method = RandomSearch(space=space, rng=rng, history=(), context={}, budget=25)
    in_blocks = seconds(method.ask, times=100)
    assert in_blocks < 0.5 * seconds(lambda: space.sample(rng), times=100)


def test_a_suggestion_of_bo_takes_at_most_thrice_its_process(monkeypatch):
    spent = 0.0

    def timed(function):
        def measured(*args, **kwargs):
            nonlocal spent
            start = time.perf_counter()
            result = function(*args, **kwargs)
            spent += time.perf_counter() - start
            return result

        return measured

    process = model.GaussianProcess
    monkeypatch.setattr(process, "fitted", timed(process.fitted))
    monkeypatch.setattr(process, "predict", timed(process.predict))
    name = "log_expected_improvement"
    monkeypatch.setattr(acquisition, name, timed(getattr(acquisition, name)))
    task, ratios = load(CONDITIONAL).tasks[-1], []
    with one_thread():
        for seed in range(20):
            setting = {"history": (), "context": {}, "budget": 25}
            rng = np.random.default_rng(seed)
            method = bo.BayesianOptimisation(space=task.space, rng=rng, **setting)
            spent = inside = 0.0
            for _ in range(25):
                start = time.perf_counter()
                config = method.ask()
                inside += time.perf_counter() - start
                loss = task.evaluate(config)
                start = time.perf_counter()
                method.tell(config, loss)
                inside += time.perf_counter() - start
            ratios.append(inside / spent)
    assert np.median(ratios) < 3.0
