"""The reader of earlier evaluations: one table of mistakes, its rules, and all ways in."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import TrialState, create_trial

import hpobench_ordered as hbo
from hpobench_ordered import Evaluations, Parameter, SearchSpace
from hpobench_ordered.cli import app
from hpobench_ordered.errors import EvaluationsError, HistoryWarning, UnknownNameError
from hpobench_ordered.space import Compare, Comparison

optuna.logging.set_verbosity(optuna.logging.ERROR)

SPACE = SearchSpace(
    [
        Parameter.number("rate", 1e-4, 0.5, log=True),
        Parameter.number("depth", 1, 9, integer=True),
        Parameter.choice("kernel", ("linear", "radial")),
        Parameter.number("gamma", 0, 1),
    ],
    conditions={"gamma": Compare(2, Comparison.EQUAL, (1.0,))},  # if the kernel is radial
)
COLUMNS = ["task", *SPACE.names, "objective"]
ROWS = [
    ("May", 0.01, 3, "linear", None, 0.7),
    ("May", 0.2, 9, "radial", 0.5, 0.9),
    ("May", 0.003, 1, "linear", None, None),  # failed
    ("June", 0.02, 4, "radial", 0.25, 0.8),
    ("June", 0.5, 2, "linear", None, 0.6),
]


def make_table(rows: Any = ROWS) -> pd.DataFrame:
    """Make a table of two tasks with the columns that the reader expects by default."""
    return pd.DataFrame(rows, columns=COLUMNS)


def change_cell(row: int, column: str, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Make a function that copies a table with another value, of any type, in one cell."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        copy = table.astype({column: object})  # a column of objects holds values of any type
        copy.loc[row, column] = value
        return copy

    return change


def read(source: Any, space: Any = SPACE, **options: Any) -> tuple[Evaluations, ...]:
    """Read evaluations whose objective is maximised."""
    return hbo.read_history(source, space, **{"direction": "maximize"} | options)


def make_studies(rows: Any = ROWS, storage: Any = None) -> list[optuna.Study]:
    """Make a study of each task."""
    studies: dict[str, optuna.Study] = {}
    for task, *values, objective in rows:
        if task not in studies:
            studies[task] = optuna.create_study(
                study_name=task, storage=storage, direction="maximize"
            )
        pairs = zip(SPACE.names, values, strict=True)
        params = {name: value for name, value in pairs if value is not None}
        state = TrialState.FAIL if objective is None else TrialState.COMPLETE
        distributions = {name: SPACE[name].to_optuna() for name in params}
        studies[task].add_trial(
            create_trial(state=state, value=objective, params=params, distributions=distributions)
        )
    return list(studies.values())


def write_csv(table: pd.DataFrame, name: str = "old.csv") -> str:
    table.to_csv(name, index=False)
    return name


def write_parquet(table: pd.DataFrame) -> str:
    """Write a table as Parquet; columns with values of several types as text."""
    as_text = {}
    for name in table:
        types = {type(cell) for cell in table[name].dropna()}
        if len(types) > 1:
            as_text[name] = table[name].map(str, na_action="ignore")
    table.assign(**as_text).to_parquet("old.parquet")
    return "old.parquet"


def read_by_optimiser(table: pd.DataFrame) -> None:
    hbo.optimiser(space=SPACE, direction="maximize", history=write_csv(table))


def read_by_command(table: pd.DataFrame) -> None:
    """Run the command `suggest`; its error is that of Python."""
    Path("space.json").write_text(json.dumps(SPACE.to_json()))
    options = ["--space", "space.json", "--direction", "maximize", "--history", write_csv(table)]
    CliRunner().invoke(app, ["suggest", *options], catch_exceptions=False, standalone_mode=False)


def read_by_benchmark(table: pd.DataFrame) -> None:
    """Make a benchmark of the table, without the failed evaluation, which it cannot have."""
    hbo.from_evaluations(
        table.dropna(subset="objective"),
        SPACE,
        name="mine",
        objective="objective",
        direction="maximize",
    )


WAYS: Mapping[str, Callable[[pd.DataFrame], object]] = {
    "frame": read,
    "csv": lambda table: read(write_csv(table)),
    "compressed csv": lambda table: read(write_csv(table, "old.csv.gz")),
    "parquet": lambda table: read(write_parquet(table)),
    "list of tables": lambda table: read([table]),
    "optimiser": read_by_optimiser,
    "command": read_by_command,
    "benchmark": read_by_benchmark,
}
"""Ways of a table into the package, by name."""

MISTAKES: Mapping[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "misspelt column": (
        lambda table: table.rename(columns={"rate": "rates"}),
        "no column 'rate' for a hyperparameter(.|\n)*without a use: 'rates'",
    ),
    "missing column": (
        lambda table: table.drop(columns="gamma"),
        "no column 'gamma' for a hyperparameter",
    ),
    "two columns": (
        lambda table: pd.concat([table, table[["rate"]]], axis="columns"),
        "two columns 'rate'",
    ),
    "integer out of range": (
        change_cell(1, "depth", 12),
        r"'depth' must be an integer in \[1, 9\] \(the numbers of the column go from [12] to 12\): "
        r"(row|line) \d.* \('?12",
    ),
    "fraction for an integer": (
        change_cell(1, "depth", 2.5),
        r"'depth' must be an integer in \[1, 9\]: (row|line) \d.* \('?2.5",
    ),
    "text for a number": (change_cell(1, "rate", "fast"), r"'rate' must be a number .*\('fast'\)"),
    "thousands": (change_cell(1, "depth", "1_0"), r"'depth' must be an integer .*\('1_0'\)"),
    "infinite number": (change_cell(1, "rate", math.inf), r"'rate' must be a number .*\('?inf"),
    "empty cell": (
        change_cell(1, "rate", None),
        "'rate' must be a number .*, but is empty .*ConfigurationSpace .*: (row|line)",
    ),
    "misspelt choice": (
        change_cell(1, "kernel", "radail"),
        r"'kernel' must be one of 'linear', 'radial': .*\('radail'\)",
    ),
    "empty conditional": (
        change_cell(1, "gamma", None),
        "'gamma' must be a number .*, but is empty .*: (row|line)",
    ),
    "text for the objective": (
        change_cell(1, "objective", "good"),
        r"the objective must be .*\('good'\)",
    ),
    "no task": (change_cell(1, "task", None), "column 'task' names no task: (row|line)"),
    "no rows": (lambda table: table.iloc[:0], "no usable evaluation with a value"),
    "no values": (
        lambda table: table.assign(objective=np.nan),
        "no usable evaluation with a value",
    ),
    "other objective": (
        lambda table: table.rename(columns={"objective": "value"}),
        r"no column 'objective' for the objective \(if it is 'value', say so by `objective`",
    ),
}
"""Mistakes in a table: what changes it, and the message."""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """Run each test of this file in an empty working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore:columns that are not hyperparameters")
@pytest.mark.parametrize(("change", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_is_named(change, message):
    """The message says what is wrong, and in which row."""
    with pytest.raises(EvaluationsError, match=message):
        read(change(make_table()))


@pytest.mark.parametrize("read_table", WAYS.values(), ids=WAYS)
def test_every_way_in_names_mistakes(read_table):
    """All functions that read a table report a mistake in it in the same way.

    In a file, a row is known by its line.
    """
    table = change_cell(1, "depth", 12)(make_table())
    with pytest.raises(EvaluationsError, match=r"'depth' must be an integer .*: (row|line) \d"):
        read_table(table)


@pytest.mark.parametrize(
    "mistake",
    ["integer out of range", "misspelt choice", "empty cell", "text for the objective", "no task"],
)
def test_invalid_row_can_be_left_out(mistake):
    """If invalid rows are to be left out, all other rows are read."""
    change, _ = MISTAKES[mistake]
    table = change(make_table())
    with pytest.warns(HistoryWarning, match="1 of 5 evaluations are left out"):
        may, june = read(table, drop_invalid=True)
    assert (len(may), len(june)) == (2, 2)


SOURCES: Mapping[str, Callable[[], Any]] = {
    "frame": make_table,
    "frame of text": lambda: make_table().astype(object).fillna("NA").astype(str),
    "shuffled columns": lambda: make_table()[COLUMNS[::-1]],
    "csv": lambda: write_csv(make_table()),
    "compressed csv": lambda: write_csv(make_table(), "old.csv.gz"),
    "parquet": lambda: write_parquet(make_table()),
    "path": lambda: Path(write_csv(make_table())),
    "several": lambda: [make_table().iloc[:3], make_table().iloc[3:]],
    "studies": make_studies,
    "storage": lambda: make_storage("object"),
    "sqlite": lambda: make_storage("old.db"),
    "url": lambda: f"sqlite:///{make_storage('old.db')}",
    "journal": lambda: make_storage("old.log"),
    "sqlite of another name": lambda: rename(make_storage("old.db"), "old.csv"),
    "journal of another name": lambda: rename(make_storage("old.log"), "old.csv"),
    "parquet of another name": lambda: rename(write_parquet(make_table()), "old"),
}
"""The same evaluations, by what holds them."""


def make_storage(name: str) -> Any:
    """Make a storage of the studies: a file of this name, or an object."""
    if name == "object":
        storage = optuna.storages.InMemoryStorage()
        make_studies(storage=storage)
        return storage
    backend = optuna.storages.journal.JournalFileBackend
    is_journal = name.endswith(".log")
    storage = optuna.storages.JournalStorage(backend(name)) if is_journal else f"sqlite:///{name}"
    make_studies(storage=storage)
    return name


def rename(name: str, new_name: str) -> str:
    Path(name).rename(new_name)
    return new_name


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same(source):
    """A file is known by its content."""
    history = read(SOURCES[source]())
    assert [evaluations.task for evaluations in history] == ["May", "June"]
    for evaluations in history:
        rows = [row for row in ROWS if row[0] == evaluations.task]
        configs = [
            {name: x for name, x in zip(SPACE.names, row[1:5], strict=True) if x is not None}
            for row in rows
        ]
        assert evaluations.is_on(SPACE)
        assert SPACE.configs(evaluations.values) == configs
        np.testing.assert_array_equal(evaluations.objective, np.array([r[5] for r in rows], float))


@pytest.mark.parametrize(
    "spelling", ["params_{}", "param_{}", "params.{}", "config/{}", "config.{}", "params/{}"]
)
def test_spellings_of_other_packages_are_read(spelling):
    """Only columns with the prefix may be hyperparameters that the space lacks."""
    new_names = {name: spelling.format(name) for name in SPACE.names}
    table = make_table().rename(columns=new_names).assign(duration=1.0)
    table[spelling.format("momentum")] = 0.9

    with pytest.warns(HistoryWarning) as caught:
        history = read(table)

    messages = [str(warning.message) for warning in caught]
    assert f"'{spelling.format('rate')}' as 'rate'" in messages[0]
    assert messages[1].endswith(f"are ignored: '{spelling.format('momentum')}'")
    assert [len(evaluations) for evaluations in history] == [3, 2]


def test_two_spellings_of_a_name_are_refused():
    table = make_table().rename(columns={"rate": "params_rate"}).assign(**{"config/rate": 0.1})
    with pytest.raises(EvaluationsError, match="may be column 'params_rate' or 'config/rate'"):
        read(table)


@pytest.mark.parametrize(
    ("column", "states"),
    [
        ("state", ["COMPLETE", "PRUNED", "FAIL", "RUNNING", "COMPLETE"]),
        ("state", ["TrialState.COMPLETE", "TrialState.PRUNED", "TrialState.FAIL"]),
        ("State", ["finished", "stopped", "crashed", "running", "finished"]),
        ("status", ["FINISHED", "PRUNED", "KILLED", "SCHEDULED", "FINISHED"]),
        ("status", ["ok", "pruned", "OUT_OF_MEMORY", "CANCELLED", None]),
    ],
)
def test_states_are_those_of_a_storage(column, states):
    """The second evaluation was pruned, the third failed, the fourth is not finished."""
    table = make_table().assign(objective=0.5).iloc[: len(states)].assign(**{column: states})
    with pytest.warns(HistoryWarning) as caught:
        may, *others = read(table)
    assert "1 evaluation pruned, and left out" in str(caught[0].message)
    assert np.isnan(may.objective).tolist() == [False, True]
    assert [len(june) for june in others] == ([1] if len(states) == 5 else [])


def test_unknown_word_beside_known_ones_is_refused():
    """It may stand for a failure, which would otherwise be read as a success."""
    table = make_table()
    table["status"] = "complete"
    table.loc[1, "status"] = "kaputt"
    with pytest.raises(EvaluationsError, match=r"'status' .* unknown words in it: 'kaputt'"):
        read(table)


def test_state_of_other_words_is_ignored():
    with pytest.warns(HistoryWarning, match="ignored: 'state'"):
        read(make_table().assign(state="Nevada"))


def test_failed_row_may_lack_hyperparameters():
    """It failed before all of them were chosen, and so is left out without a word."""
    table = change_cell(2, "rate", None)(make_table())
    may, _ = read(table)
    assert len(may) == 2


@pytest.mark.parametrize("infinite", [math.inf, -math.inf, "inf", "-Infinity"])
def test_infinite_value_is_a_failure(infinite):
    may, _ = read(change_cell(1, "objective", infinite)(make_table()))
    assert np.isnan(may.objective).tolist() == [False, True, True]


CHOICES = SearchSpace(
    [
        Parameter.choice("weight", (None, "balanced")),
        Parameter.choice("flag", (True, False)),
        Parameter.choice("layers", ("(64, 64)", "(128,)")),
    ]
)


@pytest.mark.parametrize(
    ("none", "true", "layers"),
    [
        (None, True, "(64, 64)"),
        ("None", "true", (64, 64)),
        ("", "TRUE", [64, 64]),
        (math.nan, 1, "[64,64]"),
        (None, "1", (64, 64)),
        (None, 1.0, [64, 64]),
        (None, np.True_, "(64, 64)"),
    ],
)
def test_choices_are_read_in_any_spelling(none, true, layers):
    table = pd.DataFrame({"weight": [none], "flag": [true], "objective": [1.0]}, dtype=object)
    table["layers"] = [layers]
    (history,) = read(table, CHOICES)
    assert history.best == {"weight": None, "flag": True, "layers": "(64, 64)"}


def test_equal_rows_are_merged_with_a_warning():
    table = make_table([*ROWS, ROWS[1]])
    with pytest.warns(HistoryWarning, match="1 evaluation merged with an equal one"):
        may, _ = read(table)
    assert may.objective[:2].tolist() == [0.7, 0.9]
    assert len(may) == 3


def test_configuration_has_the_mean_of_its_values():
    measured_again = (*ROWS[1][:-1], 0.5)
    with pytest.warns(HistoryWarning, match="1 configuration with several values"):
        may, _ = read(make_table([*ROWS, measured_again]))
    np.testing.assert_allclose(may.objective[:2], [0.7, (0.9 + 0.5) / 2])


def test_failure_does_not_hide_a_value():
    """The third configuration failed at first, and had a value when it was tried again."""
    with pytest.warns(HistoryWarning, match="1 evaluation merged"):
        may, _ = read(make_table([*ROWS, (*ROWS[2][:-1], 0.4)]))
    assert may.objective.tolist() == [0.7, 0.9, 0.4]


@pytest.mark.parametrize(
    "rounded",
    [0.5 * (1 + 1e-12), np.float32(1e-4), str(0.5 + 1e-13), str(float(np.float32(1e-4)))],
)
def test_rounded_bound_is_the_bound(rounded):
    may, _ = read(change_cell(1, "rate", rounded)(make_table()))
    assert may.values[1, 0] in (1e-4, 0.5)


def test_choice_lost_by_pandas_is_explained():
    space = SearchSpace([Parameter.choice("penalty", ("l1", "None"))])
    table = pd.DataFrame({"penalty": ["l1", None], "objective": [1.0, 2.0]})
    with pytest.raises(EvaluationsError, match="keep_default_na=False"):
        read(table, space)


def test_task_may_be_a_whole_float():
    """Pandas makes floats of integers where a cell is empty."""
    table = make_table().replace({"task": {"May": 202605.0, "June": 202606.0}})
    assert [evaluations.task for evaluations in read(table)] == ["202605", "202606"]


STEPS = SearchSpace([Parameter.choice("depth", (10, 20, 30), ordered=True)])


def test_number_between_steps_is_moved_to_the_nearest():
    table = pd.DataFrame({"depth": [10, 18, 39], "objective": [1.0, 2.0, 3.0]})
    with pytest.warns(HistoryWarning, match="two steps were moved to the nearest one: 2 of 'dep"):
        (history,) = read(table, STEPS)
    assert [config["depth"] for config in STEPS.configs(history.values)] == [10, 20, 30]


def test_clip_moves_numbers_to_the_nearest_bound():
    table = change_cell(1, "depth", 12)(change_cell(0, "rate", 0.7)(make_table()))
    with pytest.warns(HistoryWarning, match="nearest bound: 1 of 'rate', 1 of 'depth'"):
        may, _ = read(table, clip=True)
    assert may.values[:2, :2].tolist() == [[0.5, 3], [0.2, 9]]


@pytest.mark.parametrize("logarithm", [np.log10, np.log, np.log2])
def test_column_on_another_scale_is_not_clipped(logarithm):
    """A column on another scale is refused, as clipping would move all its values to one bound."""
    table = make_table().assign(rate=lambda table: logarithm(table["rate"]))
    with pytest.raises(EvaluationsError, match="'rate' must be a number"):
        read(table, clip=True)


def test_refused_rows_come_with_advice():
    message = "drop_invalid .* leaves .*; clip .* moves .*; if they .* on another search space"
    with pytest.raises(EvaluationsError, match=message):
        read(change_cell(1, "depth", 12)(make_table()))


def test_all_problems_are_listed_together():
    table = change_cell(0, "rate", 7.0)(change_cell(4, "depth", 0)(make_table()))
    with pytest.raises(EvaluationsError, match=r"2 of 5(.|\n)*row 0 \(7.0\)(.|\n)*row 4 \(0\)"):
        read(table)


@given(
    row=st.integers(0, 4),
    column=st.sampled_from(["rate", "depth"]),
    value=st.one_of(
        st.floats(9.0001, 1e300),
        st.floats(-1e300, -1e-6),
        st.text(st.characters(categories=["L"]), min_size=1, max_size=3),
        st.booleans(),
    ),
)
def test_any_wrong_number_is_refused(row, column, value):
    with pytest.raises(EvaluationsError, match=rf"'{column}' must be .*row {row} "):
        read(change_cell(row, column, value)(make_table().assign(objective=0.5)))


def test_values_of_inactive_hyperparameters_are_ignored():
    may, _ = read(change_cell(0, "gamma", 0.9)(make_table()))
    assert np.isnan(may.values[0, 3])


def test_constant_must_be_that_of_the_space():
    space = SearchSpace(STEPS.parameters, constants={"trees": 100})
    table = pd.DataFrame({"depth": [10, 20], "objective": [1.0, 2.0], "trees": [100, 50]})
    with pytest.raises(EvaluationsError, match=r"'trees' must be 100: row 1 \(50\)"):
        read(table, space)


def test_table_without_tasks_is_one():
    """A table without a column of tasks is one task, which has the name of its file."""
    table = make_table().drop(columns="task")
    table.iloc[:3].to_csv("2026-05.csv.gz", index=False)
    table.iloc[3:].to_parquet("2026-06.parquet")
    history = read(["2026-05.csv.gz", "2026-06.parquet"])
    assert [evaluations.task for evaluations in history] == ["2026-05", "2026-06"]


def test_frames_without_tasks_are_numbered():
    table = make_table().drop(columns="task")
    history = read([table.iloc[:3], table.iloc[3:]])
    assert [evaluations.task for evaluations in history] == ["table 1", "table 2"]


def test_tasks_of_one_name_are_told_apart_by_their_source():
    """If two storages each have a study `churn`, the names of the tasks tell the storages."""
    for month, rows in (("may", ROWS[:2]), ("june", ROWS[3:])):
        Path(month).mkdir()
        churn = [("churn", *row[1:]) for row in rows]
        make_studies(churn, storage=f"sqlite:///{month}/tuning.db")
    history = read(["may/tuning.db", "june/tuning.db"])
    tasks = [evaluations.task for evaluations in history]
    assert tasks == ["churn of may/tuning.db", "churn of june/tuning.db"]


def test_tasks_come_in_the_order_of_the_table():
    """Tasks keep the order of the table, even if their names are dates or numbers."""
    names = {"May": "12/01/2026", "June": "01/15/2026"}
    table = make_table().replace({"task": names})
    assert [evaluations.task for evaluations in read(table)] == list(names.values())


@pytest.mark.parametrize(
    "times",
    [[5, 5, 5, 2, 3], ["2026-05-31"] * 3 + ["2026-05-04"] * 2, pd.to_datetime([5, 5, 5, 2, 9])],
    ids=["numbers", "dates", "times"],
)
def test_tasks_are_sorted_by_a_column(times):
    history = read(make_table().assign(when=times), order="when")
    assert [evaluations.task for evaluations in history] == ["June", "May"]


def test_columns_can_be_renamed():
    table = make_table().rename(columns={"rate": "lr", "task": "month"})
    history = read(table, rename={"lr": "rate"}, task="month")
    assert [evaluations.task for evaluations in history] == ["May", "June"]


@pytest.mark.parametrize("source", ["frame", "studies"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rename": {"rat": "lr"}}, "'rat'.* 'rate'"),
        ({"rename": {"rate": "depth"}}, "'depth'"),
        ({"rename": "rate"}, "mapping"),
        ({"contexts": {"May": 3, "June": 3}}, "contexts must be a dict of numbers for each"),
        ({"contexts": {"May": {"n": 3.0}}}, "no context of 'June'"),
        ({"contexts": {"Mai": {"n": 3.0}}}, "unknown task 'Mai'"),
        ({"contexts": {"May": {"n": 3.0}, "June": {"m": 3.0}}}, "context of task 'June' has"),
        ({"direction": "largest"}, "direction"),
    ],
)
def test_invalid_options_are_refused(source, options, message):
    with pytest.raises(EvaluationsError, match=message):
        read(SOURCES[source](), **options)


def test_contexts_are_those_of_the_tasks():
    may, june = read(make_table(), contexts={"May": {"n": 3}, "June": {"n": 4}})
    assert (may.context, june.context) == ({"n": 3}, {"n": 4})


@pytest.mark.parametrize(
    ("source", "space", "direction", "message"),
    [
        (make_table, None, "maximize", "say on which search space the table was made"),
        (make_table, SPACE, None, "say whether the objective is to minimize or maximize"),
        (
            make_studies,
            SPACE,
            "minimize",
            "same direction, .* task at hand is to minimize; read_history",
        ),
        (lambda: 3, SPACE, "maximize", "DataFrame, .* but got a int"),
        (list, SPACE, "maximize", "but got a list"),
        (lambda: write_file("old.csv", b"\xff\xfe\x00"), SPACE, "maximize", "neither a table"),
        (lambda: write_file("old.csv", b""), SPACE, "maximize", "old.csv is empty"),
        (lambda: write_file("old.csv", b"a;b\n1;2\n"), SPACE, "maximize", "by commas, not ';'"),
        (lambda: write_file("old.csv", b"a,b\n1\n"), SPACE, "maximize", "line 2 of .* has 1 value"),
        (lambda: write_file("o.parquet", b"PAR1xx"), SPACE, "maximize", "o.parquet cannot be read"),
    ],
)
def test_unreadable_source_is_refused(source, space, direction, message):
    with pytest.raises(EvaluationsError, match=message):
        hbo.read_history(source(), space, direction=direction)


def write_file(name: str, content: bytes) -> str:
    Path(name).write_bytes(content)
    return name


def test_missing_file_is_named():
    write_csv(make_table())
    with pytest.raises(UnknownNameError, match=r"'odl.csv'.*did you mean 'old.csv'"):
        read("odl.csv")


def test_warning_points_to_the_users_line():
    with pytest.warns(HistoryWarning) as caught:
        hbo.read_history(make_table([*ROWS, ROWS[1]]), SPACE, direction="maximize")
    assert [warning.filename for warning in caught] == [__file__]
