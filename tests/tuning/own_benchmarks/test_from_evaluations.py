"""Benchmarks from tables of evaluations: what they evaluate to, keep, refuse and save."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsRegressor

import hpobench_ordered as hbo
from hpobench_ordered import SearchSpace
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.benchmark import Benchmark, Provenance
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import (
    EvaluationsError,
    HistoryWarning,
    InvalidNameError,
    PoorSurrogateWarning,
)
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.bundle import read_card
from hpobench_ordered.surrogates.nearest import NearestSurrogate
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate
from hpobench_ordered.testing import check_benchmark
from hpobench_ordered.testing.toy import conditional_space, numeric_space, toy_benchmark
from hpobench_ordered.tuning.own_benchmarks import from_evaluations, save

SPACES = {"numbers": numeric_space(), "conditions": conditional_space()}


def make_table(
    space: SearchSpace, *, tasks: int = 3, n: int = 30, shared: bool = False, seed: int = 0
) -> pd.DataFrame:
    """A shuffled table of n evaluations of each toy task, with a column `host` of no use.

    Tasks are called t0, t1, t2, and their context `size` is 10, 100, 1000. With `shared`, all
    tasks have the same configurations. The objective is the column `error`.
    """
    rng = np.random.default_rng(seed)
    shared_unit = space.sample_unit(rng, n)
    rows = []
    for task in toy_benchmark(space, tasks=tasks).tasks:
        unit = shared_unit if shared else space.sample_unit(rng, n)
        values = space.decode(unit)
        size = 10 ** (task.index + 1)
        for config, error in zip(space.configs(values), task.evaluate_many(values), strict=True):
            rows.append({**config, "task": f"t{task.index}", "size": size, "error": error})
    return pd.DataFrame(rows).sample(frac=1, random_state=seed).assign(host="a")


def make_benchmark(frame: pd.DataFrame, space: SearchSpace, **options: Any) -> Benchmark:
    """A benchmark of evaluations, by default of `error`, with tasks ordered by `size`."""
    defaults: dict[str, Any] = {
        "name": "mine",
        "objective": "error",
        "direction": Direction.MINIMIZE,
        "context": ["size"],
        "ordered": "size",
    }
    return from_evaluations(frame, space, **(defaults | options))


def model_of(benchmark: Benchmark) -> object:
    """The surrogate that the tasks are evaluated by."""
    return benchmark.tasks[0]._surrogate


def select_configurations(frame: pd.DataFrame, space: SearchSpace) -> pd.DataFrame:
    """The columns of a table that are hyperparameters or constants of the space."""
    names = (*space.names, *space.constants)
    return frame[[column for column in frame.columns if column in names]]


def sample_values(space: SearchSpace, n: int, *, seed: int = 0) -> np.ndarray:
    """Coded values of n random configurations, (n, d)."""
    return space.decode(space.sample_unit(np.random.default_rng(seed), n))


def make_table_with_repeated_rows(space: SearchSpace, *, shared: bool, seed: int) -> pd.DataFrame:
    """A table where some configurations are evaluated more than once, with different errors."""
    evaluated_once = make_table(space, n=20, shared=shared, seed=seed)
    repeated = evaluated_once.sample(15, random_state=seed, replace=True)
    repeated["error"] += np.random.default_rng(seed).normal(size=15)
    return pd.concat([evaluated_once, repeated])


@given(
    seed=st.integers(0, 10**6),
    shared=st.booleans(),
    direction=st.sampled_from(Direction),
    space=st.sampled_from(list(SPACES.values())),
)
def test_evaluated_configurations_have_their_mean(seed, shared, direction, space):
    """A configuration that was evaluated several times has the mean of its values.

    The best value of a task is the best of these means.
    """
    frame = make_table_with_repeated_rows(space, shared=shared, seed=seed)

    benchmark = make_benchmark(frame, space, direction=direction)

    for task in benchmark.tasks:
        rows = frame[frame["task"] == task.name]
        means = rows.groupby(list(space.names), dropna=False)["error"].transform("mean")
        values = task.evaluate_many(select_configurations(rows, space))
        best = values.min() if direction is Direction.MINIMIZE else values.max()
        np.testing.assert_allclose(values, means, rtol=1e-12)
        assert task.best_value == best


@pytest.mark.parametrize(
    ("shared", "surrogate_class"), [(True, NearestSurrogate), (False, PerTaskSurrogate)]
)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_shared_configurations_share_a_surrogate(shared, surrogate_class, space):
    """Tasks with the same configurations share one surrogate, their nearest neighbours.

    Otherwise each task has nearest neighbours of its own.
    """
    benchmark = make_benchmark(make_table(space, shared=shared), space)

    assert isinstance(model_of(benchmark), surrogate_class)


@pytest.mark.parametrize("shared", [False, True])
def test_other_configurations_have_nearest_value(shared):
    """Distances are those in x and log y, standardised over the evaluations of all tasks."""
    space = numeric_space()
    frame = make_table(space, n=200, shared=shared)
    queries = pd.DataFrame(space.configs(sample_values(space, 500, seed=1)))

    def compute_features(table: pd.DataFrame) -> np.ndarray:
        return np.stack([table["x"], np.log(table["y"])], axis=1)

    mean = compute_features(frame).mean(axis=0)
    deviation = compute_features(frame).std(axis=0)

    benchmark = make_benchmark(frame, space)

    for task in benchmark.tasks:
        rows = frame[frame["task"] == task.name]
        standardised = (compute_features(rows) - mean) / deviation
        reference = KNeighborsRegressor(1).fit(standardised, rows["error"])
        expected = reference.predict((compute_features(queries) - mean) / deviation)
        assert task.evaluate_many(queries).tolist() == expected.tolist()


def make_forest(*, shared: bool) -> Benchmark:
    """A forest of 150 evaluations of each of two conditional toy tasks."""
    space = conditional_space()
    frame = make_table(space, tasks=2, n=150, shared=shared)
    return make_benchmark(frame, space, surrogate=SurrogateType.FOREST)


@pytest.mark.parametrize("shared", [False, True])
def test_forests_pass_the_public_checks(shared):
    check_benchmark(make_forest(shared=shared))


@pytest.mark.parametrize("shared", [False, True])
def test_forests_predict_the_toy_tasks(shared):
    """At new configurations, predictions are close to the values that the rows are from."""
    space = conditional_space()
    values = sample_values(space, 500, seed=99)
    toy_tasks = toy_benchmark(space, tasks=2).tasks

    forest = make_forest(shared=shared)

    for task, toy_task in zip(forest.tasks, toy_tasks, strict=True):
        predicted = task.evaluate_many(values)
        correlation = np.corrcoef(predicted, toy_task.evaluate_many(values))[0, 1]
        assert correlation > 0.9


@pytest.mark.parametrize("shared", [False, True])
def test_saved_forests_are_cross_validated(tmp_path, shared):
    """The figures are of evaluations that a forest was not fitted to."""
    folder = save(make_forest(shared=shared), tmp_path / "mine")

    card = read_card(benchmark_spec(folder).artifact)
    assert card.surrogate is SurrogateType.FOREST
    assert card.folds == 10
    for quality in card.figures:
        # Good, but lower than on the evaluations that the forest was fitted to, where it is near 1.
        assert 0.6 < quality.r2 < 1


def test_saved_forests_pass_the_public_checks(tmp_path):
    """`check_benchmark` is what users check their own benchmarks with."""
    folder = save(make_forest(shared=False), tmp_path / "mine")

    check_benchmark(hbo.load(folder))


@pytest.mark.parametrize("direction", Direction)
def test_benchmark_records_rows_of_table(direction):
    """All rows of a task in their order, also those that repeat a configuration.

    The benchmark is a copy by pickle, as for another process.
    """
    space = conditional_space()
    table = make_table(space)
    repeated_rows = table.head(5)
    frame = pd.concat([table, repeated_rows])

    benchmark = make_benchmark(frame, space, direction=direction)
    benchmark = pickle.loads(pickle.dumps(benchmark))

    for task, recorded in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        rows = frame[frame["task"] == task.name]
        assert (recorded.task, recorded.context) == (task.name, task.context)
        assert recorded.losses.tolist() == (direction.sign * rows["error"]).tolist()
        expected_values = space.values(select_configurations(rows, space))
        assert np.array_equal(recorded.values, expected_values, equal_nan=True)


def names_of_tasks(benchmark: Benchmark) -> list[str]:
    return [task.name for task in benchmark.tasks]


def make_table_of_largest_task_first() -> pd.DataFrame:
    """A table whose rows are in the order of the tasks t2, t1 and t0, of sizes 1000, 100 and 10."""
    return make_table(numeric_space()).sort_values("size", ascending=False, kind="stable")


def test_table_may_be_a_file(tmp_path):
    """The benchmark is that of the table; its values are equal to the last bit."""
    table = make_table(numeric_space())
    path = tmp_path / "mine.csv.gz"
    table.to_csv(path, index=False)

    benchmark = make_benchmark(path, numeric_space())

    expected = make_benchmark(table, numeric_space())
    values = sample_values(numeric_space(), 20)
    for task, expected_task in zip(benchmark.tasks, expected.tasks, strict=True):
        assert task.evaluate_many(values).tolist() == expected_task.evaluate_many(values).tolist()


def test_tasks_are_sorted_by_context():
    """With `ordered`, tasks are in the order of a context, whatever that of the rows."""
    frame = make_table_of_largest_task_first()

    benchmark = make_benchmark(frame, numeric_space(), ordered="size")

    assert names_of_tasks(benchmark) == ["t0", "t1", "t2"]
    contexts = [task.context for task in benchmark.tasks]
    assert contexts == [{"size": 10}, {"size": 100}, {"size": 1000}]


def test_columns_that_may_name_tasks_are_listed():
    """Evaluations of several tasks would be averaged as if they were of one."""
    table = make_table(numeric_space())
    frame = table.rename(columns={"task": "dataset"})
    with pytest.warns(HistoryWarning, match=r"read as one task; .*: 'dataset', 'size', 'host'"):
        make_benchmark(frame, numeric_space(), context=[], ordered=None)


def test_context_may_name_the_tasks():
    """One column, `size`, has the names of tasks and their contexts."""
    frame = make_table_of_largest_task_first()

    benchmark = make_benchmark(frame, numeric_space(), task="size")

    assert names_of_tasks(benchmark) == ["10", "100", "1000"]


def test_benchmark_describes_itself():
    """Name, version and the other options are kept; nearest neighbours are the default."""
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


def test_tasks_have_several_contexts():
    """Each task has a share, which is the same of all, and a size."""
    frame = make_table(numeric_space()).assign(share=0.25).astype({"size": float})

    benchmark = make_benchmark(frame, numeric_space(), context=["share", "size"])

    contexts = [task.context for task in benchmark.tasks]
    assert contexts == [{"share": 0.25, "size": size} for size in (10.0, 100.0, 1000.0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "eror"}, r"'eror' for the objective\n.* use: .*'error'"),
        ({"task": "tsk"}, r"no column 'tsk' for the task\n.* without a use: 'task'"),
        ({"context": ["sizes"], "ordered": None}, r"'sizes' for a context\n.* use: 'size'"),
        ({"ordered": "host"}, "one of the contexts, but got 'host'; .*'size'"),
        ({"context": "size"}, r"a list, such as \['size'\]"),
        ({"task": "kind"}, "'kind' is a hyperparameter; it cannot be the task"),
        ({"objective": "size"}, "'size' is the objective; it cannot be"),
        ({"surrogate": "nearset"}, "'nearset'; did you mean 'nearest'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    """Options that name the wrong columns or another surrogate; `fixed` is a constant."""
    space = conditional_space()
    table = make_table(space)

    with pytest.raises(EvaluationsError, match=message):
        make_benchmark(table, space, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.assign(size="big"), "'size' must hold one finite number .* 'big'"),
        (
            lambda table: table.assign(size=range(90)),
            r"'size' must .* one .*, but task 't\d' has \d",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused(change, message):
    """The context `size` is not one finite number for each task."""
    space = conditional_space()
    table = change(make_table(space))

    with pytest.raises(EvaluationsError, match=message):
        make_benchmark(table, space)


def make_three_fail(table: pd.DataFrame) -> pd.DataFrame:
    """The table with errors in its rows 4, 5 and 50 that are not finite."""
    with_failures = table.copy()
    column = with_failures.columns.get_loc("error")
    with_failures.iloc[[4, 5, 50], column] = [np.nan, np.inf, -np.inf]
    return with_failures


def test_failed_evaluations_are_refused():
    """The message names the first failed row, and the option that drops failed rows."""
    frame = make_three_fail(make_table(numeric_space()))

    several_lines = "(?s)"  # lets ".*" match line ends, too
    message = several_lines + r"3 of 90 .* finite number: .*row 4 \(nan\).*drop_invalid"
    with pytest.raises(EvaluationsError, match=message):
        make_benchmark(frame, numeric_space())


def test_failed_evaluations_can_be_dropped():
    """The result is that of a table without them."""
    space = numeric_space()
    frame = make_three_fail(make_table(space))
    without_failed = frame[np.isfinite(frame["error"])]

    with pytest.warns(HistoryWarning, match="3 of 90 evaluations are left out"):
        benchmark = make_benchmark(frame, space, drop_invalid=True)

    assert sum(map(len, benchmark.recorded())) == 90 - 3
    expected = make_benchmark(without_failed, space)
    values = sample_values(space, 50)
    for task, expected_task in zip(benchmark.tasks, expected.tasks, strict=True):
        assert task.evaluate_many(values).tolist() == expected_task.evaluate_many(values).tolist()


FOR_EACH_MINIMAL_NUMBER = pytest.mark.parametrize(
    ("surrogate", "needed"), [(SurrogateType.NEAREST, 2), (SurrogateType.FOREST, 10)]
)
"""Each surrogate needs this number of different configurations of every task."""


def drop_rows_of_t1(table: pd.DataFrame, *, remaining: int) -> pd.DataFrame:
    """The table, with only the first `remaining` rows of task t1, the second of three tasks."""
    rows_of_t1 = table.index[table["task"] == "t1"]
    return table.drop(rows_of_t1[remaining:])


@FOR_EACH_MINIMAL_NUMBER
def test_tasks_need_some_evaluations(surrogate, needed):
    """One of three tasks has one evaluation fewer than the surrogate needs of every task."""
    space = numeric_space()
    frame = drop_rows_of_t1(make_table(space), remaining=needed - 1)

    with pytest.raises(EvaluationsError, match=rf"{needed} .* 1 of 3 tasks .* 't1' with"):
        make_benchmark(frame, space, surrogate=surrogate)


@pytest.fixture(params=[False, True], ids=["own rows", "shared rows"])
def shared(request):
    """Whether all tasks have the same configurations."""
    return request.param


def test_benchmark_passes_the_public_checks(shared):
    """`check_benchmark` is what users check their own benchmarks with."""
    space = conditional_space()
    table = make_table(space, shared=shared)

    check_benchmark(make_benchmark(table, space, direction=Direction.MAXIMIZE))


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_saved_benchmark_is_loaded_unchanged(tmp_path, shared, direction, space):
    """Its description, the values of its tasks, and the evaluations."""
    benchmark = make_benchmark(make_table(space, shared=shared), space, direction=direction)

    loaded = hbo.load(save(benchmark, tmp_path / "mine"))

    assert loaded.id == benchmark.id
    assert loaded.summary == benchmark.summary
    assert loaded.space == benchmark.space
    values = sample_values(space, 100)
    for loaded_task, task in zip(loaded.tasks, benchmark.tasks, strict=True):
        assert loaded_task.name == task.name
        assert loaded_task.context == task.context
        assert loaded_task.best_value == task.best_value
        assert loaded_task.evaluate_many(values).tolist() == task.evaluate_many(values).tolist()
    for evaluations, expected in zip(loaded.recorded(), benchmark.recorded(), strict=True):
        assert np.array_equal(evaluations.values, expected.values, equal_nan=True)
        assert evaluations.losses.tolist() == expected.losses.tolist()


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_saved_card_describes_the_table(tmp_path, shared, space):
    """The card, which is saved beside the benchmark, has its counts and figures of quality."""
    table = make_table(space, tasks=3, n=30, shared=shared)

    folder = save(make_benchmark(table, space), tmp_path / "mine")

    card = read_card(benchmark_spec(folder).artifact)
    assert card.surrogate is SurrogateType.NEAREST
    assert card.evaluations == 3 * 30
    assert card.configurations == len(table.drop_duplicates(list(space.names)))
    assert [quality.name for quality in card.figures] == ["t0", "t1", "t2"]


def make_noise() -> tuple[SearchSpace, pd.DataFrame]:
    """A space of one number x, and 80 evaluations whose errors do not depend on it."""
    space = SearchSpace([Parameter.number("x", 0, 1)])
    rng = np.random.default_rng(0)
    return space, pd.DataFrame({"x": rng.random(80), "error": rng.normal(size=80)})


@pytest.mark.parametrize("surrogate", [SurrogateType.NEAREST, SurrogateType.FOREST])
@pytest.mark.filterwarnings(f"ignore::{PoorSurrogateWarning.__module__}.PoorSurrogateWarning")
def test_cross_validation_ignores_other_tasks(tmp_path, surrogate):
    """Each task has the same noise, which could be predicted only from the other tasks."""
    space, noise = make_noise()
    tables = [noise.assign(task=task).sample(frac=1, random_state=task) for task in range(3)]
    benchmark = make_benchmark(
        pd.concat(tables), space, context=(), ordered=None, surrogate=surrogate
    )

    folder = save(benchmark, tmp_path / "mine")

    # With the other tasks' evaluations both would be near 1.
    for quality in read_card(benchmark_spec(folder).artifact).figures:
        assert quality.r2 < 0.3
        assert abs(quality.spearman) < 0.4


def test_poor_nearest_neighbours_are_warned_of():
    """They cannot predict noise. The warning tells how badly, and suggests a forest."""
    space, noise = make_noise()
    table = noise.assign(task="a")

    # The overlap is that of the truly best tenth and the best tenth by prediction.
    message = r"overlap of 0\.\d\d.*surrogate=\"forest\""
    with pytest.warns(PoorSurrogateWarning, match=message):
        make_benchmark(table, space, context=(), ordered=None)


@pytest.mark.parametrize("name", ["a\x1b[2Jb", " ", 7])
def test_invalid_benchmark_name_is_refused(name):
    """The message repeats the name, but not the characters that would control a terminal."""
    table = make_table(numeric_space())

    with pytest.raises(InvalidNameError) as error:
        make_benchmark(table, numeric_space(), name=name)

    assert str(error.value).isprintable()


def make_toy(*, seed_of_rows: int = 0, **options: Any) -> Benchmark:
    """The benchmark `mine@1` of toy evaluations, which are drawn by a seed."""
    table = make_table(numeric_space(), seed=seed_of_rows)
    return make_benchmark(table, numeric_space(), **options)


@pytest.fixture
def saved_folder(tmp_path):
    """A folder with the toy benchmark, `mine@1`."""
    return save(make_toy(), tmp_path / "mine")


def test_saving_same_content_again_succeeds(saved_folder):
    """The folder has the same benchmark of the same evaluations already."""
    digest = benchmark_spec(saved_folder).content

    save(make_toy(), saved_folder)

    assert benchmark_spec(saved_folder).content == digest


def test_saving_other_evaluations_is_refused(saved_folder):
    """The folder has the same version of the benchmark, but of other evaluations."""
    digest = benchmark_spec(saved_folder).content
    other_toy = make_toy(seed_of_rows=1)

    message = r"mine@1 with other .*version=2.*overwrite=True"
    with pytest.raises(EvaluationsError, match=message):
        save(other_toy, saved_folder)

    assert benchmark_spec(saved_folder).content == digest


def test_saving_other_benchmark_is_refused(saved_folder):
    """The folder has a benchmark of another name."""
    digest = benchmark_spec(saved_folder).content
    yours = make_toy(seed_of_rows=1, name="yours", version=2)

    with pytest.raises(EvaluationsError, match="choose another folder"):
        save(yours, saved_folder)

    assert benchmark_spec(saved_folder).content == digest


def test_next_version_replaces_saved_one(saved_folder):
    """The folder has version 1, of other evaluations."""
    second_version = make_toy(seed_of_rows=1, version=2)

    save(second_version, saved_folder)

    assert hbo.load(saved_folder).id == "mine@2"


def test_overwriting_brings_back_earlier_version(saved_folder):
    """Version 1 replaces version 2 only because of `overwrite`."""
    save(make_toy(seed_of_rows=1, version=2), saved_folder)

    save(make_toy(version=1), saved_folder, overwrite=True)

    assert hbo.load(saved_folder).id == "mine@1"


def test_packaged_benchmark_is_not_saved(tmp_path):
    """Only benchmarks that were made from evaluations can be saved."""
    newsvendor = hbo.load("newsvendor")

    with pytest.raises(EvaluationsError, match="newsvendor@1 was not made by"):
        save(newsvendor, tmp_path / "newsvendor")

    assert not (tmp_path / "newsvendor").exists()


def test_saved_benchmark_can_be_run(saved_folder):
    """A folder may be passed as a benchmark; two trials are run on each of three tasks."""
    results = hbo.run(
        benchmarks=[str(saved_folder)],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.Ordered(trials=2),
    )

    tasks = results.frame()["task_name"].tolist()
    assert tasks == ["t0", "t0", "t1", "t1", "t2", "t2"]
