"""Earlier tuning as history: whatever is wrong with it is refused, by every way in."""

import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace
from exact_csv import read_exactly
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered import Compare, Comparison, Direction, Evaluations, Parameter, SearchSpace
from hpobench_ordered.errors import EvaluationsError, HistoryWarning, StoreError
from hpobench_ordered.testing.toy import numeric_space, toy_benchmark

SPACE = SearchSpace(
    [
        Parameter.number("rate", 1e-4, 0.5, log=True),
        Parameter.number("depth", 1, 9, integer=True),
        Parameter.choice("kernel", ("linear", "radial")),
        Parameter.number("gamma", 0, 1),
    ],
    conditions={"gamma": Compare(2, Comparison.EQUAL, (1.0,))},
    constants={"trees": 100},
)
MONTHS = ("May", "June", "July")


def tuning() -> list[Evaluations]:
    """Three months of six tuning accuracies, of which the first failed."""
    rng = np.random.default_rng(0)
    return [
        Evaluations(
            month,
            {},
            SPACE.decode(SPACE.sample_unit(rng, 6)),
            np.where(np.arange(6) == 0, np.nan, rng.random(6)),
            space=SPACE,
            direction=Direction.MAXIMIZE,
        )
        for month in MONTHS
    ]


def read(frame: Any, space: Any = SPACE, **options: Any) -> tuple[Evaluations, ...]:
    settings = {"objective": "accuracy", "direction": "maximize", "task": "month"}
    return hbo.history_from_frame(frame, space, **settings | options)


def table() -> pd.DataFrame:
    frames = [e.frame(task="month", objective="accuracy") for e in tuning()]
    return pd.DataFrame([row for frame in frames for row in frame.to_dict("records")])


def same(history: tuple[Evaluations, ...], expected: list[Evaluations]) -> None:
    assert [e.task for e in history] == [e.task for e in expected]
    for one, other in zip(history, expected, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.objective, other.objective)
        np.testing.assert_array_equal(one.losses, -other.objective)
        assert (one.space, one.direction) == (SPACE, Direction.MAXIMIZE)


def test_written_table_is_read_again(tmp_path):
    same(read(table()), tuning())
    table().to_csv(tmp_path / "tuning.csv", index=False)
    same(read(read_exactly(tmp_path / "tuning.csv")), tuning())
    same(read(table().astype(object).fillna("NA").astype(str)), tuning())
    shuffled = table()[["gamma", "accuracy", "kernel", "month", "rate", "depth"]]
    same(read(shuffled), tuning())
    same(read(shuffled.assign(trees=100)), tuning())


def test_tasks_come_as_they_first_appear():
    mixed = table().iloc[[12, 1, 13, 7, 2, 8, 14]]
    history = read(mixed)
    assert [e.task for e in history] == ["July", "May", "June"]
    may, _, july = tuning()
    np.testing.assert_array_equal(history[0].values, july.values[:3])
    np.testing.assert_array_equal(history[1].values, may.values[1:3])


def cell(row: int, column: str, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Changes one cell."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        whole = frame.astype({column: object})
        whole.loc[row, column] = value
        return whole

    return change


def renamed(**names: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda frame: frame.rename(columns=names)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (renamed(rate="rates"), r"'rate' for a hyperparameter\n.* use: 'rates' \(`rename`"),
        (lambda f: f.drop(columns="gamma"), "no column 'gamma' for a hyperparameter"),
        (renamed(accuracy="Accuracy"), r"for the objective\n- columns without a use: 'Accuracy'"),
        (lambda f: f.iloc[:0], "no usable evaluation with a value in the table"),
        (lambda f: f.assign(accuracy=np.nan), "no usable evaluation with a value"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"drop_invalid": True, "clip": True}], ids=["", "options"])
def test_wrong_columns_are_refused(spoil, said, options):
    with pytest.raises(EvaluationsError, match=said):
        read(spoil(table()), **options)


def test_other_columns_are_ignored_with_warning():
    with pytest.warns(HistoryWarning, match="hyperparameters .* are ignored: 'run', 'momentum'"):
        same(read(table().assign(run=range(18), momentum=0.9)), tuning())
    twice = table().assign(copy=lambda f: f.rate).rename(columns={"copy": "rate"})
    for reader in (hbo.history_from_frame, partial(hbo.from_evaluations, name="mine")):
        with pytest.raises(EvaluationsError, match="two columns 'rate'"):
            reader(twice, SPACE, objective="accuracy", direction="maximize", task="month")


WRONG_CELLS = [
    ("depth", 10, r"'depth' must be an integer in \[1, 9\]: row 4 \(10"),
    ("depth", 2.5, r"'depth' must be an integer in \[1, 9\]: row 4 \(2.5\)"),
    ("rate", "fast", r"'rate' must be a number .*: row 4 \('fast'\)"),
    ("depth", None, r"'depth' must be an integer in \[1, 9\], but is empty: row 4"),
    ("kernel", "radail", r"'kernel' must be one of 'linear', 'radial': row 4"),
    ("rate", math.inf, r"'rate' must be a number .*: row 4 \('?inf"),
    ("accuracy", "good", "the objective must be .*: row 4"),
    ("month", None, "column 'month' names no task: row 4"),
]


@pytest.mark.parametrize(("column", "value", "said"), WRONG_CELLS)
def test_wrong_cell_is_refused_or_dropped(column, value, said):
    spoiled = cell(4, column, value)(table())
    with pytest.raises(EvaluationsError, match=said):
        read(spoiled)
    with pytest.warns(HistoryWarning, match="1 of 18 evaluations are left out"):
        left = read(spoiled, drop_invalid=True)
    same(left, [*read(table().drop(index=4))])


def test_all_problems_are_listed_together():
    spoiled = cell(15, "depth", 0)(cell(3, "depth", 11)(cell(3, "rate", 7.0)(table())))
    with pytest.raises(EvaluationsError) as error:
        read(spoiled)
    assert "'rate' must be a number in [0.0001, 0.5] (log scale): row 3 (7.0)" in str(error.value)
    (depth,) = [line for line in str(error.value).splitlines() if "'depth'" in line]
    assert "row 3" in depth and "row 15" in depth


@given(
    row=st.integers(0, 17),
    column=st.sampled_from(["rate", "depth"]),
    value=st.one_of(
        st.floats(9.0001, 1e300),
        st.floats(-1e300, 0),
        st.text(st.characters(categories=["L"]), max_size=4),
        st.booleans(),
        st.just(10**400),
    ),
)
def test_no_wrong_value_is_believed(row, column, value):
    with pytest.raises(EvaluationsError, match=rf"'{column}' must be .*row {row} "):
        read(cell(row, column, value)(table()))


@pytest.mark.parametrize("scale", [np.log10, np.log, np.log2])
def test_column_on_another_scale_stays(scale):
    spoiled = table().assign(rate=lambda f: scale(f.rate))
    with pytest.raises(EvaluationsError, match=r"'rate' must be .*; all values on task 'May' are"):
        read(spoiled, clip=True)


@pytest.mark.parametrize("clip", [False, True])
def test_task_on_another_scale_is_dropped(clip):
    is_may = table().month == "May"
    spoiled = table().assign(rate=lambda f: f.rate.where(~is_may, np.log10(f.rate)))
    with pytest.warns(HistoryWarning, match="6 of 18 evaluations are left out; .*'May'"):
        history = read(spoiled, clip=clip, drop_invalid=True)
    same(history, tuning()[1:])


LARGE = 2**53 + 1


def test_objective_that_floats_round_is_refused():
    with pytest.raises(EvaluationsError, match=r"row 4 .*integer that floats round"):
        read(cell(4, "accuracy", LARGE)(table()))


def test_context_that_floats_round_is_refused():
    contexts = {month: {"size": LARGE} for month in MONTHS}
    with pytest.raises(EvaluationsError, match=r"'size' of task 'May' .*integer that floats round"):
        read(table(), contexts=contexts)


def test_repeated_rows_are_refused():
    again = pd.concat([table(), table().iloc[[5]]], ignore_index=True)
    with pytest.raises(EvaluationsError, match=r"repeat another row of their task: row 18 \(row 5"):
        read(again)
    with pytest.warns(HistoryWarning, match="1 of 19 evaluations"):
        same(read(again, drop_invalid=True), tuning())
    measured_again = cell(18, "accuracy", 0.123)(again)
    assert [len(e) for e in read(measured_again)] == [7, 6, 6]
    copy = table().query("month == 'May'").assign(month="August")
    with pytest.raises(EvaluationsError, match="'May' and 'August' have identical"):
        read(pd.concat([table(), copy], ignore_index=True))


def test_clip_moves_numbers_to_the_bound():
    spoiled = cell(2, "depth", 12)(cell(4, "rate", 1e-9)(cell(5, "rate", 3.0)(table())))
    with pytest.warns(HistoryWarning, match="2 of 'rate', 1 of 'depth'"):
        may, *_ = read(spoiled, clip=True)
    expected = tuning()[0].values.copy()
    expected[2, 1], expected[4, 0], expected[5, 0] = 9, 1e-4, 0.5
    np.testing.assert_array_equal(may.values, expected)
    with pytest.raises(EvaluationsError, match="'kernel' must be"):
        read(cell(2, "kernel", "none of these")(spoiled), clip=True)
    with pytest.raises(EvaluationsError, match="'depth' must be an integer"):
        read(cell(2, "depth", 2.5)(spoiled), clip=True)  # in range, but no integer


def test_rows_without_use_are_dropped():
    with pytest.raises(EvaluationsError, match="no usable evaluation with a value in the table"):
        read(table().assign(kernel="cubic"), drop_invalid=True)
    without_may = table().assign(kernel=lambda f: f.kernel.where(f.month != "May", "cubic"))
    with pytest.warns(HistoryWarning, match="6 of 18 .* are left out; nothing is left of task"):
        assert [e.task for e in read(without_may, drop_invalid=True)] == ["June", "July"]
    same(read(table().assign(gamma=lambda f: f.gamma.fillna(77.0))), tuning())
    spoiled = cell(7, "trees", 50)(table().assign(trees=100))
    with pytest.raises(EvaluationsError, match=r"'trees' must be 100: row 7 \(50"):
        read(spoiled)


def test_contexts_are_those_of_the_tasks():
    contexts = {month: {"size": float(i)} for i, month in enumerate(MONTHS)}
    assert [e.context for e in read(table(), contexts=contexts)] == [*contexts.values()]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({**contexts, "Jun": {"size": 1}}, r"unknown task 'Jun'; did you mean 'June'\?"),
        ({"May": {"size": 1}}, "no context of 'June', 'July'"),
        ({**contexts, "July": {"sizes": 1}}, r"'July' has \['sizes'\], that of 'May' \['size'\]"),
        ({**contexts, "July": {"size": math.nan}}, "'size' of task 'July' must be a finite number"),
    ]
    for given_, said in wrong:
        with pytest.raises(EvaluationsError, match=said):
            read(table(), contexts=given_)


def test_ordinals_are_told_but_for_rounding():
    space = SearchSpace([Parameter.choice("x", (0.1, 0.2, 0.1 + 0.2), ordered=True)])
    frame = pd.DataFrame({"month": "May", "x": [0.1, 0.3, 0.2], "accuracy": [1.0, 2.0, 3.0]})
    assert read(frame, space)[0].values[:, 0].tolist() == [0, 2, 1]
    with pytest.raises(EvaluationsError, match=r"row 1 \(0.31\)"):
        read(cell(1, "x", 0.31)(frame), space)


def test_choices_and_names_pandas_changes(tmp_path):
    space = SearchSpace([Parameter.choice("penalty", ("l1", "None"))])
    (tmp_path / "t.csv").write_text("month,penalty,error\nMay,l1,1\nMay,None,2\n")
    with pytest.raises(EvaluationsError, match="keep_default_na=False"):
        read(pd.read_csv(tmp_path / "t.csv"), space, objective="error")
    whole = pd.read_csv(tmp_path / "t.csv", keep_default_na=False)
    (may,) = read(whole, space, objective="error")
    assert may.values[:, 0].tolist() == [0, 1]
    frame = pd.DataFrame({"month": [202401.0, 202402.0], "x": [3, 4], "accuracy": [1.0, 2.0]})
    history = read(frame, ConfigurationSpace({"x": (1, 9)}))
    assert [e.task for e in history] == ["202401", "202402"]
    assert [e.values.tolist() for e in history] == [[[3.0]], [[4.0]]]


def test_invalid_arguments_are_refused():
    for frame, space, options, said in (
        ([], SPACE, {}, "must be a DataFrame, but got list"),
        (table(), [], {}, "the search space must be a SearchSpace, Conf"),
        (table(), SPACE, {"objective": "month"}, "'month' is the objective; it cannot be the task"),
        (table(), SPACE, {"objective": None}, "column names must be text, but got None"),
        (table(), SPACE, {"direction": "maximise"}, r"'maximise'; did you mean 'maximize'\?"),
    ):
        with pytest.raises(EvaluationsError, match=said):
            read(frame, space, **options)
    forgotten = read(table().assign(accuracy=lambda f: -f.accuracy), direction="minimize")
    with pytest.raises(EvaluationsError, match="to minimize, that of the task at hand to maximize"):
        hbo.check_history(forgotten, SPACE, "maximize")
    hbo.check_history(read(table()), SPACE, "maximize")


GOOD: dict[str, Any] = {
    "task": "May",
    "context": {},
    "values": np.array([[0.1, 3.0, 1.0, 0.5], [0.2, 4.0, 0.0, np.nan]]),
    "objective": np.array([0.9, np.nan]),
    "space": SPACE,
    "direction": Direction.MAXIMIZE,
}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"values": GOOD["values"][:, [1, 0, 2, 3]]}, r"rate .* got 3.0; row 0: depth .* got 0.1"),
    ({"values": GOOD["values"][:, :3]}, r"shape \(2, 4\), one column for each"),
    ({"values": GOOD["values"] + [0, 0.5, 0, 0]}, "row 0: depth .*, but got 3.5"),
    ({"values": [[0.1, 3, 1, np.nan]] * 2}, "row 0: gamma .*, but got nan"),
    ({"values": [[0.1, 3, 0, 0.5]] * 2}, "gamma must be NaN, as it is inac"),
    ({"values": [["0.1", "3", "1", "0.5"]] * 2}, "the values .* must be numbers"),
    ({"values": [[0.1, 3, 1, 0.5], [0.1]]}, "the values of task 'May'"),
    ({"objective": [0.9]}, r"the objective .* shape \(2,\), got"),
    ({"objective": [0.9, -np.inf]}, "row 1 is infinite; use NaN"),
    ({"task": 5}, "the name of a task must be text, but got 5"),
    ({"space": None}, "must be a SearchSpace, but got NoneType"),
    ({"direction": "up"}, "unknown direction 'up'"),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_wrong_evaluations_cannot_be_made(change, said):
    assert len(Evaluations(**GOOD)) == 2
    with pytest.raises(EvaluationsError, match=said):
        Evaluations(**(GOOD | change))


def test_losses_have_the_sign_of_the_direction():
    maximised = Evaluations(**GOOD)
    minimised = Evaluations(**(GOOD | {"direction": "minimize"}))
    np.testing.assert_array_equal(maximised.losses, -GOOD["objective"])
    np.testing.assert_array_equal(minimised.losses, GOOD["objective"])


def test_arrays_are_read_only():
    original = Evaluations(**GOOD)
    copy = original.copied(SPACE)
    assert copy.values is not original.values
    for e in (original, copy):
        for array in (e.values, e.objective, e.losses):
            assert not array.flags.writeable


def test_frame_has_native_values():
    frame = Evaluations(**GOOD).frame(objective="accuracy")
    assert list(frame) == ["task", "rate", "depth", "kernel", "gamma", "accuracy"]
    assert frame.kernel.tolist() == ["radial", "linear"]
    assert frame.gamma.isna().tolist() == [False, True]


def test_frame_refuses_name_of_a_hyperparameter():
    with pytest.raises(EvaluationsError, match="'rate' is a hyperparameter"):
        Evaluations(**GOOD).frame(task="rate")


def on(space: SearchSpace, task: str = "May", direction: str = "maximize") -> Evaluations:
    values = space.decode(space.sample_unit(np.random.default_rng(len(task)), 4))
    return Evaluations(task, {}, values, np.arange(4.0), space=space, direction=direction)


WIDER = SearchSpace([Parameter.number("x", -5, 9), Parameter.number("z", 1e-4, 1, log=True)])


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([on(numeric_space()), on(numeric_space())], "'May': more than one history of the task"),
        ([on(numeric_space(), "June", "minimize")], "'June': its objective is to minimize"),
        ([on(WIDER)], r"'May': it is on another .*x: from -5 to 9, now from -5 to 5; .*z: removed"),
        ([on(SPACE)], "shares no hyperparameter"),
        (on(numeric_space()), "list of Evaluations, one per task, but got Evaluations"),
        ([on(numeric_space()).frame()], "list of Evaluations, one per task, but got list of Dat"),
    ],
)
def test_history_that_does_not_fit_is_refused(history, said):
    with pytest.raises(EvaluationsError, match=said):
        hbo.check_history(history, numeric_space(), Direction.MAXIMIZE)
    hbo.check_history([on(WIDER)], numeric_space(), "maximize", changed_spaces=True)
    with pytest.raises(EvaluationsError, match="shares no hyperparameter"):
        hbo.check_history([on(SPACE)], numeric_space(), "maximize", changed_spaces=True)


def test_same_coding_is_the_same_space():
    def choice(*choices: object, default: object = None) -> SearchSpace:
        return SearchSpace([Parameter.choice("c", choices, default=default)])  # type: ignore[arg-type]

    assert on(choice("a", "b")).is_on(choice("a", "b", default="b"))
    assert not on(choice("a", "b")).is_on(choice("b", "a"))
    assert not on(choice(True, False)).is_on(choice(1, 0))
    assert not on(numeric_space()).is_on(SearchSpace(numeric_space().parameters[::-1]))
    with pytest.raises(EvaluationsError, match="in another order"):
        hbo.check_history([on(choice("b", "a"))], choice("a", "b"), "maximize")


def run(
    folder: Any, *benchmarks: Any, trials: int, tasks: int | None = None, **options: Any
) -> Any:
    settings = {"methods": ["random-search"], "seeds": [0]} | options
    protocol = hbo.Ordered(trials=trials, tasks=tasks)
    return hbo.run(benchmarks=benchmarks, protocol=protocol, folder=folder, **settings)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    options = {"methods": ["random-search", "simple-ordered"], "seeds": [0, 1]}
    folder = tmp_path_factory.mktemp("store") / "results"
    return run(folder, "yahpo-ranger-4154", "newsvendor", trials=4, tasks=3, **options)


@pytest.mark.parametrize(("name", "folder"), [("yahpo-ranger-4154", False), ("newsvendor", True)])
def test_results_are_read_as_history(results, name, folder):
    source = results.store.folder if folder else results
    bench = hbo.load(name)
    history = hbo.history_from_results(source, method="simple-ordered", seed=1, benchmark=name)
    hbo.check_history(history, bench.space, bench.objective.direction)
    chosen = "benchmark == @bench.id and method == 'simple-ordered' and seed == 1"
    trials = results.frame().query(chosen)
    assert [e.task for e in history] == [task.name for task in bench.tasks[:3]]
    for task, e in zip(bench.tasks, history, strict=False):
        assert e.context == task.context
        np.testing.assert_array_equal(task.evaluate_many(e.values), e.objective)
        of_task = trials[trials.task == task.index]
        np.testing.assert_array_equal(e.objective, of_task.value)
        np.testing.assert_array_equal(e.losses, of_task.loss)


def test_ambiguous_or_unknown_results_are_refused(results, tmp_path):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"method": "random-search", "seed": 0}, "2 runs of .* 'newsvendor@1' or 'yahpo-ranger"),
        ({"method": "random-serch", "seed": 0}, r"did you mean 'random-search'\?"),
        ({"method": "random-search", "seed": 7}, "no finished run of seed 7"),
        ({"method": "random-search", "seed": 0, "benchmark": "svm-a"}, "of benchmark 'svm-a@1'"),
        ({"method": "random-search", "seed": 0, "protocol": "leave-one-out"}, "of protocol"),
    ]
    for asked, said in wrong:
        with pytest.raises(StoreError, match=said):
            hbo.history_from_results(results, **asked)
    with pytest.raises(StoreError, match="no finished run"):
        hbo.history_from_results(tmp_path, method="random-search", seed=0)
    with pytest.raises(EvaluationsError, match="unknown task 'May'"):
        hbo.history_from_results(
            results, method="random-search", seed=0, benchmark="newsvendor", contexts={"May": {}}
        )
    for trials in (2, 3):
        run(tmp_path, "newsvendor", trials=trials, tasks=1)
    with pytest.raises(StoreError, match=r"say which: protocol 'ordered\(trials=2"):
        hbo.history_from_results(tmp_path, method="random-search", seed=0, protocol="ordered")


def test_results_in_memory_need_their_benchmark(tmp_path):
    bench = toy_benchmark(numeric_space(), tasks=2, direction=Direction.MAXIMIZE)
    found = run(tmp_path / "store", bench, trials=3)
    asked: dict[str, Any] = {"method": "random-search", "seed": 0}
    known = hbo.history_from_results(found, **asked)
    given_ = hbo.history_from_results(tmp_path / "store", **asked, benchmark=bench)
    for one, other in zip(known, given_, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.losses, -other.objective)
        assert one.direction is Direction.MAXIMIZE
    with pytest.raises(StoreError, match="Give the benchmark"):
        hbo.history_from_results(tmp_path / "store", **asked)
    for other_bench in (
        toy_benchmark(numeric_space(), tasks=2),  # the other direction
        toy_benchmark(WIDER, tasks=2, direction=Direction.MAXIMIZE),
    ):
        with pytest.raises(StoreError, match="no finished run of benchmark"):
            hbo.history_from_results(tmp_path / "store", **asked, benchmark=other_bench)


def test_optuna_is_imported_on_first_use():
    code = "import sys, hpobench_ordered as hbo; assert 'optuna' not in sys.modules; "
    code += "hbo.history_from_studies; assert 'optuna' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
