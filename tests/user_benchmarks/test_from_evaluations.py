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


def make_table(
    space: SearchSpace, *, tasks: int = 3, n: int = 30, shared: bool = False, seed: int = 0
) -> pd.DataFrame:
    """A shuffled table of n evaluations of each toy task, with a column `host` of no use.

    With `shared`, all tasks have the same configurations.
    """
    rng = np.random.default_rng(seed)
    drawn = space.sample_unit(rng, n)
    rows = []
    for task in toy_benchmark(space, tasks=tasks).tasks:
        values = space.decode(drawn if shared else space.sample_unit(rng, n))
        for config, value in zip(space.configs(values), task.evaluate_many(values), strict=True):
            size = 10 ** (task.index + 1)
            rows.append({**config, "task": f"t{task.index}", "size": size, "error": value})
    return pd.DataFrame(rows).sample(frac=1, random_state=seed).assign(host="a")


def make_benchmark(frame: pd.DataFrame, space: SearchSpace, **options: Any) -> Benchmark:
    """A benchmark of evaluations, by default of `error`, with tasks ordered by `size`."""
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
    once = make_table(space, n=20, shared=shared, seed=seed)
    repeated = once.sample(15, random_state=seed, replace=True)
    repeated["error"] += np.random.default_rng(seed).normal(size=15)
    frame = pd.concat([once, repeated])

    benchmark = make_benchmark(frame, space, direction=direction)

    # One model serves all tasks only if they have the same configurations.
    assert isinstance(model_of(benchmark), NearestSurrogate if shared else PerTaskSurrogate)
    for task in benchmark.tasks:
        mine = frame[frame["task"] == task.name]
        means = mine.groupby(list(space.names), dropna=False)["error"].transform("mean")
        values = task.evaluate_many(configurations(mine, space))
        np.testing.assert_allclose(values, means, rtol=1e-12)
        best = values.min() if direction is Direction.MINIMIZE else values.max()
        assert task.best_value == best


@pytest.mark.parametrize("shared", [False, True])
def test_other_configurations_have_nearest_value(shared):
    """Features: x as it is, y on its log scale, both standardised over all tasks together."""
    space = numeric_space()
    frame = make_table(space, n=200, shared=shared)
    benchmark = make_benchmark(frame, space)

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


def make_forest(*, shared: bool) -> Benchmark:
    """A forest of 150 evaluations of each of two conditional toy tasks."""
    space = conditional_space()
    frame = make_table(space, tasks=2, n=150, shared=shared)
    return make_benchmark(frame, space, surrogate=SurrogateType.FOREST)


@pytest.mark.parametrize("shared", [False, True])
def test_forests_pass_the_public_checks(shared):
    forest = make_forest(shared=shared)
    assert forest.surrogate == "forest"
    assert isinstance(model_of(forest), ForestSurrogate if shared else PerTaskSurrogate)
    check_benchmark(forest)


@pytest.mark.parametrize("shared", [False, True])
def test_forests_predict_the_toy_tasks(shared):
    forest = make_forest(shared=shared)
    space = conditional_space()
    x = space.decode(space.sample_unit(np.random.default_rng(99), 500))
    for task, truth in zip(forest.tasks, toy_benchmark(space, tasks=2).tasks, strict=True):
        correlation = np.corrcoef(task.evaluate_many(x), truth.evaluate_many(x))[0, 1]
        assert correlation > 0.9


@pytest.mark.parametrize("shared", [False, True])
def test_no_row_beats_a_forests_best(shared):
    """Of the evaluated configurations; a regret is the distance from the best value."""
    forest = make_forest(shared=shared)
    values = np.concatenate([recorded.values for recorded in forest.recorded()])
    for task in forest.tasks:
        assert task.regret(task.evaluate_many(values)).min() >= 0


@pytest.mark.parametrize("shared", [False, True])
def test_saved_forests_are_cross_validated(tmp_path, shared):
    folder = save(make_forest(shared=shared), tmp_path / "mine")
    card = read_card(benchmark_spec(folder).artifact)
    assert (card.surrogate, card.folds) == (SurrogateType.FOREST, 10)
    assert all(0.6 < figures.r2 < 1 for figures in card.figures)
    check_benchmark(hbo.load(folder))


@pytest.mark.parametrize("direction", Direction)
def test_benchmark_records_rows_of_table(direction):
    space = conditional_space()
    frame = make_table(space)
    benchmark = make_benchmark(pd.concat([frame, frame.head(5)]), space, direction=direction)
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


def names_of_tasks(benchmark: Benchmark) -> list[str]:
    return [task.name for task in benchmark.tasks]


def largest_task_first() -> pd.DataFrame:
    return make_table(numeric_space()).sort_values("size", ascending=False, kind="stable")


def test_tasks_keep_order_of_table():
    benchmark = make_benchmark(largest_task_first(), numeric_space(), ordered=None)
    assert names_of_tasks(benchmark) == ["t2", "t1", "t0"]


def test_tasks_are_sorted_by_context():
    benchmark = make_benchmark(largest_task_first(), numeric_space(), ordered="size")
    assert names_of_tasks(benchmark) == ["t0", "t1", "t2"]
    contexts = [task.context for task in benchmark.tasks]
    assert contexts == [{"size": 10}, {"size": 100}, {"size": 1000}]


def test_context_may_name_the_tasks():
    benchmark = make_benchmark(largest_task_first(), numeric_space(), task="size")
    assert names_of_tasks(benchmark) == ["10", "100", "1000"]


def test_contexts_are_optional():
    benchmark = make_benchmark(largest_task_first(), numeric_space(), context=(), ordered=None)
    assert benchmark.tasks[0].context == {}


def test_benchmark_describes_itself():
    provenance = Provenance("ours", "our cluster", "CC0")
    benchmark = make_benchmark(
        make_table(numeric_space()),
        numeric_space(),
        version=3,
        summary="Ours.",
        unit="%",
        provenance=provenance,
    )
    assert (benchmark.id, benchmark.summary, benchmark.surrogate) == ("mine@3", "Ours.", "nearest")
    assert (benchmark.objective.name, benchmark.objective.unit) == ("error", "%")
    assert benchmark.provenance == provenance


def test_default_summary_counts_evaluations():
    benchmark = make_benchmark(make_table(numeric_space()), numeric_space())
    assert benchmark.summary == "90 evaluations of 3 tasks."  # 30 of each


def test_tasks_have_several_contexts():
    frame = make_table(numeric_space()).assign(share=0.25)
    frame["size"] = frame["size"].astype(float)
    benchmark = make_benchmark(frame, numeric_space(), context=["share", "size"])
    assert benchmark.tasks[1].context == {"share": 0.25, "size": 100.0}


def test_types_of_columns_do_not_matter():
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
        (task,) = make_benchmark(frame.assign(k=column), space, context=(), ordered=None).tasks
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
def test_invalid_tables_and_arguments_are_refused(change, options, message):
    space = conditional_space()
    with pytest.raises(EvaluationsError, match=message):
        make_benchmark(change(make_table(space)), space, **options)


def make_three_fail(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with three values that are not finite; the first is in row 4."""
    failed = frame.copy()
    failed.iloc[[4, 5, 50], failed.columns.get_loc("error")] = [np.nan, np.inf, -np.inf]
    return failed


def test_failed_evaluations_are_refused():
    frame = make_three_fail(make_table(numeric_space()))
    message = r"(?s)3 of 90 .* finite number: .*row 4 \(nan\).*drop_in"
    with pytest.raises(EvaluationsError, match=message):
        make_benchmark(frame, numeric_space())


def test_failed_evaluations_can_be_dropped():
    space = numeric_space()
    frame = make_three_fail(make_table(space))
    with pytest.warns(HistoryWarning, match="3 of 90 evaluations are left out"):
        benchmark = make_benchmark(frame, space, drop_invalid=True)
    assert sum(map(len, benchmark.recorded())) == 90 - 3

    expected = make_benchmark(frame[np.isfinite(frame["error"])], space)
    x = space.decode(space.sample_unit(np.random.default_rng(0), 50))
    for task, expected_task in zip(benchmark.tasks, expected.tasks, strict=True):
        assert task.evaluate_many(x).tolist() == expected_task.evaluate_many(x).tolist()


@pytest.mark.parametrize(("kind", "needed"), [("NEAREST", 2), ("FOREST", 10)])
def test_tasks_need_some_evaluations(kind, needed):
    space = numeric_space()
    frame = make_table(space).sort_values("task", kind="stable")
    superfluous = frame[frame["task"] == "t1"].index[needed - 1 :]
    one_too_few = frame.drop(superfluous)
    # Neither repeated configurations nor failed evaluations make up for it.
    with_repeated = pd.concat([one_too_few, one_too_few[one_too_few["task"] == "t1"]])
    with_failed = frame.copy()
    with_failed.loc[superfluous, "error"] = np.nan
    for table in (one_too_few, with_repeated, with_failed):
        with pytest.raises(EvaluationsError, match=rf"{needed} .* 1 of 3 tasks .* 't1' with"):
            make_benchmark(table.dropna(), space, surrogate=SurrogateType[kind])


@pytest.fixture(params=[False, True], ids=["own rows", "shared rows"])
def shared(request):
    return request.param


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_benchmark_passes_the_public_checks(shared, direction, space):
    check_benchmark(make_benchmark(make_table(space, shared=shared), space, direction=direction))


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_saved_benchmark_is_loaded_unchanged(tmp_path, shared, direction, space):
    benchmark = make_benchmark(make_table(space, shared=shared), space, direction=direction)
    loaded = hbo.load(save(benchmark, tmp_path / "mine"))
    x = space.decode(space.sample_unit(np.random.default_rng(0), 100))
    for attribute in ("id", "summary", "space"):
        assert getattr(loaded, attribute) == getattr(benchmark, attribute)
    for ours, theirs in zip(benchmark.tasks, loaded.tasks, strict=True):
        for attribute in ("name", "context", "best_value"):
            assert getattr(theirs, attribute) == getattr(ours, attribute)
        assert theirs.evaluate_many(x).tolist() == ours.evaluate_many(x).tolist()


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_saved_evaluations_are_loaded_unchanged(tmp_path, shared, direction, space):
    benchmark = make_benchmark(make_table(space, shared=shared), space, direction=direction)
    loaded = hbo.load(save(benchmark, tmp_path / "mine"))
    for ours, theirs in zip(benchmark.recorded(), loaded.recorded(), strict=True):
        assert np.array_equal(ours.values, theirs.values, equal_nan=True)
        assert ours.losses.tolist() == theirs.losses.tolist()


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_saved_card_describes_the_table(tmp_path, shared, space):
    frame = make_table(space, shared=shared)
    folder = save(make_benchmark(frame, space), tmp_path / "mine")
    card = read_card(benchmark_spec(folder).artifact)
    assert (card.surrogate, card.evaluations) == (SurrogateType.NEAREST, 3 * 30)
    assert card.configurations == len(frame.drop_duplicates(list(space.names)))
    assert [figures.name for figures in card.figures] == ["t0", "t1", "t2"]


@pytest.mark.parametrize("kind", ["NEAREST", "FOREST"])
def test_cross_validation_ignores_other_tasks(tmp_path, kind):
    """Noise that is the same on every task cannot be predicted."""
    space = SearchSpace([Parameter.number("x", 0, 1)])
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"x": rng.random(80), "error": rng.normal(size=80)})
    frame = pd.concat([noise.assign(task=t).sample(frac=1, random_state=t) for t in range(3)])
    surrogate = SurrogateType[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorSurrogateWarning)
        benchmark = make_benchmark(frame, space, context=(), ordered=None, surrogate=surrogate)
    card = read_card(benchmark_spec(save(benchmark, tmp_path / "mine")).artifact)
    assert all(figures.r2 < 0.3 and abs(figures.spearman) < 0.4 for figures in card.figures)


def test_poor_nearest_neighbours_are_warned_of():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(80), "error": rng.normal(size=80), "task": "a"})
    space = SearchSpace([Parameter.number("x", 0, 1)])
    with pytest.warns(PoorSurrogateWarning, match=r"overlap of 0\.\d\d.*surrogate=\"forest\""):
        make_benchmark(frame, space, context=(), ordered=None)


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "x" * 300, " ", "two\nlines", 7])
def test_invalid_benchmark_name_is_refused(name):
    with pytest.raises(InvalidNameError) as error:
        make_benchmark(make_table(numeric_space()), numeric_space(), name=name)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("ending", ["a\x1b[2Jb", "x" * 300, "\t", "two\nlines"])
def test_invalid_task_name_is_refused(ending):
    frame = make_table(numeric_space())
    with pytest.raises(InvalidNameError):
        make_benchmark(frame.assign(task=frame["task"] + ending), numeric_space())


def make_toy(**options: Any) -> Benchmark:
    """A benchmark of toy evaluations; `seed_of_rows` seeds the draw of its rows."""
    seed_of_rows = options.pop("seed_of_rows", 0)
    return make_benchmark(
        make_table(numeric_space(), seed=seed_of_rows), numeric_space(), **options
    )


@pytest.fixture
def saved_folder(tmp_path):
    return save(make_toy(), tmp_path / "mine")


def test_saving_same_content_again_succeeds(saved_folder):
    digest = benchmark_spec(saved_folder).content
    save(make_toy(), saved_folder)
    assert benchmark_spec(saved_folder).content == digest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"mine@1 with other .*version=2.*overwrite=True"),
        ({"name": "yours", "version": 2}, "choose another folder"),
    ],
)
def test_saving_other_content_is_refused(saved_folder, options, message):
    digest = benchmark_spec(saved_folder).content
    with pytest.raises(EvaluationsError, match=message):
        save(make_toy(seed_of_rows=1, **options), saved_folder)
    assert benchmark_spec(saved_folder).content == digest


def test_next_version_replaces_saved_one(saved_folder):
    save(make_toy(seed_of_rows=1, version=2), saved_folder)
    assert hbo.load(saved_folder).id == "mine@2"


def test_overwriting_brings_back_earlier_version(saved_folder):
    save(make_toy(seed_of_rows=1, version=2), saved_folder)
    save(make_toy(), saved_folder, overwrite=True)
    assert hbo.load(saved_folder).id == "mine@1"


def test_packaged_benchmark_is_not_saved(tmp_path):
    with pytest.raises(EvaluationsError, match="newsvendor@1 was not made by"):
        save(hbo.load("newsvendor"), tmp_path / "newsvendor")
    assert not (tmp_path / "newsvendor").exists()


def test_unsaved_benchmark_has_no_source():
    benchmark = make_toy()
    assert (benchmark.source, benchmark.identity) == ("", "")


def test_loaded_benchmark_is_identified_by_content(saved_folder):
    content = benchmark_spec(saved_folder).content
    assert hbo.load(saved_folder).identity == f"mine@1+{content[:12]}"


def test_loaded_benchmark_can_be_loaded_again(saved_folder):
    loaded = hbo.load(saved_folder)
    again = hbo.load(loaded.source)
    assert (again.source, again.identity) == (loaded.source, loaded.identity)


def test_packaged_benchmark_is_its_own_source():
    newsvendor = hbo.load("newsvendor")
    assert newsvendor.identity == newsvendor.source == "newsvendor@1"


def test_saved_benchmark_can_be_run(saved_folder):
    results = hbo.run(
        benchmarks=[str(saved_folder)],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.Ordered(trials=2),
    )
    tasks = results.frame()["task_name"].tolist()
    assert tasks == ["t0", "t0", "t1", "t1", "t2", "t2"]
