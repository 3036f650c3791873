import importlib
import linecache
import shutil
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from hpobench_ordered import Adjustment, LeaveOneOut, Method, MethodSpec, Ordered
from hpobench_ordered.errors import (
    ExperimentError,
    HPOBenchOrderedError,
    NotFetchedError,
    UnknownNameError,
)
from hpobench_ordered.experiment.plan import part_of, plan


class Mine(Method):
    """A method of one's own."""

    def ask(self):
        return self.space.sample(self.rng)

    def tell(self, config, loss):
        pass


def test_one_cell_for_each_combination_in_a_fixed_order(small_plan):
    cells = small_plan()
    assert len(cells) == 6
    assert [c.key for c in cells] == [c.key for c in small_plan()]
    assert len({c.key for c in cells}) == 6


def test_the_key_tells_everything_apart_that_matters(small_plan):
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


def test_methods_share_random_numbers_seeds_and_tasks_do_not(small_plan):
    first, second = small_plan(seeds=[0])
    assert first.rng(0).random() == second.rng(0).random()
    (other,) = small_plan(seeds=[1], methods=["random-search"])
    drawn = [cell.rng(t).random() for cell in (first, other) for t in (0, 1)]
    assert len(set(drawn)) == 4


def test_a_protocol_draws_the_same_for_all_methods_and_not_what_they_draw(small_plan):
    first, second = small_plan(seeds=[0])
    assert first.protocol_rng(1).random() == second.protocol_rng(1).random()
    (other,) = small_plan(seeds=[1], methods=["random-search"])
    drawn = [cell.protocol_rng(t).random() for cell in (first, other) for t in (0, 1)]
    drawn += [cell.rng(t).random() for cell in (first, other) for t in (0, 1)]
    assert len(set(drawn)) == 8


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (Adjustment(), "newsvendor@1 was never adjusted"),
        (LeaveOneOut(tasks=["9"]), "unknown task '9'"),
        (LeaveOneOut(), "demanding on newsvendor@1 needs a target and 9 source"),
    ],
)
def test_what_cannot_run_under_the_protocol_is_refused(protocol, message, small_plan):
    demanding = MethodSpec("demanding", Mine, "", "", min_history=9)
    with pytest.raises(HPOBenchOrderedError, match=message):
        small_plan(methods=["random-search", demanding], protocol=protocol)


def test_own_class():
    (cell,) = plan(benchmarks=["newsvendor"], methods=[Mine], seeds=[0], protocol=Ordered())
    assert cell.method.name.endswith(".Mine")
    assert cell.method.summary == "A method of one's own."


def test_results_of_a_changed_class_are_not_taken_up_again(tmp_path, monkeypatch):
    keys = []
    for number in (3, 9, 9):
        (tmp_path / "mine.py").write_text(
            "from hpobench_ordered.methods.random_search import RandomSearch\n"
            f"class Other(RandomSearch):\n    number = {number}\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        linecache.clearcache()
        module = importlib.import_module("mine")
        keys.append(
            plan(benchmarks=["newsvendor"], methods=[module.Other], seeds=[0], protocol=Ordered())[
                0
            ].key
        )
        del sys.modules["mine"]
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
    assert keys[0] != keys[1] == keys[2]


def test_a_class_without_source_is_never_taken_up_again():
    spaces: dict[str, object] = {"Method": Method}
    exec("class Typed(Method):\n    ask = tell = None", spaces)
    make = {"benchmarks": ["newsvendor"], "seeds": [0], "protocol": Ordered()}
    first, second = (plan(methods=[spaces["Typed"]], **make)[0] for _ in range(2))
    assert first.key != second.key


def test_an_artifact_is_what_is_in_it_not_where_it_is(tmp_path):
    packaged = Path(str(resources.files("hpobench_ordered"))) / "artifacts" / "newsvendor"
    cells = []
    for name in ("here", "there"):
        shutil.copytree(packaged, tmp_path / name)
        cells += plan(
            benchmarks=[str(tmp_path / name)], methods=["bo"], seeds=[0], protocol=Ordered()
        )
    (plain,) = plan(benchmarks=["newsvendor"], methods=["bo"], seeds=[0], protocol=Ordered())
    assert cells[0].key == cells[1].key != plain.key
    assert cells[0].benchmark.startswith("newsvendor@1+")
    # The random numbers are those of the benchmark of that name and version.
    assert cells[0].rng(0).random() == plain.rng(0).random()


def test_an_artifact_of_the_user_is_what_is_in_it_by_name_too(tmp_path, monkeypatch):
    monkeypatch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(tmp_path))
    packaged = Path(str(resources.files("hpobench_ordered"))) / "artifacts" / "newsvendor"
    shutil.copytree(packaged, tmp_path / "mine")
    by_name, by_path = (
        plan(benchmarks=[name], methods=["bo"], seeds=[0], protocol=Ordered())[0]
        for name in ("mine", str(tmp_path / "mine"))
    )
    assert by_name.source == "mine@1"
    assert by_name.benchmark == by_path.benchmark


def test_numpy_seeds_and_versions_of_surrogates(small_plan):
    cells = small_plan(seeds=np.arange(3), surrogates={"newsvendor@1": "table"})
    assert [c.key for c in cells] == [c.key for c in small_plan()]


def test_what_is_not_fetched_is_refused_before_anything_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path))
    with pytest.raises(NotFetchedError, match="fetch xgboost-mnist --surrogate nearest"):
        plan(
            benchmarks=["xgboost-mnist"],
            methods=["bo"],
            seeds=[0],
            protocol=Ordered(),
            surrogates={"xgboost-mnist": "nearest"},
        )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"benchmarks": ["newsvendr"]}, UnknownNameError, "did you mean 'newsvendor'"),
        ({"benchmarks": ["newsvendor@7"]}, UnknownNameError, "newsvendor@1"),
        ({"methods": ["random"]}, UnknownNameError, "did you mean 'random-search'"),
        ({"methods": ["bo", "bo"]}, ExperimentError, "same name"),
        ({"methods": [np.random.Generator]}, ExperimentError, "np.random.Generator|Generator"),
        ({"seeds": [-1]}, ExperimentError, "seeds must be from 0"),
        ({"seeds": []}, ExperimentError, "needs at least one seed"),
        ({"seeds": 5}, ExperimentError, r"such as range\(5\)"),
        ({"seeds": [0.5]}, ExperimentError, "whole numbers"),
        ({"benchmarks": "newsvendor"}, ExperimentError, "benchmarks must be given as a list"),
        ({"methods": "bo"}, ExperimentError, "methods must be given as a list"),
        ({"methods": [MethodSpec("bo", Mine, "", "")]}, ExperimentError, "registered method"),
        ({"surrogates": {"newsvendor": "forest"}}, UnknownNameError, "'table'"),
        ({"surrogates": {"xgboost-mnist": "forest"}}, ExperimentError, "not in the experiment"),
    ],
)
def test_nonsense_is_refused(small_plan, change, error, message):
    with pytest.raises(error, match=message):
        small_plan(**change)


@pytest.mark.parametrize("protocol", ["ordered", Ordered, None])
def test_a_protocol_is_an_object(protocol):
    with pytest.raises(ExperimentError, match=r"such as hpobench_ordered\.Ordered\(trials=25\)"):
        plan(benchmarks=["newsvendor"], methods=["bo"], seeds=[0], protocol=protocol)


def test_a_method_that_no_file_says_is_not_divided(small_plan):
    class Local(Mine):
        pass

    with pytest.raises(ExperimentError, match="define it in a file"):
        part_of(small_plan(methods=[Local]), (0, 2))
    assert len(part_of(small_plan(methods=[Mine]), (0, 2))) == 2
