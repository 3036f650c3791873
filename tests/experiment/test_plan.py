"""Plans of experiments: keys, random numbers and shards of runs, and what is refused."""

import shutil
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from bad_methods import Good

from hpobench_ordered import Adjustment, LeaveOneOut, MethodSpec, Ordered
from hpobench_ordered.errors import (
    ExperimentError,
    NotFetchedError,
    UnknownNameError,
)
from hpobench_ordered.experiment.plan import Cell, plan, select_shard

CHANGES_OF_KEY = {
    "none": {},
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
    """Each change of the same single run, and no change, gives another key."""
    one_run = {"methods": ["random-search"], "seeds": [0]}
    keys = set()
    for change in CHANGES_OF_KEY.values():
        (cell,) = small_plan(**(one_run | change))
        keys.add(cell.key)
    assert len(keys) == len(CHANGES_OF_KEY)


def test_key_does_not_depend_on_how_plan_is_written(small_plan):
    """Seeds may be an array; the default surrogate, `table`, may be named."""
    plan_by_default = small_plan(seeds=range(3))
    same_plan = small_plan(seeds=np.arange(3), surrogates={"newsvendor@1": "table"})
    assert [cell.key for cell in same_plan] == [cell.key for cell in plan_by_default]


def test_methods_share_random_numbers(small_plan):
    """On each task, given by its position, the runs of a seed have the same random numbers."""
    first, second = small_plan(seeds=[0])
    assert first.rng(0).random() == second.rng(0).random()
    assert first.protocol_rng(1).random() == second.protocol_rng(1).random()


def test_random_numbers_differ_by_seed_and_position(small_plan):
    random_numbers = set()
    for cell in small_plan(seeds=[0, 1], methods=["random-search"]):
        # The position is that of the task in a run; a run has a generator for the method, and one
        # for the protocol.
        for position in (0, 1):
            random_numbers.add(cell.rng(position).random())
            random_numbers.add(cell.protocol_rng(position).random())
    seeds, positions, generators = 2, 2, 2
    assert len(random_numbers) == seeds * positions * generators


@pytest.fixture
def copies(tmp_path, monkeypatch) -> Path:
    """A folder of benchmarks with two copies of newsvendor, `here` and `there`."""
    packaged = Path(str(resources.files("hpobench_ordered"))) / "artifacts" / "newsvendor"
    for name in ("here", "there"):
        shutil.copytree(packaged, tmp_path / name)
    monkeypatch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(tmp_path))
    return tmp_path


def plan_run(benchmark: str | Path) -> Cell:
    """Plan one run of bo on a benchmark, given by its name or its folder."""
    (cell,) = plan(benchmarks=[benchmark], methods=["bo"], seeds=[0], protocol=Ordered())
    return cell


def test_copies_of_artifact_have_same_key(copies):
    assert plan_run(copies / "here").key == plan_run(copies / "there").key


def test_copy_has_other_key_than_packaged_artifact(copies):
    assert plan_run(copies / "here").key != plan_run("newsvendor").key
    assert plan_run(copies / "here").benchmark.startswith("newsvendor@1+")


def test_copy_is_found_by_name(copies):
    """A copy of a benchmark has the name of its folder; by that it is the same one."""
    cell = plan_run("there")
    assert cell.source == "there@1"
    assert cell.benchmark == plan_run(copies / "there").benchmark


def test_copy_has_random_numbers_of_packaged_artifact(copies):
    assert plan_run(copies / "here").rng(0).random() == plan_run("newsvendor").rng(0).random()


DEMANDING = MethodSpec("demanding", Good, "", "", min_history=9)
"""Needs more earlier tasks than newsvendor has beside the target."""
NEAREST = {"benchmarks": ["xgboost-mnist"], "surrogates": {"xgboost-mnist": "nearest"}}
SUGGESTS_A_PROTOCOL = r"such as hpobench_ordered\.Ordered\(trials=25\)"


@pytest.mark.parametrize(
    ("change", "error", "message"),
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
def test_impossible_plan_is_refused(small_plan, monkeypatch, tmp_path, change, error, message):
    """One setting of a plan on newsvendor is wrong; in an empty cache, nothing is fetched."""
    monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path))
    with pytest.raises(error, match=message):
        small_plan(**change)


def test_method_without_file_has_no_shards(small_plan):
    """Other processes cannot import a class that is defined in a function."""

    class Local(Good):
        pass

    with pytest.raises(ExperimentError, match="define it in a file"):
        select_shard(small_plan(methods=[Local]), (0, 2))


def test_method_in_file_has_shards(small_plan):
    """The first of two shards has two of the three runs, one for each seed."""
    cells = small_plan(methods=[Good], seeds=range(3))
    assert len(select_shard(cells, (0, 2))) == 2


@pytest.mark.parametrize(("index", "count"), [(2, 2), (-1, 2), (0, 0)])
def test_impossible_shard_is_refused(index, count):
    with pytest.raises(ExperimentError, match=f"shard {index}/{count}"):
        select_shard([], (index, count))
