"""Plans of experiments: keys, random numbers and shards of runs, and what is refused."""

import shutil
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from bad_methods import Good

import hpobench_ordered as hbo
from hpobench_ordered import Adjustment, LeaveOneOut, MethodSpec, Ordered
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.errors import (
    ExperimentError,
    NotFetchedError,
    UnknownNameError,
)
from hpobench_ordered.experiment.plan import Cell, plan, select_shard

SETTINGS_WITH_OTHER_KEYS = {
    "unchanged": {},
    "trials": {"protocol": Ordered(trials=5, tasks=3)},
    "tasks": {"protocol": Ordered(trials=4, tasks=2)},
    "simulated workers": {"protocol": Ordered(trials=4, tasks=3, workers_simulated=4)},
    "protocol": {"protocol": LeaveOneOut(trials=4, tasks=3)},
    "history": {"protocol": LeaveOneOut(trials=4, tasks=3, history=100)},
    "named tasks": {"protocol": LeaveOneOut(trials=4, tasks=["0", "1", "2"])},
    "benchmark": {"benchmarks": ["xgboost-mnist"]},
    "seed": {"seeds": [1]},
    "method": {"methods": ["bo"]},
}


def test_key_tells_what_makes_runs_differ(small_plan):
    """Runs that differ in one setting have different keys.

    The first run is of random search with seed 0. Every other run has one setting changed, such as
    the number of trials.
    """
    settings_of_first_run = {"methods": ["random-search"], "seeds": [0]}
    keys = set()
    for changed_setting in SETTINGS_WITH_OTHER_KEYS.values():
        (cell,) = small_plan(**(settings_of_first_run | changed_setting))
        keys.add(cell.key)

    assert len(keys) == len(SETTINGS_WITH_OTHER_KEYS)


def test_key_does_not_depend_on_how_plan_is_written(small_plan):
    """Keys stay the same if seeds are an array, and if the default surrogate is named."""
    plan_by_default = small_plan(seeds=range(3))
    same_plan = small_plan(seeds=np.arange(3), surrogates={"newsvendor@1": "table"})
    assert [cell.key for cell in same_plan] == [cell.key for cell in plan_by_default]


def test_methods_share_random_numbers(small_plan):
    """The runs of two methods with the same seed have the same random numbers on each task.

    A run has two generators for each task: `rng` for the method, `protocol_rng` for the protocol.
    """
    run_of_one_method, run_of_other_method = small_plan(seeds=[0])
    position_of_task = 1

    rng = run_of_one_method.rng(position_of_task)
    other_rng = run_of_other_method.rng(position_of_task)
    assert rng.random() == other_rng.random()

    protocol_rng = run_of_one_method.protocol_rng(position_of_task)
    other_protocol_rng = run_of_other_method.protocol_rng(position_of_task)
    assert protocol_rng.random() == other_protocol_rng.random()


def test_random_numbers_differ_by_seed_and_position(small_plan):
    """Runs of two seeds, two tasks of a run, and its method and protocol have different numbers.

    `rng` draws the random numbers of the method, `protocol_rng` those of the protocol. The argument
    is the position of a task in the run.
    """
    random_numbers = set()
    for cell in small_plan(seeds=[0, 1], methods=["random-search"]):
        for position in (0, 1):
            random_numbers.add(cell.rng(position).random())
            random_numbers.add(cell.protocol_rng(position).random())

    n_seeds, n_positions, n_generators = 2, 2, 2
    assert len(random_numbers) == n_seeds * n_positions * n_generators


@pytest.fixture
def two_copies(tmp_path, monkeypatch) -> Path:
    """The folder of a user's own benchmarks, which has two copies of newsvendor."""
    artifact_of_newsvendor = resources.files("hpobench_ordered") / "artifacts" / "newsvendor"
    for name in ("here", "there"):
        shutil.copytree(str(artifact_of_newsvendor), tmp_path / name)
    monkeypatch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(tmp_path))
    return tmp_path


def plan_run(benchmark: str | Path) -> Cell:
    """Plan one run of bo on a benchmark, given by its name or its folder."""
    (cell,) = plan(benchmarks=[benchmark], methods=["bo"], seeds=[0], protocol=Ordered())
    return cell


def test_copies_of_artifact_have_same_key(two_copies):
    """Keys of runs depend on what is in the folder of a benchmark, not on where it is."""
    assert plan_run(two_copies / "here").key == plan_run(two_copies / "there").key


def test_copy_has_other_key_than_packaged_artifact(two_copies):
    """A user's copy counts as another benchmark, whose name has a hash after the version."""
    run_on_copy = plan_run(two_copies / "here")
    assert run_on_copy.key != plan_run("newsvendor").key
    assert run_on_copy.benchmark.startswith("newsvendor@1+")


def test_copy_is_found_by_name(two_copies):
    """A user's own benchmark is the same by the name of its folder and by the path of it."""
    run_by_name = plan_run("there")
    run_by_path = plan_run(two_copies / "there")

    assert run_by_name.source == "there@1"
    assert run_by_name.benchmark == run_by_path.benchmark


def test_copy_has_random_numbers_of_packaged_artifact(two_copies):
    """Random numbers follow from the name of the benchmark, which the copy shares."""
    assert plan_run(two_copies / "here").rng(0).random() == plan_run("newsvendor").rng(0).random()


DEMANDING = MethodSpec("demanding", Good, "", "", min_history=9)
"""Needs more earlier tasks than newsvendor has beside the target."""
NEAREST = {"benchmarks": ["xgboost-mnist"], "surrogates": {"xgboost-mnist": "nearest"}}
"""Settings with a surrogate that must be downloaded first."""
SUGGESTS_A_PROTOCOL = r"such as hpobench_ordered\.Ordered\(trials=25\)"


@pytest.mark.parametrize(
    ("wrong_setting", "error", "message"),
    [
        ({"protocol": "ordered"}, ExperimentError, SUGGESTS_A_PROTOCOL),
        ({"protocol": Ordered}, ExperimentError, SUGGESTS_A_PROTOCOL),
        ({"protocol": Adjustment()}, ExperimentError, "newsvendor@1 was never adjusted"),
        ({"protocol": LeaveOneOut(tasks=["9"])}, UnknownNameError, "unknown task '9'"),
        (
            {"methods": [DEMANDING], "protocol": LeaveOneOut()},
            ExperimentError,
            "demanding on newsvendor@1 needs a target and 9 source",
        ),
        (NEAREST, NotFetchedError, "fetch xgboost-mnist --surrogate nearest"),
        ({"benchmarks": ["newsvendr"]}, UnknownNameError, "did you mean 'newsvendor'"),
        ({"methods": ["random"]}, UnknownNameError, "did you mean 'random-search'"),
        ({"methods": ["bo", "bo"]}, ExperimentError, "same name"),
        ({"methods": [np.random.Generator]}, ExperimentError, "np.random.Generator|Generator"),
        ({"seeds": [-1]}, ExperimentError, "seeds must be from 0"),
        ({"seeds": []}, ExperimentError, "at least one seed"),
        ({"seeds": 5}, ExperimentError, r"such as range\(5\)"),
        ({"seeds": [0.5]}, ExperimentError, "whole numbers"),
        ({"benchmarks": "newsvendor"}, ExperimentError, "benchmarks must be given as a list"),
        ({"methods": "bo"}, ExperimentError, "methods must be given as a list"),
        ({"methods": [MethodSpec("bo", Good, "", "")]}, ExperimentError, "registered method"),
        ({"surrogates": {"newsvendor": "forest"}}, UnknownNameError, "'table'"),
        ({"surrogates": {"xgboost-mnist": "forest"}}, ExperimentError, "not in the experiment"),
    ],
)
def test_impossible_plan_is_refused(
    small_plan, monkeypatch, tmp_path, wrong_setting, error, message
):
    """A plan with one wrong setting is refused, with a message that tells what is wrong.

    In the case `NEAREST`, the surrogate was not downloaded, as the cache is empty.
    """
    empty_cache = tmp_path
    monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(empty_cache))

    with pytest.raises(error, match=message):
        small_plan(**wrong_setting)


def test_method_without_file_has_no_shards(small_plan):
    """Runs of a class that is defined in a function are not divided into shards.

    The machines on which shards run could not import it.
    """

    class LocalMethod(Good):
        pass

    cells = small_plan(methods=[LocalMethod])

    first_of_two = (0, 2)
    with pytest.raises(ExperimentError, match="define it in a file"):
        select_shard(cells, first_of_two)


def test_method_in_file_has_shards(small_plan):
    """Runs of a class in a file can be divided: of three, the first of two shards has two."""
    cells = small_plan(methods=[Good], seeds=range(3))

    first_of_two = (0, 2)
    assert len(select_shard(cells, first_of_two)) == 2


@pytest.mark.parametrize(("index", "count"), [(2, 2), (-1, 2), (0, 0)])
def test_impossible_shard_is_refused(index, count):
    """Of `count` shards, which are numbered from 0, there is none with this index."""
    with pytest.raises(ExperimentError, match=f"shard {index}/{count}"):
        select_shard([], (index, count))


def test_benchmark_of_ones_own_can_be_run():
    """A benchmark that is passed as an object need not be registered."""
    benchmark = replace(benchmark_spec("forrester"), name="mine").load()

    results = hbo.run(
        benchmarks=[benchmark],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.Ordered(trials=2, tasks=2),
        workers=0,
    )

    trials, tasks = 2, 2
    assert len(results.frame()) == trials * tasks
