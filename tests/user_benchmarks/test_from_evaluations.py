"""Benchmarks from tables of evaluations: what they evaluate to, keep, refuse and save."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsRegressor

import hpobench_ordered as hbo
from hpobench_ordered import SearchSpace
from hpobench_ordered.core.benchmark import Benchmark, Provenance
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import (
    EvaluationsError,
    HistoryWarning,
    InvalidNameError,
    PoorSurrogateWarning,
)
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.bundle import read_card
from hpobench_ordered.surrogates.forest import ForestSurrogate
from hpobench_ordered.surrogates.nearest import NearestSurrogate
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate
from hpobench_ordered.testing import check_benchmark
from hpobench_ordered.testing.toy import conditional_space, numeric_space, toy_benchmark
from hpobench_ordered.user_benchmarks import from_evaluations, save

SPACES = {"numbers": numeric_space(), "conditions": conditional_space()}


def evaluations(
    space: SearchSpace, *, tasks: int = 3, n: int = 30, shared: bool = False, seed: int = 0
) -> pd.DataFrame:
    """Evaluations of toy tasks, shuffled, with a column that nobody asked for."""
    rng = np.random.default_rng(seed)
    drawn = space.sample_unit(rng, n)
    rows = []
    for task in toy_benchmark(space, tasks=tasks).tasks:
        values = space.decode(drawn if shared else space.sample_unit(rng, n))
        for config, value in zip(space.configs(values), task.evaluate_many(values), strict=True):
            size = 10 ** (task.index + 1)
            rows.append({**config, "task": f"t{task.index}", "size": size, "error": value})
    return pd.DataFrame(rows).sample(frac=1, random_state=seed).assign(host="a")


def make(frame: pd.DataFrame, space: SearchSpace, **options: Any) -> Benchmark:
    usual: dict[str, Any] = {
        "name": "mine",
        "objective": "error",
        "direction": Direction.MINIMIZE,
        "context": ["size"],
        "ordered": "size",
    }
    return from_evaluations(frame, space, **(usual | options))


def model_of(benchmark: Benchmark) -> object:
    return benchmark.tasks[0]._surrogate


def configurations(frame: pd.DataFrame, space: SearchSpace) -> pd.DataFrame:
    return frame[[name for name in frame.columns if name in (*space.names, *space.constants)]]


@given(
    seed=st.integers(0, 10**6),
    shared=st.booleans(),
    direction=st.sampled_from(Direction),
    space=st.sampled_from(list(SPACES.values())),
)
def test_evaluated_configurations_have_their_mean(seed, shared, direction, space):
    frame = evaluations(space, n=20, shared=shared, seed=seed)
    again = frame.sample(15, random_state=seed, replace=True)
    again["error"] += np.random.default_rng(seed).normal(size=15)
    frame = pd.concat([frame, again])
    benchmark = make(frame, space, direction=direction)
    kind = NearestSurrogate if shared else PerTaskSurrogate
    assert isinstance(model_of(benchmark), kind)
    for task in benchmark.tasks:
        mine = frame[frame["task"] == task.name]
        means = mine.groupby(list(space.names), dropna=False)["error"].transform("mean")
        values = task.evaluate_many(configurations(mine, space))
        np.testing.assert_allclose(values, means, rtol=1e-12)
        best = values.min() if direction is Direction.MINIMIZE else values.max()
        assert task.best_value == best


@pytest.mark.parametrize("shared", [False, True])
def test_between_them_as_scikit_learn(shared):
    """Features: x as it is, y on its log scale, both standardised over all tasks together."""
    space = numeric_space()
    frame = evaluations(space, n=200, shared=shared)
    benchmark = make(frame, space)

    def features(table: pd.DataFrame) -> np.ndarray:
        return np.stack([table["x"], np.log(table["y"])], axis=1)

    mean, deviation = features(frame).mean(axis=0), features(frame).std(axis=0)
    rng = np.random.default_rng(1)
    queries = pd.DataFrame(space.configs(space.decode(space.sample_unit(rng, 500))))
    for task in benchmark.tasks:
        mine = frame[frame["task"] == task.name]
        reference = KNeighborsRegressor(1).fit((features(mine) - mean) / deviation, mine["error"])
        expected = reference.predict((features(queries) - mean) / deviation)
        assert task.evaluate_many(queries).tolist() == expected.tolist()


@pytest.mark.parametrize("shared", [False, True])
def test_forests_predict_conform_and_are_cross_validated(tmp_path, shared):
    space = conditional_space()
    frame = evaluations(space, tasks=2, n=150, shared=shared)
    forest = make(frame, space, surrogate=SurrogateType.FOREST)
    assert isinstance(model_of(forest), ForestSurrogate if shared else PerTaskSurrogate)
    assert forest.surrogate == "forest"
    check_benchmark(forest)
    x = space.decode(space.sample_unit(np.random.default_rng(99), 500))
    everything = np.concatenate([recorded.values for recorded in forest.recorded()])
    for task, truth in zip(forest.tasks, toy_benchmark(space, tasks=2).tasks, strict=True):
        assert np.corrcoef(task.evaluate_many(x), truth.evaluate_many(x))[0, 1] > 0.9
        assert task.regret(task.evaluate_many(everything)).min() >= 0
    folder = save(forest, tmp_path / "mine")
    card = read_card(benchmark_spec(folder).artifact)
    assert (card.surrogate, card.folds) == (SurrogateType.FOREST, 10)
    assert all(0.6 < figures.r2 < 1 for figures in card.figures)
    check_benchmark(hbo.load(folder))


@pytest.mark.parametrize("direction", Direction)
def test_recorded_are_the_rows_of_the_table(direction):
    space = conditional_space()
    frame = evaluations(space)
    benchmark = make(pd.concat([frame, frame.head(5)]), space, direction=direction)
    for copy in (benchmark, pickle.loads(pickle.dumps(benchmark))):
        for task, recorded in zip(copy.tasks, copy.recorded(), strict=True):
            rows = pd.concat([frame, frame.head(5)])
            rows = rows[rows["task"] == task.name]
            assert (recorded.task, recorded.context) == (task.name, task.context)
            assert recorded.losses.tolist() == (direction.sign * rows["error"]).tolist()
            expected = space.values(configurations(rows, space))
            assert np.array_equal(recorded.values, expected, equal_nan=True)
            history = copy.evaluations(task.index, rng=np.random.default_rng(0))
            assert len(history) == len(rows)


def test_tasks_come_as_they_first_appear_or_sorted():
    space = numeric_space()
    frame = evaluations(space).sort_values("size", ascending=False, kind="stable")
    as_given = make(frame, space, ordered=None)
    assert [task.name for task in as_given.tasks] == ["t2", "t1", "t0"]
    by_size = make(frame, space)
    assert [task.name for task in by_size.tasks] == ["t0", "t1", "t2"]
    assert [task.context for task in by_size.tasks] == [{"size": 10}, {"size": 100}, {"size": 1000}]
    by_itself = make(frame, space, task="size")
    assert [task.name for task in by_itself.tasks] == ["10", "100", "1000"]
    assert make(frame, space, context=(), ordered=None).tasks[0].context == {}


def test_whatever_says_what_the_benchmark_is():
    space = numeric_space()
    frame = evaluations(space).assign(share=0.25)
    frame["size"] = frame["size"].astype(float)
    provenance = Provenance("ours", "our cluster", "CC0")
    options = {"summary": "Ours.", "unit": "%", "context": ["share", "size"]}
    benchmark = make(frame, space, version=3, provenance=provenance, **options)
    assert (benchmark.id, benchmark.summary, benchmark.surrogate) == ("mine@3", "Ours.", "nearest")
    assert (benchmark.objective.name, benchmark.objective.unit) == ("error", "%")
    assert benchmark.provenance == provenance
    assert benchmark.tasks[1].context == {"share": 0.25, "size": 100.0}
    assert make(frame, space).summary == "90 evaluations of 3 tasks."


def test_every_type_a_table_may_hold():
    """Choices that are booleans, None where inactive, nullable integers."""
    space = SearchSpace.from_json(
        {
            "hyperparameters": [
                {"type": "categorical", "name": "bagged", "choices": [True, False]},
                {"type": "uniform_int", "name": "k", "lower": 1, "upper": 9, "log": False},
            ],
            "conditions": [{"type": "EQ", "child": "k", "parent": "bagged", "value": True}],
        }
    )
    k, error = pd.array([3, 7, None], dtype="Int64"), pd.array([1, 2, 3], dtype="Int64")
    frame = pd.DataFrame({"bagged": [True, True, False], "k": k, "task": 7, "error": error})
    for column in (frame["k"], frame["k"].astype(object), frame["k"].astype(float)):
        (task,) = make(frame.assign(k=column), space, context=(), ordered=None).tasks
        assert task.name == "7"
        assert [task.evaluate(c) for c in ({"bagged": True, "k": 7}, {"bagged": False})] == [2, 3]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: f.drop(columns="x"), {}, "no column 'x' for a hyperparameter"),
        (
            lambda f: f,
            {"objective": "eror"},
            r"'eror' for the objective\n.* use: .*'error'",
        ),
        (lambda f: f, {"task": "tsk"}, r"no column 'tsk' for the task\n.* without a use: 'task'"),
        (
            lambda f: f,
            {"context": ["sizes"], "ordered": None},
            r"'sizes' for a context\n.* use: 'size'",
        ),
        (lambda f: f, {"ordered": "host"}, "one of the contexts, but got 'host'; .*'size'"),
        (lambda f: f, {"context": "size"}, r"a list, such as \['size'\]"),
        (lambda f: f, {"task": "kind"}, "'kind' is a hyperparameter; it cannot be the task"),
        (lambda f: f, {"task": "fixed"}, "'fixed' is a hyperparameter; it cannot be the task"),
        (lambda f: f, {"objective": "size"}, "'size' is the objective; it cannot be"),
        (lambda f: f, {"surrogate": SurrogateType.TABLE}, "'table'; choose from 'forest', 'near"),
        (lambda f: f, {"surrogate": "nearset"}, "'nearset'; did you mean 'nearest'"),
        (lambda f: f.assign(n=60), {"drop_invalid": True}, r"(?s)no usable .*: row 0 \(60"),
        (lambda f: f.assign(n=60), {}, r"(?s)of 90 of 90 .*'n' must be an integer .*: row 0 \(60"),
        (lambda f: f.assign(size="big"), {}, "'size' must hold one finite number .* 'big'"),
        (lambda f: f.assign(size=np.inf), {}, r"'size' must .* finite .*, but task 't\d' has inf"),
        (lambda f: f.assign(size=range(90)), {}, r"'size' must .* one .*, but task 't\d' has \d"),
    ],
)
def test_what_cannot_be_used_is_refused(change, options, message):
    space = conditional_space()
    with pytest.raises(EvaluationsError, match=message):
        make(change(evaluations(space)), space, **options)


def test_failed_evaluations_are_dropped_only_if_asked():
    space = numeric_space()
    frame = evaluations(space)
    frame.iloc[[4, 5, 50], frame.columns.get_loc("error")] = [np.nan, np.inf, -np.inf]
    said = r"(?s)3 of 90 .* finite number: .*row 4 \(nan\).*drop_in"
    with pytest.raises(EvaluationsError, match=said):
        make(frame, space)
    with pytest.warns(HistoryWarning, match="3 of 90 evaluations are left out"):
        benchmark = make(frame, space, drop_invalid=True)
    assert sum(map(len, benchmark.recorded())) == 87
    without = make(frame[np.isfinite(frame["error"])], space)
    x = space.decode(space.sample_unit(np.random.default_rng(0), 50))
    for one, other in zip(benchmark.tasks, without.tasks, strict=True):
        assert one.evaluate_many(x).tolist() == other.evaluate_many(x).tolist()


@pytest.mark.parametrize(("kind", "needed"), [("NEAREST", 2), ("FOREST", 10)])
def test_tasks_need_some_evaluations(kind, needed):
    space = numeric_space()
    frame = evaluations(space).sort_values("task", kind="stable")
    few = frame.drop(frame[frame["task"] == "t1"].index[needed - 1 :])
    repeated = pd.concat([few, few[few["task"] == "t1"]])
    failed = frame.copy()
    failed.loc[frame[frame["task"] == "t1"].index[needed - 1 :], "error"] = np.nan
    for table in (few, repeated, failed):
        with pytest.raises(EvaluationsError, match=rf"{needed} .* 1 of 3 tasks .* 't1' with"):
            make(table.dropna(), space, surrogate=SurrogateType[kind])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_it_conforms_and_is_the_same_when_saved_and_loaded(tmp_path, shared, direction, space):
    frame = evaluations(space, shared=shared)
    made = make(frame, space, direction=direction)
    check_benchmark(made)
    folder = save(made, tmp_path / "mine")
    loaded = hbo.load(folder)
    assert (loaded.id, loaded.summary, loaded.space) == (made.id, made.summary, made.space)
    x = space.decode(space.sample_unit(np.random.default_rng(0), 100))
    for a, b in zip(made.tasks, loaded.tasks, strict=True):
        assert (a.name, a.context, a.best_value) == (b.name, b.context, b.best_value)
        assert a.evaluate_many(x).tolist() == b.evaluate_many(x).tolist()
    for ours, theirs in zip(made.recorded(), loaded.recorded(), strict=True):
        assert np.array_equal(ours.values, theirs.values, equal_nan=True)
        assert ours.losses.tolist() == theirs.losses.tolist()
    card = read_card(benchmark_spec(folder).artifact)
    assert (card.surrogate, card.evaluations) == (SurrogateType.NEAREST, 90)
    assert card.configurations == len(frame.drop_duplicates(list(space.names)))
    assert [figures.name for figures in card.figures] == ["t0", "t1", "t2"]


@pytest.mark.parametrize("kind", ["NEAREST", "FOREST"])
def test_cross_validation_learns_nothing_from_other_tasks(tmp_path, kind):
    """Noise that is the same on every task cannot be predicted."""
    space = SearchSpace([Parameter.number("x", 0, 1)])
    rng = np.random.default_rng(0)
    one = pd.DataFrame({"x": rng.random(80), "error": rng.normal(size=80)})
    frame = pd.concat([one.assign(task=t).sample(frac=1, random_state=t) for t in range(3)])
    surrogate = SurrogateType[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorSurrogateWarning)
        made = make(frame, space, context=(), ordered=None, surrogate=surrogate)
    card = read_card(benchmark_spec(save(made, tmp_path / "mine")).artifact)
    assert all(figures.r2 < 0.3 and abs(figures.spearman) < 0.4 for figures in card.figures)


def test_nearest_neighbours_that_know_nothing_are_reported():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(80), "error": rng.normal(size=80), "task": "a"})
    space = SearchSpace([Parameter.number("x", 0, 1)])
    with pytest.warns(PoorSurrogateWarning, match=r"overlap of 0\.\d\d.*surrogate=\"forest\""):
        make(frame, space, context=(), ordered=None)


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "x" * 300, " ", "two\nlines", 7])
def test_names_that_cannot_be_printed_or_filed_are_refused(name):
    with pytest.raises(InvalidNameError) as error:
        make(evaluations(numeric_space()), numeric_space(), name=name)
    assert str(error.value).isprintable()
    frame = evaluations(numeric_space())
    if name != 7:
        with pytest.raises(InvalidNameError):
            make(frame.assign(task=frame["task"] + name.replace(" ", "\t")), numeric_space())


def test_what_is_saved_is_not_replaced_by_other_content(tmp_path):
    space, folder = numeric_space(), tmp_path / "mine"
    first = make(evaluations(space), space)
    save(first, folder)
    digest = benchmark_spec(folder).content
    save(first, folder)  # the same content
    other = make(evaluations(space, seed=1), space)
    with pytest.raises(EvaluationsError, match=r"mine@1 with other .*version=2.*overwrite=True"):
        save(other, folder)
    renamed = make(evaluations(space, seed=1), space, name="yours", version=2)
    with pytest.raises(EvaluationsError, match="choose another folder"):
        save(renamed, folder)
    assert benchmark_spec(folder).content == digest
    save(make(evaluations(space, seed=1), space, version=2), folder)
    assert hbo.load(folder).id == "mine@2"
    save(first, folder, overwrite=True)
    assert hbo.load(folder).id == "mine@1"


def test_what_is_of_others_is_not_saved(tmp_path):
    with pytest.raises(EvaluationsError, match="newsvendor@1 was not made by"):
        save(hbo.load("newsvendor"), tmp_path / "newsvendor")
    assert not (tmp_path / "newsvendor").exists()


def test_a_benchmark_says_what_it_was_loaded_from(tmp_path):
    made = make(evaluations(numeric_space()), numeric_space())
    assert (made.source, made.identity) == ("", "")
    folder = save(made, tmp_path / "mine")
    loaded = hbo.load(folder)
    assert loaded.identity == f"mine@1+{benchmark_spec(folder).content[:12]}"
    chosen = {"methods": ["random-search"], "seeds": [0], "protocol": hbo.Ordered(trials=2)}
    tasks = hbo.run(benchmarks=[str(folder)], **chosen).frame()["task_name"]
    assert tasks.tolist() == ["t0", "t0", "t1", "t1", "t2", "t2"]
    again = hbo.load(loaded.source)
    assert (again.source, again.identity) == (loaded.source, loaded.identity)
    assert hbo.load("newsvendor").identity == hbo.load("newsvendor").source == "newsvendor@1"
