"""Earlier tuning as history, read from tables and results: what is wrong with it is refused."""

import math
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
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


def make_tuning_history() -> list[Evaluations]:
    """Build three months of tuning, each of six accuracies, the first of them a failure (NaN)."""
    rng = np.random.default_rng(0)
    history = []
    for month in MONTHS:
        values = SPACE.decode(SPACE.sample_unit(rng, 6))
        accuracies = rng.random(6)
        accuracies[0] = np.nan
        history.append(
            Evaluations(month, {}, values, accuracies, space=SPACE, direction=Direction.MAXIMIZE)
        )
    return history


def make_tuning_table() -> pd.DataFrame:
    """Build the tuning history as a table: May has rows 0 to 5, June 6 to 11, July 12 to 17."""
    tables_of_months = [
        evaluations.frame(task="month", objective="accuracy")
        for evaluations in make_tuning_history()
    ]
    return pd.concat(tables_of_months, ignore_index=True)


def read_history(frame: Any, space: Any = SPACE, **options: Any) -> tuple[Evaluations, ...]:
    """Read a table of months as history, by default with accuracies to maximise."""
    settings = {"objective": "accuracy", "direction": "maximize", "task": "month"}
    return hbo.history_from_frame(frame, space, **settings | options)


def assert_histories_equal(history: Sequence[Evaluations], expected: Sequence[Evaluations]) -> None:
    """Check for the same tasks, values and accuracies; losses are negated accuracies."""
    assert [e.task for e in history] == [e.task for e in expected]
    for evaluations, expected_evaluations in zip(history, expected, strict=True):
        np.testing.assert_array_equal(evaluations.values, expected_evaluations.values)
        np.testing.assert_array_equal(evaluations.objective, expected_evaluations.objective)
        np.testing.assert_array_equal(evaluations.losses, -expected_evaluations.objective)
        assert evaluations.space == SPACE
        assert evaluations.direction is Direction.MAXIMIZE


def test_table_is_read_as_written():
    assert_histories_equal(read_history(make_tuning_table()), make_tuning_history())


def test_csv_file_is_read_as_written(tmp_path):
    make_tuning_table().to_csv(tmp_path / "tuning.csv", index=False)
    history = read_history(read_exactly(tmp_path / "tuning.csv"))
    assert_histories_equal(history, make_tuning_history())


def test_table_of_text_is_read():
    text = make_tuning_table().astype(object).fillna("NA").astype(str)
    assert_histories_equal(read_history(text), make_tuning_history())


def test_columns_may_have_any_order():
    shuffled = make_tuning_table()[["gamma", "accuracy", "kernel", "month", "rate", "depth"]]
    assert_histories_equal(read_history(shuffled), make_tuning_history())


def test_column_of_constant_is_allowed():
    with_constant = make_tuning_table().assign(trees=100)  # as in the space
    assert_histories_equal(read_history(with_constant), make_tuning_history())


def test_tasks_come_as_they_first_appear():
    """The rows of three tasks are mixed; those of each task keep their order."""
    table = make_tuning_table()
    rows_of_may, rows_of_june, rows_of_july = [1, 2], [7, 8], [12, 13, 14]
    mixed_rows = [12, 1, 13, 7, 2, 8, 14]

    july, may, june = read_history(table.iloc[mixed_rows])

    assert [july.task, may.task, june.task] == ["July", "May", "June"]
    for evaluations, rows in ((july, rows_of_july), (may, rows_of_may), (june, rows_of_june)):
        (expected,) = read_history(table.iloc[rows])
        np.testing.assert_array_equal(evaluations.values, expected.values)


def replace_cell(frame: pd.DataFrame, row: int, column: str, value: object) -> pd.DataFrame:
    """Copy a table with another value, of any type, in one cell."""
    copy = frame.astype({column: object})  # a column of objects holds values of any type
    copy.loc[row, column] = value
    return copy


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            make_tuning_table().rename(columns={"rate": "rates"}),
            r"'rate' for a hyperparameter\n.* use: 'rates' \(`rename`",
        ),
        (
            make_tuning_table().drop(columns="gamma"),
            "no column 'gamma' for a hyperparameter\nif the rows were evaluated on another search "
            "space, give that as `space`",
        ),
        (
            make_tuning_table().rename(columns={"accuracy": "Accuracy"}),
            r"for the objective\n- columns without a use: 'Accuracy'",
        ),
        (make_tuning_table().iloc[:0], "no usable evaluation with a value in the table"),
        (make_tuning_table().assign(accuracy=np.nan), "no usable evaluation with a value"),
    ],
    ids=["misspelt rate", "no gamma", "misspelt accuracy", "no rows", "failures only"],
)
@pytest.mark.parametrize(
    "options", [{}, {"drop_invalid": True, "clip": True}], ids=["strict", "lenient"]
)
def test_wrong_columns_are_refused(table, message, options):
    """A column is missing, or misspelt, or the table has no value of the objective.

    Options that leave out single values, or move them into their range, do not help.
    """
    with pytest.raises(EvaluationsError, match=message):
        read_history(table, **options)


def test_other_columns_are_ignored_with_warning():
    """Columns that are neither hyperparameters nor the objective nor the task are named."""
    table = make_tuning_table().assign(run=range(18), momentum=0.9)
    with pytest.warns(HistoryWarning, match="hyperparameters .* are ignored: 'run', 'momentum'"):
        history = read_history(table)
    assert_histories_equal(history, make_tuning_history())


@pytest.mark.parametrize(
    "reader",
    [hbo.history_from_frame, partial(hbo.from_evaluations, name="mine")],
    ids=["history_from_frame", "from_evaluations"],
)
def test_two_columns_of_a_name_are_refused(reader):
    """It cannot be known which column has the rates, for a history or for a benchmark."""
    table = make_tuning_table()
    with_two_rates = pd.concat([table, table[["rate"]]], axis="columns")
    with pytest.raises(EvaluationsError, match="two columns 'rate'"):
        reader(with_two_rates, SPACE, objective="accuracy", direction="maximize", task="month")


WRONG_CELLS_OF_ROW_4 = [
    ("depth", 10, r"'depth' must be an integer in \[1, 9\]: row 4 \(10"),
    ("depth", 2.5, r"'depth' must be an integer in \[1, 9\]: row 4 \(2.5\)"),
    ("rate", "fast", r"'rate' must be a number .*: row 4 \('fast'\)"),
    ("depth", None, r"'depth' must be an integer in \[1, 9\], but is empty: row 4"),
    ("kernel", "radail", r"'kernel' must be one of 'linear', 'radial': row 4"),
    ("rate", math.inf, r"'rate' must be a number .*: row 4 \('?inf"),
    ("accuracy", "good", "the objective must be .*: row 4"),
    ("month", None, "column 'month' names no task: row 4"),
]


@pytest.mark.parametrize(("column", "value", "message"), WRONG_CELLS_OF_ROW_4)
def test_wrong_cell_is_refused(column, value, message):
    """One cell of row 4 has a value that its column does not allow; the message names both."""
    spoiled = replace_cell(make_tuning_table(), 4, column, value)
    with pytest.raises(EvaluationsError, match=message):
        read_history(spoiled)


@pytest.mark.parametrize(("column", "value", "message"), WRONG_CELLS_OF_ROW_4)
def test_row_of_wrong_cell_is_dropped(column, value, message):
    """One cell of row 4 has a value that its column does not allow."""
    table = make_tuning_table()  # of 18 rows
    spoiled = replace_cell(table, 4, column, value)

    with pytest.warns(HistoryWarning, match="1 of 18 evaluations are left out"):
        history = read_history(spoiled, drop_invalid=True)

    without_row = table.drop(index=4)
    assert_histories_equal(history, read_history(without_row))


def read_error(frame: pd.DataFrame, space: SearchSpace = SPACE, **options: Any) -> str:
    """Read a table that is refused, and return the message."""
    with pytest.raises(EvaluationsError) as error:
        read_history(frame, space, **options)
    return str(error.value)


def test_all_problems_are_listed_together():
    """Rates are from 0.0001 to 0.5, depths from 1 to 9."""
    spoiled = replace_cell(make_tuning_table(), 3, "rate", 7.0)
    spoiled = replace_cell(spoiled, 3, "depth", 11)
    spoiled = replace_cell(spoiled, 15, "depth", 0)

    message = read_error(spoiled)

    assert "'rate' must be a number in [0.0001, 0.5] (log scale): row 3 (7.0)" in message
    (line_of_depth,) = [line for line in message.splitlines() if "'depth'" in line]
    assert "row 3" in line_of_depth
    assert "row 15" in line_of_depth


VALUES_OUT_OF_BOTH_RANGES = st.one_of(
    st.floats(9.0001, 1e300),  # the larger upper bound is 9, of the depth
    st.floats(-1e300, 0),
    st.text(st.characters(categories=["L"]), max_size=4),  # letters
    st.booleans(),
    st.just(10**400),  # larger than any float
)


@given(
    row=st.integers(0, 17),
    column=st.sampled_from(["rate", "depth"]),
    value=VALUES_OUT_OF_BOTH_RANGES,
)
def test_any_wrong_value_is_refused(row, column, value):
    """The message names the column and the row of the only wrong cell."""
    spoiled = replace_cell(make_tuning_table(), row, column, value)
    with pytest.raises(EvaluationsError, match=rf"'{column}' must be .*row {row} "):
        read_history(spoiled)


@pytest.mark.parametrize("logarithm", [np.log10, np.log, np.log2])
def test_rates_as_logarithms_are_not_clipped(logarithm):
    """Where all values are out of range, the column must be of another quantity.

    Clipping would move all of them to the same bound.
    """
    spoiled = make_tuning_table()
    spoiled["rate"] = logarithm(spoiled["rate"])
    with pytest.raises(EvaluationsError, match=r"'rate' must be .*; all values on task 'May' are"):
        read_history(spoiled, clip=True)


@pytest.mark.parametrize("clip", [False, True])
def test_task_on_another_scale_is_dropped(clip):
    """In May rates are logarithms, so that all six evaluations are out of range.

    Even if clipping is asked for, they are left out: the nearest bound would be the same for all.
    """
    spoiled = make_tuning_table()
    is_may = spoiled["month"] == "May"
    spoiled.loc[is_may, "rate"] = np.log10(spoiled.loc[is_may, "rate"])
    with pytest.warns(HistoryWarning, match="6 of 18 evaluations are left out; .*'May'"):
        history = read_history(spoiled, clip=clip, drop_invalid=True)
    _, june, july = make_tuning_history()
    assert_histories_equal(history, [june, july])


INTEGER_THAT_IS_NO_FLOAT = 2**53 + 1
"""The smallest positive one."""


def test_objective_that_floats_round_is_refused():
    """An integer, 2**53 + 1, that no float equals."""
    spoiled = replace_cell(make_tuning_table(), 4, "accuracy", INTEGER_THAT_IS_NO_FLOAT)
    with pytest.raises(EvaluationsError, match=r"row 4 .*integer that floats round"):
        read_history(spoiled)


def test_context_that_floats_round_is_refused():
    """An integer, 2**53 + 1, that no float equals."""
    contexts = {month: {"size": INTEGER_THAT_IS_NO_FLOAT} for month in MONTHS}
    with pytest.raises(EvaluationsError, match=r"'size' of task 'May' .*integer that floats round"):
        read_history(make_tuning_table(), contexts=contexts)


@pytest.fixture
def table_with_repeated_row():
    """The tuning table, and as row 18 once more row 5, of May."""
    table = make_tuning_table()
    return pd.concat([table, table.iloc[[5]]], ignore_index=True)


def test_repeated_row_is_refused(table_with_repeated_row):
    with pytest.raises(EvaluationsError, match=r"repeat another row of their task: row 18 \(row 5"):
        read_history(table_with_repeated_row)


def test_repeated_row_can_be_dropped(table_with_repeated_row):
    """One of 19 rows, the last, is as an earlier one."""
    with pytest.warns(HistoryWarning, match="1 of 19 evaluations"):
        history = read_history(table_with_repeated_row, drop_invalid=True)
    assert_histories_equal(history, make_tuning_history())


def test_configuration_may_be_measured_again(table_with_repeated_row):
    """The last row, 18, is a configuration of May again, here with another accuracy."""
    measured_again = replace_cell(table_with_repeated_row, 18, "accuracy", 0.123)
    may, june, july = read_history(measured_again)
    assert [len(may), len(june), len(july)] == [6 + 1, 6, 6]


def test_tasks_with_identical_evaluations_are_refused():
    """August has the rows of May, which were probably read twice."""
    table = make_tuning_table()
    august = table[table["month"] == "May"].assign(month="August")
    with pytest.raises(EvaluationsError, match="'May' and 'August' have identical"):
        read_history(pd.concat([table, august], ignore_index=True))


@pytest.fixture
def table_out_of_bounds():
    """Two rates and a depth are out of [1e-4, 0.5] and [1, 9], all of them in May."""
    table = replace_cell(make_tuning_table(), 4, "rate", 1e-9)
    table = replace_cell(table, 5, "rate", 3.0)
    return replace_cell(table, 2, "depth", 12)


def test_clip_moves_numbers_to_the_bound(table_out_of_bounds):
    """Rates are from 1e-4 to 0.5, depths from 1 to 9; three values of May are out of range."""
    with pytest.warns(HistoryWarning, match="2 of 'rate', 1 of 'depth'"):
        may, _, _ = read_history(table_out_of_bounds, clip=True)

    may_in_bounds, _, _ = make_tuning_history()
    column_of_rate, column_of_depth = SPACE.names.index("rate"), SPACE.names.index("depth")
    expected = may_in_bounds.values.copy()
    expected[4, column_of_rate] = 1e-4
    expected[5, column_of_rate] = 0.5
    expected[2, column_of_depth] = 9
    np.testing.assert_array_equal(may.values, expected)


def test_refused_numbers_name_what_helps(table_out_of_bounds):
    """Rows can be left out, their numbers moved, or read on the space they were evaluated on."""
    message = (
        "drop_invalid=True leaves these evaluations out; clip=True moves numbers.*; "
        "if they were evaluated on another search space, give that as `space`"
    )
    with pytest.raises(EvaluationsError, match=message):
        read_history(table_out_of_bounds)


def test_clip_is_not_advised_for_choices():
    """No number is out of range, only a kernel is none of the space."""
    spoiled = replace_cell(make_tuning_table(), 2, "kernel", "cubic")
    with pytest.raises(EvaluationsError, match="drop_invalid=True") as caught:
        read_history(spoiled)
    assert "clip" not in str(caught.value)


def test_rows_moved_to_the_same_bound_are_no_repeats():
    """Two rows differ only in their rates, 0.6 and 0.7, which are both moved to 0.5."""
    table = replace_cell(make_tuning_table(), 5, "rate", 0.6)
    other_row = replace_cell(table.iloc[[5]], 5, "rate", 0.7)
    table = pd.concat([table, other_row], ignore_index=True)

    with pytest.warns(HistoryWarning, match="2 of 'rate'"):
        may, _, _ = read_history(table, clip=True)

    assert may.values[[5, 6], SPACE.names.index("rate")].tolist() == [0.5, 0.5]


def test_rows_out_of_range_that_repeat_are_refused():
    """The last row, 18, is row 5 once more, with a rate of 0.6 that would be moved to 0.5."""
    table = replace_cell(make_tuning_table(), 5, "rate", 0.6)
    table = pd.concat([table, table.iloc[[5]]], ignore_index=True)
    with pytest.raises(EvaluationsError, match=r"repeat another row of their task: row 18 \(row 5"):
        read_history(table, clip=True)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("kernel", "none of these", "'kernel' must be"),
        ("depth", 2.5, "'depth' must be an integer"),  # in range, but no integer
    ],
)
def test_clip_moves_only_numbers_out_of_range(table_out_of_bounds, column, value, message):
    """A wrong choice, or a fraction for an integer, has no nearest bound to be moved to."""
    spoiled = replace_cell(table_out_of_bounds, 2, column, value)
    with pytest.raises(EvaluationsError, match=message):
        read_history(spoiled, clip=True)


def test_table_of_invalid_rows_is_refused():
    """Every row has a wrong kernel, so that nothing is left when they are dropped."""
    spoiled = make_tuning_table().assign(kernel="cubic")  # no choice of the space
    with pytest.raises(EvaluationsError, match="no usable evaluation with a value in the table"):
        read_history(spoiled, drop_invalid=True)


def test_task_without_valid_rows_is_dropped():
    """All six rows of May have a wrong kernel."""
    spoiled = make_tuning_table()
    spoiled.loc[spoiled["month"] == "May", "kernel"] = "cubic"  # no choice of the space
    with pytest.warns(HistoryWarning, match="6 of 18 .* are left out; nothing is left of task"):
        history = read_history(spoiled, drop_invalid=True)
    assert [evaluations.task for evaluations in history] == ["June", "July"]


def test_values_of_inactive_hyperparameters_are_ignored():
    """The hyperparameter gamma is inactive, and so NaN in the table, where the kernel is linear."""
    out_of_range = 77.0
    table = make_tuning_table()
    table["gamma"] = table["gamma"].fillna(out_of_range)
    assert_histories_equal(read_history(table), make_tuning_history())


def test_other_value_of_constant_is_refused():
    """The space has the constant trees = 100; in one row another value was used."""
    with_constant = make_tuning_table().assign(trees=100)
    spoiled = replace_cell(with_constant, 7, "trees", 50)
    with pytest.raises(EvaluationsError, match=r"'trees' must be 100: row 7 \(50"):
        read_history(spoiled)


CONTEXTS = {"May": {"size": 0.0}, "June": {"size": 1.0}, "July": {"size": 2.0}}


def test_contexts_are_those_of_the_tasks():
    history = read_history(make_tuning_table(), contexts=CONTEXTS)
    assert {evaluations.task: evaluations.context for evaluations in history} == CONTEXTS


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        (CONTEXTS | {"Jun": {"size": 1}}, r"unknown task 'Jun'; did you mean 'June'\?"),
        ({"May": {"size": 1}}, "no context of 'June', 'July'"),
        (CONTEXTS | {"July": {"sizes": 1}}, r"'July' has \['sizes'\], that of 'May' \['size'\]"),
        (
            CONTEXTS | {"July": {"size": math.nan}},
            "'size' of task 'July' must be a finite number",
        ),
    ],
    ids=["unknown task", "missing tasks", "another name", "not finite"],
)
def test_wrong_contexts_are_refused(contexts, message):
    with pytest.raises(EvaluationsError, match=message):
        read_history(make_tuning_table(), contexts=contexts)


@pytest.fixture
def space_with_rounded_choice():
    """A space of one ordinal, with a choice that is no more than rounding away from 0.3."""
    largest = 0.1 + 0.2  # 0.30000000000000004
    return SearchSpace([Parameter.choice("x", (0.1, 0.2, largest), ordered=True)])


def test_ordinals_may_differ_by_rounding(space_with_rounded_choice):
    """The third choice is 0.1 + 0.2, which differs from 0.3 by rounding alone."""
    frame = pd.DataFrame({"month": "May", "x": [0.1, 0.3, 0.2], "accuracy": [1.0, 2.0, 3.0]})
    (may,) = read_history(frame, space_with_rounded_choice)
    places_among_choices = may.values.tolist()  # of 0.1, 0.3 and 0.2
    assert places_among_choices == [[0], [2], [1]]


def test_other_value_of_an_ordinal_is_refused(space_with_rounded_choice):
    """The choices are 0.1, 0.2 and 0.3: 0.31 differs by more than rounding."""
    frame = pd.DataFrame({"month": "May", "x": [0.1, 0.31, 0.2], "accuracy": [1.0, 2.0, 3.0]})
    with pytest.raises(EvaluationsError, match=r"row 1 \(0.31\)"):
        read_history(frame, space_with_rounded_choice)


@pytest.fixture
def file_with_none_as_choice(tmp_path):
    """A CSV file with the choice "None", which pandas reads as a missing value by default."""
    path = tmp_path / "tuning.csv"
    path.write_text("month,penalty,error\nMay,l1,1\nMay,None,2\n")
    return path


SPACE_WITH_NONE = SearchSpace([Parameter.choice("penalty", ("l1", "None"))])
"""A choice is the text "None"."""


def test_choice_lost_by_pandas_is_explained(file_with_none_as_choice):
    """The choice "None" is read as a missing value by default; the message says how to keep it."""
    frame = pd.read_csv(file_with_none_as_choice)
    with pytest.raises(EvaluationsError, match="keep_default_na=False"):
        read_history(frame, SPACE_WITH_NONE, objective="error")


def test_choice_may_be_called_none(file_with_none_as_choice):
    """The penalty is l1, then "None", which stays a text when asked for."""
    frame = pd.read_csv(file_with_none_as_choice, keep_default_na=False)
    (may,) = read_history(frame, SPACE_WITH_NONE, objective="error")
    places_among_choices = may.values.tolist()  # of "l1" and "None"
    assert places_among_choices == [[0], [1]]


def test_task_names_may_be_whole_floats():
    """A number that names a task may be read as a float; the name is that of the integer."""
    frame = pd.DataFrame({"month": [202401.0, 202402.0], "x": [3, 4], "accuracy": [1.0, 2.0]})
    first, second = read_history(frame, ConfigurationSpace({"x": (1, 9)}))
    assert [first.task, second.task] == ["202401", "202402"]
    assert first.values.tolist() == [[3.0]]
    assert second.values.tolist() == [[4.0]]


@pytest.mark.parametrize(
    ("frame", "space", "options", "message"),
    [
        ([], SPACE, {}, "must be a DataFrame, but got list"),
        (make_tuning_table(), [], {}, "the search space must be a SearchSpace, Conf"),
        (
            make_tuning_table(),
            SPACE,
            {"objective": "month"},
            "'month' is the objective; it cannot be the task",
        ),
        (
            make_tuning_table(),
            SPACE,
            {"objective": None},
            "column names must be text, but got None",
        ),
        (
            make_tuning_table(),
            SPACE,
            {"direction": "maximise"},
            r"'maximise'; did you mean 'maximize'\?",
        ),
    ],
    ids=["table", "space", "objective is task", "objective is None", "direction"],
)
def test_invalid_arguments_are_refused(frame, space, options, message):
    with pytest.raises(EvaluationsError, match=message):
        read_history(frame, space, **options)


def test_history_may_have_the_tasks_direction():
    hbo.check_history(read_history(make_tuning_table()), SPACE, "maximize")


def test_history_of_another_direction_is_refused():
    """Evaluations to minimise are no history of a task to maximise."""
    minimised = make_tuning_table()
    minimised["accuracy"] = -minimised["accuracy"]
    history = read_history(minimised, direction="minimize")
    with pytest.raises(EvaluationsError, match="to minimize, that of the task at hand to maximize"):
        hbo.check_history(history, SPACE, "maximize")


VALID_ARGUMENTS: dict[str, Any] = {
    "task": "May",
    "context": {},
    # Columns: rate, depth, kernel (a place), gamma, which is active with kernel 1 alone.
    "values": np.array([[0.1, 3.0, 1.0, 0.5], [0.2, 4.0, 0.0, np.nan]]),
    "objective": np.array([0.9, np.nan]),
    "space": SPACE,
    "direction": Direction.MAXIMIZE,
}
"""Arguments of evaluations, each of which a case below replaces by an invalid one."""

EXCHANGED_COLUMNS = VALID_ARGUMENTS["values"][:, [1, 0, 2, 3]]
WITHOUT_GAMMA = VALID_ARGUMENTS["values"][:, :3]
DEPTH_OF_3_5 = VALID_ARGUMENTS["values"] + [0, 0.5, 0, 0]
ACTIVE_GAMMA_MISSING = [[0.1, 3, 1, np.nan], [0.1, 3, 1, np.nan]]
INACTIVE_GAMMA_SET = [[0.1, 3, 0, 0.5], [0.1, 3, 0, 0.5]]
VALUES_AS_TEXT = [["0.1", "3", "1", "0.5"], ["0.1", "3", "1", "0.5"]]
ROWS_OF_UNEQUAL_LENGTH = [[0.1, 3, 1, 0.5], [0.1]]

INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"values": EXCHANGED_COLUMNS}, r"rate .* got 3.0; row 0: depth .* got 0.1"),
    ({"values": WITHOUT_GAMMA}, r"shape \(2, 4\), one column for each"),
    ({"values": DEPTH_OF_3_5}, "row 0: depth .*, but got 3.5"),
    ({"values": ACTIVE_GAMMA_MISSING}, "row 0: gamma .*, but got nan"),
    ({"values": INACTIVE_GAMMA_SET}, "gamma must be NaN, as it is inac"),
    ({"values": VALUES_AS_TEXT}, "the values .* must be numbers"),
    ({"values": ROWS_OF_UNEQUAL_LENGTH}, "the values of task 'May'"),
    ({"objective": [0.9]}, r"the objective .* shape \(2,\), got"),
    ({"objective": [0.9, -np.inf]}, "row 1 is infinite; use NaN"),
    ({"task": 5}, "the name of a task must be text, but got 5"),
    ({"space": None}, "must be a SearchSpace, but got NoneType"),
    ({"direction": "up"}, "unknown direction 'up'"),
]


def test_length_is_number_of_evaluations():
    assert len(Evaluations(**VALID_ARGUMENTS)) == len(VALID_ARGUMENTS["objective"]) == 2


@pytest.mark.parametrize(("invalid_argument", "message"), INVALID_ARGUMENTS)
def test_invalid_evaluations_are_refused(invalid_argument, message):
    with pytest.raises(EvaluationsError, match=message):
        Evaluations(**(VALID_ARGUMENTS | invalid_argument))


def test_losses_of_maximised_objective_are_negated():
    evaluations = Evaluations(**(VALID_ARGUMENTS | {"direction": "maximize"}))
    np.testing.assert_array_equal(evaluations.losses, -VALID_ARGUMENTS["objective"])


def test_losses_of_minimised_objective_are_its_values():
    evaluations = Evaluations(**(VALID_ARGUMENTS | {"direction": "minimize"}))
    np.testing.assert_array_equal(evaluations.losses, VALID_ARGUMENTS["objective"])


def test_copy_has_other_arrays():
    """A method gets a copy, on a space of its own, that shares no array with the original."""
    original = Evaluations(**VALID_ARGUMENTS)
    copy = original.copied(SPACE)
    assert copy.values is not original.values


@pytest.mark.parametrize("array", ["values", "objective", "losses"])
@pytest.mark.parametrize(
    "evaluations",
    [Evaluations(**VALID_ARGUMENTS), Evaluations(**VALID_ARGUMENTS).copied(SPACE)],
    ids=["original", "copy"],
)
def test_arrays_are_read_only(evaluations, array):
    assert not getattr(evaluations, array).flags.writeable


def test_frame_has_native_values():
    """The kernels of two evaluations, the numbers 1 and 0, are texts in the table.

    With the linear kernel gamma is inactive, and so missing.
    """
    frame = Evaluations(**VALID_ARGUMENTS).frame(objective="accuracy")
    assert list(frame) == ["task", "rate", "depth", "kernel", "gamma", "accuracy"]
    assert frame["kernel"].tolist() == ["radial", "linear"]
    assert frame["gamma"].isna().tolist() == [False, True]


def test_frame_refuses_name_of_a_hyperparameter():
    with pytest.raises(EvaluationsError, match="'rate' is a hyperparameter"):
        Evaluations(**VALID_ARGUMENTS).frame(task="rate")


def make_evaluations(
    space: SearchSpace, task: str = "May", direction: str = "maximize"
) -> Evaluations:
    """Build four evaluations of random configurations of a space."""
    values = space.decode(space.sample_unit(np.random.default_rng(0), 4))
    return Evaluations(task, {}, values, np.arange(4.0), space=space, direction=direction)


NUMERIC_SPACE = numeric_space()
"""x from -5 to 5, and y."""
WIDER_SPACE = SearchSpace([Parameter.number("x", -5, 9), Parameter.number("z", 1e-4, 1, log=True)])
"""Shares only x with the numeric space, in a wider range."""


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (
            [make_evaluations(NUMERIC_SPACE), make_evaluations(NUMERIC_SPACE)],
            "'May': more than one history of the task",
        ),
        (
            [make_evaluations(NUMERIC_SPACE, "June", "minimize")],
            "'June': its objective is to minimize",
        ),
        (
            [make_evaluations(WIDER_SPACE)],
            r"'May': it is on another .*x: from -5 to 9, now from -5 to 5; .*z: removed",
        ),
        ([make_evaluations(SPACE)], "shares no hyperparameter"),
        (make_evaluations(NUMERIC_SPACE), "list of Evaluations, one per task, but got Evaluations"),
        (
            [make_evaluations(NUMERIC_SPACE).frame()],
            "list of Evaluations, one per task, but got list of Dat",
        ),
    ],
    ids=["task twice", "direction", "wider space", "other space", "no list", "list of tables"],
)
def test_history_that_does_not_fit_is_refused(history, message):
    with pytest.raises(EvaluationsError, match=message):
        hbo.check_history(history, NUMERIC_SPACE, Direction.MAXIMIZE)


def test_history_on_changed_space_can_be_allowed():
    """If asked for, an earlier task on another space raises no error.

    Of the wider space, which has x and z, the numeric space shares x.
    """
    hbo.check_history(
        [make_evaluations(WIDER_SPACE)], NUMERIC_SPACE, "maximize", changed_spaces=True
    )


def test_changed_space_must_share_a_hyperparameter():
    with pytest.raises(EvaluationsError, match="shares no hyperparameter"):
        hbo.check_history([make_evaluations(SPACE)], NUMERIC_SPACE, "maximize", changed_spaces=True)


def space_of_choices(*choices: object, default: object = None) -> SearchSpace:
    """Build a space of one hyperparameter, `c`."""
    return SearchSpace([Parameter.choice("c", choices, default=default)])  # type: ignore[arg-type]


def test_other_default_is_the_same_space():
    evaluations = make_evaluations(space_of_choices("a", "b"))
    assert evaluations.is_on(space_of_choices("a", "b", default="b"))


@pytest.mark.parametrize(
    ("space", "other_space"),
    [
        (space_of_choices("a", "b"), space_of_choices("b", "a")),
        (space_of_choices(True, False), space_of_choices(1, 0)),  # True == 1 in Python
        (NUMERIC_SPACE, SearchSpace(NUMERIC_SPACE.parameters[::-1])),
    ],
    ids=["order of choices", "type of choices", "order of parameters"],
)
def test_other_coding_is_another_space(space, other_space):
    assert not make_evaluations(space).is_on(other_space)


def test_other_order_of_choices_is_explained():
    """Values are places among the choices, which another order would give another meaning."""
    history = [make_evaluations(space_of_choices("b", "a"))]
    with pytest.raises(EvaluationsError, match="in another order"):
        hbo.check_history(history, space_of_choices("a", "b"), "maximize")


def run_methods(
    folder: Path,
    *benchmarks: Any,
    trials: int,
    tasks: int | None = None,
    methods: Sequence[str] = ("random-search",),
    seeds: Sequence[int] = (0,),
) -> hbo.Results:
    """Run an ordered experiment, by default of random search with seed 0."""
    protocol = hbo.Ordered(trials=trials, tasks=tasks)
    return hbo.run(
        benchmarks=benchmarks, protocol=protocol, folder=folder, methods=methods, seeds=seeds
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two methods and two seeds on three tasks of two benchmarks, four trials each."""
    return run_methods(
        tmp_path_factory.mktemp("store") / "results",
        "yahpo-ranger-4154",
        "newsvendor",
        trials=4,
        tasks=3,
        methods=["random-search", "simple-ordered"],
        seeds=[0, 1],
    )


def assert_history_has_tasks_and_objective(
    history: Sequence[Evaluations], benchmark: hbo.Benchmark
) -> None:
    """Check that a history is of a benchmark's first tasks, with their contexts and values."""
    hbo.check_history(history, benchmark.space, benchmark.objective.direction)
    tasks = benchmark.tasks[: len(history)]
    assert [evaluations.task for evaluations in history] == [task.name for task in tasks]
    for task, evaluations in zip(tasks, history, strict=True):
        assert evaluations.context == task.context
        np.testing.assert_array_equal(task.evaluate_many(evaluations.values), evaluations.objective)


@pytest.mark.parametrize(
    ("name", "by_folder"),
    [("yahpo-ranger-4154", False), ("newsvendor", True)],
    ids=["results", "folder"],
)
def test_results_are_read_as_history(results, name, by_folder):
    """The trials of one run, on three tasks, are one history.

    The run is found in the results, or in the folder where they are stored.
    """
    source = results.store.folder if by_folder else results
    benchmark = hbo.load(name)

    history = hbo.history_from_results(source, method="simple-ordered", seed=1, benchmark=name)

    assert len(history) == 3
    assert_history_has_tasks_and_objective(history, benchmark)
    trials = results.frame()
    is_on_benchmark = trials["benchmark"] == benchmark.id
    is_of_run = (trials["method"] == "simple-ordered") & (trials["seed"] == 1)
    trials_of_run = trials[is_on_benchmark & is_of_run]
    for task_index, evaluations in enumerate(history):
        trials_of_task = trials_of_run[trials_of_run["task"] == task_index]
        np.testing.assert_array_equal(evaluations.objective, trials_of_task["value"])
        np.testing.assert_array_equal(evaluations.losses, trials_of_task["loss"])


@pytest.mark.parametrize(
    ("chosen_run", "message"),
    [
        ({}, "2 runs of .* 'newsvendor@1' or 'yahpo-ranger"),
        ({"method": "random-serch"}, r"did you mean 'random-search'\?"),
        ({"seed": 7}, "no finished run of seed 7"),
        ({"benchmark": "svm-a"}, "of benchmark 'svm-a@1'"),
        ({"protocol": "leave-one-out"}, "of protocol"),
    ],
    ids=["ambiguous", "method", "seed", "benchmark", "protocol"],
)
def test_ambiguous_or_unknown_results_are_refused(results, chosen_run, message):
    """The results are of two benchmarks, so that a method and a seed alone are ambiguous."""
    default_run = {"method": "random-search", "seed": 0}
    with pytest.raises(StoreError, match=message):
        hbo.history_from_results(results, **(default_run | chosen_run))


def test_store_without_runs_is_refused(tmp_path):
    with pytest.raises(StoreError, match="no finished run"):
        hbo.history_from_results(tmp_path, method="random-search", seed=0)


def test_results_refuse_contexts_of_other_tasks(results):
    """Contexts are for tasks of the results, none of which is called May."""
    with pytest.raises(EvaluationsError, match="unknown task 'May'"):
        hbo.history_from_results(
            results, method="random-search", seed=0, benchmark="newsvendor", contexts={"May": {}}
        )


def test_ambiguous_protocol_is_refused(tmp_path):
    """The name alone does not tell two protocols of different settings apart."""
    run_methods(tmp_path, "newsvendor", trials=2, tasks=1)
    run_methods(tmp_path, "newsvendor", trials=3, tasks=1)
    with pytest.raises(StoreError, match=r"say which: protocol 'ordered\(trials=2"):
        hbo.history_from_results(tmp_path, method="random-search", seed=0, protocol="ordered")


@pytest.fixture
def benchmark_in_memory():
    """A benchmark that no name stands for; its objective is maximised."""
    return toy_benchmark(NUMERIC_SPACE, tasks=2, direction=Direction.MAXIMIZE)


@pytest.fixture
def results_in_memory(tmp_path, benchmark_in_memory):
    """Results of random search, seed 0, on a benchmark that cannot be loaded by its name."""
    return run_methods(tmp_path / "store", benchmark_in_memory, trials=3)


def test_results_in_memory_have_their_benchmark(results_in_memory, benchmark_in_memory):
    history = hbo.history_from_results(results_in_memory, method="random-search", seed=0)
    assert_history_has_tasks_and_objective(history, benchmark_in_memory)


def test_folder_is_read_with_given_benchmark(results_in_memory, benchmark_in_memory):
    """A folder gives the same history as the results in it.

    The objective is maximised, so that losses are its negative values.
    """
    folder = results_in_memory.store.folder

    history = hbo.history_from_results(
        folder, method="random-search", seed=0, benchmark=benchmark_in_memory
    )

    expected = hbo.history_from_results(results_in_memory, method="random-search", seed=0)
    for evaluations, expected_evaluations in zip(history, expected, strict=True):
        assert expected_evaluations.direction is Direction.MAXIMIZE
        np.testing.assert_array_equal(evaluations.values, expected_evaluations.values)
        negated_objective = -evaluations.objective
        np.testing.assert_array_equal(negated_objective, expected_evaluations.losses)


def test_folder_needs_benchmark_in_memory(results_in_memory):
    """The folder has the runs of a benchmark that cannot be loaded by its name."""
    folder = results_in_memory.store.folder
    with pytest.raises(StoreError, match="Give the benchmark"):
        hbo.history_from_results(folder, method="random-search", seed=0)


@pytest.mark.parametrize(
    "other_benchmark",
    [
        toy_benchmark(NUMERIC_SPACE, tasks=2, direction=Direction.MINIMIZE),
        toy_benchmark(WIDER_SPACE, tasks=2, direction=Direction.MAXIMIZE),
    ],
    ids=["direction", "space"],
)
def test_folder_refuses_another_benchmark(results_in_memory, other_benchmark):
    """The folder has runs of another benchmark, on a numeric space and to maximise.

    The one that is passed is to minimise, or on a wider space.
    """
    folder = results_in_memory.store.folder
    with pytest.raises(StoreError, match="no finished run of benchmark"):
        hbo.history_from_results(folder, method="random-search", seed=0, benchmark=other_benchmark)


def test_optuna_is_imported_on_first_use():
    """Importing the package must not import Optuna, which takes long."""
    code = """
import sys
import hpobench_ordered
assert "optuna" not in sys.modules
hpobench_ordered.history_from_studies
assert "optuna" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
