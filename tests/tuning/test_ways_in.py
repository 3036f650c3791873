"""Errors and warnings about mistakes that are easily made when a history is used."""

import functools
import json
import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from by_speed import by_speed
from click.testing import CliRunner
from optuna.distributions import FloatDistribution, IntDistribution

import hpobench_ordered as hbo
from hpobench_ordered import Evaluations, Parameter, SearchSpace
from hpobench_ordered.cli import app, main
from hpobench_ordered.errors import (
    EvaluationsError,
    ExperimentError,
    HistoryWarning,
    InvalidSpaceError,
)
from hpobench_ordered.methods.registry import list_methods, method_spec
from hpobench_ordered.space import SpaceChange
from hpobench_ordered.tuning import OptunaSampler
from hpobench_ordered.tuning.optimiser import Optimiser

optuna.logging.set_verbosity(optuna.logging.ERROR)


def make_space(rate: str = "rate", highest_rate: float = 1) -> SearchSpace:
    """Make a space of a rate, which may have another name or range, and a depth."""
    return SearchSpace(
        [
            Parameter.number(rate, 1e-4, highest_rate, log=True),
            Parameter.number("depth", 1, 9, integer=True),
        ]
    )


SPACE = make_space()
NARROWER_SPACE = make_space(highest_rate=0.1)
RENAMED_SPACE = make_space("lr")
RATES_DEPTHS_ACCURACIES = [(0.5, 4, 0.9), (0.01, 2, 0.8), (0.002, 9, 0.7)]
"""Evaluations of a month; the best rate, 0.5, is out of the narrower space."""
MONTHS = ("m1", "m2", "m3")
DISTRIBUTIONS = {"rate": FloatDistribution(1e-4, 1, log=True), "depth": IntDistribution(1, 9)}


def make_studies(names: Sequence[str] = MONTHS, **options: Any) -> list[optuna.Study]:
    """Make a study of three trials for each month; each later one has accuracies 0.01 lower."""
    studies = []
    for number, name in enumerate(names):
        study = optuna.create_study(study_name=name, direction="maximize", **options)
        for rate, depth, accuracy in RATES_DEPTHS_ACCURACIES:
            trial = optuna.trial.create_trial(
                params={"rate": rate, "depth": depth},
                distributions=DISTRIBUTIONS,
                value=accuracy - 0.01 * number,
            )
            study.add_trial(trial)
        studies.append(study)
    return studies


@functools.cache  # as it takes long
def make_storage_file(names: Sequence[str] = MONTHS) -> bytes:
    """Make a storage of Optuna with a study for each month; return the content of its file."""
    with TemporaryDirectory() as folder:
        make_studies(names, storage=f"sqlite:///{folder}/t.db")
        return Path(folder, "t.db").read_bytes()


def make_table(names: Sequence[str] = MONTHS) -> pd.DataFrame:
    """Make a table of three rows for each month; each later one has accuracies 0.01 lower."""
    rows = []
    for number, name in enumerate(names):
        for rate, depth, accuracy in RATES_DEPTHS_ACCURACIES:
            rows.append((name, rate, depth, accuracy - 0.01 * number))
    return pd.DataFrame(rows, columns=["month", "rate", "depth", "accuracy"])


def read_table(frame: pd.DataFrame, space: SearchSpace = SPACE, **options: Any) -> Any:
    """Read a history from a table with a row an evaluation; the accuracy is maximised."""
    settings = {"objective": "accuracy", "direction": "maximize", "task": "month"}
    return hbo.read_history(frame, space, **settings | options)


def read_table_of_months(names: Sequence[str] = MONTHS, **options: Any) -> tuple[Evaluations, ...]:
    """Read a history from a table of months, by default m1 to m3, with three rows each."""
    return read_table(make_table(names), **options)


def draw_at_random(space: SearchSpace, rng: Any) -> Any:
    """A user's method: the functions ask, which draws at random, and tell, which does nothing."""
    return (lambda: space.sample(rng)), (lambda config, loss: None)


OPTIONS_FOR_TABLE = "--history old.csv --task month --objective accuracy"
OPTIONS_FOR_STORAGE = "--storage sqlite:///t.db --studies m*"


def run_suggest_command(
    folder: Path,
    source: str,
    method: str,
    *options: str,
    names: Any = MONTHS,
    space: Any = SPACE,
) -> Any:
    """Run the command `suggest` in a folder with a history of the named tasks.

    `source` are the options that say where it reads the history: in a table or in a storage.
    """
    (folder / "space.json").write_text(json.dumps(space.to_json()))
    if "--storage" in source:
        (folder / "t.db").write_bytes(make_storage_file(names))
    else:
        make_table(names).to_csv(folder / "old.csv", index=False)
    command = f"suggest --space space.json --direction maximize --method {method} {source}".split()
    return CliRunner().invoke(app, [*command, *options])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder, which is the working directory of each test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("method", ["bo", optuna.samplers.RandomSampler, draw_at_random])
def test_optimiser_warns_of_unused_history(method):
    """The warning points to the caller's line, which is in this file."""
    spec = hbo.tuning.as_method_spec(method)
    history = read_table_of_months()

    with pytest.warns(HistoryWarning, match="does not use the history of 3 tasks") as caught:
        hbo.optimiser(spec, direction="maximize", space=SPACE, history=history)

    assert [warning.filename for warning in caught] == [__file__]


def test_used_history_is_not_warned_of():
    """The method simple-ordered uses the history; a warning would be an error in these tests."""
    history = read_table_of_months()

    hbo.optimiser("simple-ordered", direction="maximize", space=SPACE, history=history)


@pytest.mark.parametrize("source", [OPTIONS_FOR_TABLE, OPTIONS_FOR_STORAGE])
def test_command_renames_hyperparameters(folder, source):
    """The method simple-ordered suggests the best of the history first."""
    result = run_suggest_command(
        folder, source, "simple-ordered", "--rename", "rate=lr", space=RENAMED_SPACE
    )
    best_of_history = "lr,depth\n0.5,4\n"
    assert result.stdout == best_of_history


def suggest_eight(name: str, history: tuple[Evaluations, ...]) -> list[Any]:
    """Ask a method for eight suggestions, and tell each one's number, 0 to 7, as its loss."""
    method = method_spec(name).method(
        space=SPACE, rng=np.random.default_rng(0), history=history, context={}, budget=8
    )
    configs = []
    for number in range(8):
        config = method.ask()
        method.tell(config, float(number))
        configs.append(config)
    return configs


@pytest.mark.parametrize(
    "name", by_speed([n for n in list_methods() if not method_spec(n).uses_history])
)
def test_methods_without_history_ignore_it(name):
    """With a history, they make the same eight suggestions as without it."""
    with_history = suggest_eight(name, history=read_table_of_months())
    without_history = suggest_eight(name, history=())
    assert with_history == without_history


def test_sampler_begins_with_clipped_best():
    """The best of the history has the rate 0.5; in the narrower space rates are at most 0.1."""
    with pytest.warns(HistoryWarning, match="another search space"):
        sampler = OptunaSampler.from_studies("simple-ordered", make_studies(), space=NARROWER_SPACE)
    trial = optuna.create_study(direction="maximize", sampler=sampler).ask()
    assert trial.suggest_float("rate", 1e-4, 0.1, log=True) == 0.1
    assert trial.suggest_int("depth", 1, 9) == 4


def test_sampler_begins_with_renamed_best():
    """The best of the studies has the rate 0.5, which is called `lr` now."""
    sampler = OptunaSampler.from_studies("simple-ordered", make_studies(), rename={"rate": "lr"})
    trial = optuna.create_study(direction="maximize", sampler=sampler).ask()
    assert trial.suggest_float("lr", 1e-4, 1, log=True) == 0.5


@pytest.mark.parametrize("space", [None, SPACE], ids=["inferred", "given"])
def test_unused_hyperparameter_is_warned_of_once(space):
    """Of rate and depth the objective suggests the rate alone, in three trials."""
    sampler = OptunaSampler.from_studies("simple-ordered", make_studies(), space=space)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    with pytest.warns(HistoryWarning, match="does not suggest 'depth'") as caught:
        study.optimize(lambda t: t.suggest_float("rate", 1e-4, 1, log=True), n_trials=3)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--history old.csv", "no column 'objective' for the objective"),
        ("--storage sqlite:///tt.db", "unknown file 'tt.db'; did you mean 't.db'?"),
        ("--storage t.db --studies x*", "unknown study 'x*'; choose from 'm1', 'm2', 'm3'"),
        ("--clip", "--clip need --history"),
        ("--storage t.db --rename raet=lr", "'raet' cannot be renamed; did you mean 'rate'?"),
        ("--context size=nan", "'size' is 'nan'"),
    ],
)
def test_command_reports_misuse(options, message, capsys, monkeypatch):
    """The folder has a table, old.csv, and a storage of Optuna, t.db, with studies m1 to m3.

    The command prints no suggestion, and ends with the message and the code of misuse, 2.
    """
    make_table().to_csv("old.csv", index=False)
    Path("t.db").write_bytes(make_storage_file())
    Path("space.json").write_text(json.dumps(SPACE.to_json()))
    words = f"suggest --space space.json --direction maximize --method simple-ordered {options}"
    monkeypatch.setattr("sys.argv", ["hpobench-ordered", *words.split()])
    monkeypatch.setattr("signal.signal", lambda *_: None)  # leaves the tests' own handlers alone

    with pytest.raises(SystemExit) as stop:
        main()

    output = capsys.readouterr()
    assert stop.value.code == 2
    assert output.out == ""
    assert message in output.err


@pytest.mark.parametrize(
    ("option", "input_file"),
    [("history", "old.csv"), ("results", "results.csv"), ("space", "space.json")],
)
def test_command_keeps_its_input_files(folder, option, input_file):
    """A command is refused whose output would replace the file that an option reads."""
    content_of_file = {
        "old.csv": make_table().to_csv(index=False),
        "results.csv": "rate,depth,accuracy\n",
        "space.json": json.dumps(SPACE.to_json()),
    }
    (folder / "results.csv").write_text(content_of_file["results.csv"])
    same_file_by_other_path = f"../{folder.name}/{input_file}"
    options = ("--results", "results.csv", "--output", same_file_by_other_path)

    # This writes the other two files.
    result = run_suggest_command(folder, OPTIONS_FOR_TABLE, "simple-ordered", *options)

    assert result.exit_code == 2
    assert f"--output must not be the file of --{option}" in result.stderr
    assert (folder / input_file).read_text() == content_of_file[input_file]


def test_a_damaged_storage_is_refused():
    """A colon is missing in the JSON text of a distribution."""
    content = make_storage_file()
    damaged = content.replace(b'"low": 1', b'"low" 1')  # JSON without a colon
    assert damaged != content
    Path("bad.db").write_bytes(damaged)
    with pytest.raises(EvaluationsError, match=r"the storage 'sqlite:///bad.db' cannot be read"):
        hbo.read_history("bad.db")


def create_other_database(path):
    """Create a database that is no storage of Optuna."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table prices (a)")
        database.commit()


@pytest.mark.parametrize("create", [create_other_database, Path.touch], ids=["other", "empty"])
def test_reading_other_database_writes_nothing(folder, create):
    """The file is a database of something else, or empty."""
    path = folder / "other.db"
    create(path)
    before = path.read_bytes()
    with pytest.raises(EvaluationsError, match="no studies of Optuna"):
        hbo.read_history(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("value", [math.nan, "big", None])
def test_a_context_is_of_numbers(value):
    """An optimiser refuses other values at once, a sampler when it is first asked."""
    context = {"size": value}
    message = r"context 'size' of task .* finite number"
    with pytest.raises(EvaluationsError, match=message):
        hbo.optimiser("bo", space=SPACE, context=context, direction="minimize")
    study = optuna.create_study(sampler=OptunaSampler("bo", space=SPACE, context=context))
    with pytest.raises(EvaluationsError, match=message):
        study.ask()


def make_simple_ordered(**options: Any) -> Optimiser:
    """Make an optimiser with a history: three months, m1 to m3, none with a context.

    It maximises the accuracy, as the table of the history does.
    """
    history = read_table_of_months()
    return hbo.optimiser(
        "simple-ordered", space=SPACE, direction="maximize", history=history, **options
    )


def test_other_context_than_historys_is_warned_of():
    """The optimiser's context has a size; those of the tasks of its history are empty."""
    with pytest.warns(HistoryWarning, match=r"has \['size'\], which differs from that of 'm1'"):
        make_simple_ordered(context={"size": 3})


def test_invalid_seed_is_refused():
    with pytest.raises(ExperimentError, match="a seed must be a whole number from 0"):
        make_simple_ordered(seed=-1)


def test_a_space_may_be_a_dict():
    """Two integers make an integer range; a list makes choices, and a number a constant."""
    space_as_dict = {
        "lr": (1e-4, 1, "log"),
        "momentum": (0.0, 1),
        "depth": (1, 9),
        "units": (8, 512, "log"),
        "kind": ["tree", "line"],
        "trees": 100,
    }
    tuner = hbo.optimiser("bo", space=space_as_dict, direction="minimize")
    expected = SearchSpace(
        [
            Parameter.number("lr", 1e-4, 1, log=True),
            Parameter.number("momentum", 0, 1),
            Parameter.number("depth", 1, 9, integer=True),
            Parameter.number("units", 8, 512, integer=True, log=True),
            Parameter.choice("kind", ("tree", "line")),
        ],
        constants={"trees": 100},
    )
    assert tuner.space == expected
    assert tuner.ask().keys() == space_as_dict.keys()


def test_changes_are_between_spaces_of_any_kind():
    """The change from a dict to a space of ConfigSpace, which has a depth, too."""
    space_as_dict = {"rate": (1e-4, 1.0, "log")}
    change = SpaceChange.between(space_as_dict, SPACE.to_configspace())
    assert change.shared == ("rate",)


def test_text_is_no_space():
    with pytest.raises(EvaluationsError, match="the search space must be a SearchSpace"):
        SpaceChange.between(SPACE, "space.json")


@pytest.mark.parametrize(
    ("described", "message"),
    [({"lr": lr}, "lr") for lr in [(), (2, 1), [], [2, 10]]]
    + [({3: (1, 2)}, "3"), ({}, "at least one tunable"), ({"lr": (1, 2, "lg")}, "'lr'.*'log'")],
)
def test_invalid_dict_as_space_is_refused(described, message):
    with pytest.raises(InvalidSpaceError, match=message):
        hbo.optimiser("bo", space=described, direction="minimize")
