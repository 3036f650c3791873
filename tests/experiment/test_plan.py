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
from hpobench_ordered.experiment.plan import part_of, plan


def test_the_key_tells_everything_apart_that_matters(small_plan):
    whole = [cell.key for cell in small_plan()]
    assert len(set(whole)) == 6
    same = small_plan(seeds=np.arange(3), surrogates={"newsvendor@1": "table"})
    assert [cell.key for cell in same] == whole
    keys = [
        small_plan(methods=["random-search"], seeds=[0], **change)[0].key
        for change in (
            {},
            {"protocol": Ordered(trials=5, tasks=3)},
            {"protocol": Ordered(trials=4, tasks=2)},
            {"protocol": Ordered(trials=4, tasks=3, workers_simulated=4)},
            {"protocol": LeaveOneOut(trials=4, tasks=3)},
            {"protocol": LeaveOneOut(trials=4, tasks=3, history=100)},
            {"protocol": LeaveOneOut(trials=4, tasks=["0", "1", "2"])},
            {"benchmarks": ["xgboost-mnist"]},
        )
    ]
    assert len(set(keys)) == len(keys)


def test_methods_share_random_numbers_and_nothing_else_does(small_plan):
    """Those of their own, and those of the protocol."""
    first, second = small_plan(seeds=[0])
    assert first.rng(0).random() == second.rng(0).random()
    assert first.protocol_rng(1).random() == second.protocol_rng(1).random()
    (other,) = small_plan(seeds=[1], methods=["random-search"])
    drawn = [cell.protocol_rng(t).random() for cell in (first, other) for t in (0, 1)]
    drawn += [cell.rng(t).random() for cell in (first, other) for t in (0, 1)]
    assert len(set(drawn)) == 8


def test_an_artifact_is_what_is_in_it_not_where_it_is(tmp_path, monkeypatch):
    packaged = Path(str(resources.files("hpobench_ordered"))) / "artifacts" / "newsvendor"
    for name in ("here", "there"):
        shutil.copytree(packaged, tmp_path / name)
    monkeypatch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(tmp_path))
    names = [str(tmp_path / "here"), str(tmp_path / "there"), "there", "newsvendor"]
    here, there, by_name, plain = (
        plan(benchmarks=[name], methods=["bo"], seeds=[0], protocol=Ordered())[0] for name in names
    )
    assert here.key == there.key != plain.key
    assert (by_name.source, by_name.benchmark) == ("there@1", there.benchmark)
    assert here.benchmark.startswith("newsvendor@1+")
    # The random numbers are those of the benchmark of that name and version.
    assert here.rng(0).random() == plain.rng(0).random()


DEMANDING = MethodSpec("demanding", Good, "", "", min_history=9)
NEAREST = {"benchmarks": ["xgboost-mnist"], "surrogates": {"xgboost-mnist": "nearest"}}
A_PROTOCOL = r"such as hpobench_ordered\.Ordered\(trials=25\)"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"protocol": "ordered"}, ExperimentError, A_PROTOCOL),
        ({"protocol": Ordered}, ExperimentError, A_PROTOCOL),
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
        ({"seeds": []}, ExperimentError, "needs at least one seed"),
        ({"seeds": 5}, ExperimentError, r"such as range\(5\)"),
        ({"seeds": [0.5]}, ExperimentError, "whole numbers"),
        ({"benchmarks": "newsvendor"}, ExperimentError, "benchmarks must be given as a list"),
        ({"methods": "bo"}, ExperimentError, "methods must be given as a list"),
        ({"methods": [MethodSpec("bo", Good, "", "")]}, ExperimentError, "registered method"),
        ({"surrogates": {"newsvendor": "forest"}}, UnknownNameError, "'table'"),
        ({"surrogates": {"xgboost-mnist": "forest"}}, ExperimentError, "not in the experiment"),
    ],
)
def test_nonsense_is_refused_before_anything_runs(
    small_plan, monkeypatch, tmp_path, change, error, message
):
    monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path))
    with pytest.raises(error, match=message):
        small_plan(**change)


def test_a_method_that_no_file_says_is_not_divided(small_plan):
    class Local(Good):
        pass

    with pytest.raises(ExperimentError, match="define it in a file"):
        part_of(small_plan(methods=[Local]), (0, 2))
    assert len(part_of(small_plan(methods=[Good]), (0, 2))) == 2
    for index, count in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ExperimentError, match=f"shard {index}/{count}"):
            part_of([], (index, count))
