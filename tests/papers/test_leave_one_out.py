"""The papers ablr, abrac and distbo: each task is left out, and all others are its history."""

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.papers import paper
from hpobench_ordered.papers.ablr.learned_contexts import LearnedContexts
from hpobench_ordered.papers.abrac.posteriors import fit_belief
from hpobench_ordered.papers.paper import experiments

PAPER_NAMES = ("ablr", "abrac", "distbo")


@pytest.mark.parametrize(("name", "last_figure"), [("ablr", 10), ("abrac", 9), ("distbo", 15)])
def test_every_figure_exists(name, last_figure):
    """A paper has all its figures here, from the first to the last one."""
    titles = [exhibit.title for exhibit in paper(name).exhibits]
    assert titles == [f"Figure {number}" for number in range(1, last_figure + 1)]


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_settings_can_be_run(name):
    """The protocol is leave-one-out; methods and surrogates are the package's or the paper's."""
    chosen = paper(name)
    for benchmark, methods in experiments(chosen.exhibits).items():
        setting = chosen.setting_of(benchmark)
        surrogates = [option.name for option in benchmark_spec(benchmark).surrogates]
        assert isinstance(setting.protocol, hbo.LeaveOneOut)
        assert set(methods) <= {*hbo.list_methods(), *chosen.methods}
        assert setting.surrogate in (None, *surrogates)


def suggest_and_tell(spec: hbo.MethodSpec, losses: list[float]) -> list[object]:
    """Tell a method these losses one after another; returns the configurations it suggests.

    It tunes the third task of forrester, with the same seed and history each time.
    """
    benchmark = hbo.load("forrester")
    trials = len(losses)
    assignment = hbo.LeaveOneOut(trials=trials).assignment(
        benchmark, spec, position=2, evaluated=(), rng=np.random.default_rng(0)
    )
    method = spec.method(
        space=benchmark.space,
        rng=np.random.default_rng(1),
        history=assignment.history,
        context=assignment.task.context,
        budget=trials,
    )
    configs = []
    for loss in losses:
        config = method.ask()
        method.tell(config, loss)
        configs.append(config)
    return configs


@pytest.mark.slow
def test_runs_of_abrac_begin_at_random():
    """Told other losses, MT-GP-BO suggests the same configurations in its three random trials."""
    spec = paper("abrac").methods["mt-gp-bo"]

    configs = suggest_and_tell(spec, [0, 1, 2, 3])
    other_configs = suggest_and_tell(spec, [9, 1, 0, 3])

    assert configs[:3] == other_configs[:3]
    assert configs[3] != other_configs[3]


@pytest.mark.slow
def test_posterior_is_close_to_evaluations():
    """The model is fitted to eight random evaluations of task 2, and one that the method chose.

    It misses them by less than a third of the function's standard deviation, and uses some of its
    basis functions, with weights relative to the largest.
    """
    belief = fit_belief("forrester", task=2, method="abrac", n_random=8, n_own=1)

    assert len(belief.points) == 8 + 1
    values = hbo.load("forrester").tasks[2].evaluate_many(belief.points[:, None])
    np.testing.assert_allclose(belief.values, values)
    mean_at_points = np.interp(belief.points, belief.x, belief.mean)
    assert np.abs(mean_at_points - values).mean() < 0.3 * belief.truth.std()
    assert belief.weights.max() == 1
    assert 1 <= belief.used <= belief.bases.shape[1]


@pytest.mark.slow
def test_learned_contexts_are_embeddings():
    """Contexts of tasks on openml-svm are learned on openml-xgboost, which has the same data sets.

    Each of the 13 tasks of the history, and the current one, has four learned numbers of its own.
    """
    benchmark = hbo.load("openml-svm", surrogate="nearest")
    assignment = hbo.LeaveOneOut(trials=3, history=10).assignment(
        benchmark,
        paper("ablr").methods["ablr-xgboost-embeddings"],
        position=2,
        evaluated=(),
        rng=np.random.default_rng(0),
    )

    method = LearnedContexts("openml-xgboost", surrogate="nearest")(
        space=benchmark.space,
        rng=np.random.default_rng(0),
        history=assignment.history,
        context=assignment.task.context,
        budget=3,
    )

    assert [task.task for task in method.history] == [task.task for task in assignment.history]
    contexts = [task.context for task in method.history] + [method.context]
    assert all(set(context) == {"e_0", "e_1", "e_2", "e_3"} for context in contexts)
    assert len({tuple(context.values()) for context in contexts}) == 13 + 1
