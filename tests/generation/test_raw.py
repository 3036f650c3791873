"""Tables of raw evaluations: what is written is read back, and what is wrong is named."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.benchmarks.openml_flows import (
    make_ranger_space,
    make_svm_space,
    make_xgboost_space,
)
from hpobench_ordered.errors import ArtifactError, UnknownNameError
from hpobench_ordered.generation._raw import About, read_raw, write_raw
from hpobench_ordered.space import SearchSpace

# What a table says about itself.
DESCRIPTION_OF_TABLE = About(
    benchmark="mine",
    source="dice",
    licence="none",
    limits=("Nothing is real.",),
    contexts={"37": {"n_rows": 768.0}, "3": {"n_rows": 3196.0}},
)


def make_table(space: SearchSpace, rows: int = 40, seed: int = 0) -> pd.DataFrame:
    """Make up evaluations of the tasks 37 and 3, which take turns.

    Half of the spreads are missing.
    """
    rng = np.random.default_rng(seed)
    values = space.decode(space.sample_unit(rng, rows))
    frame = pd.DataFrame(space.configs(values), columns=space.names).add_prefix("config.")
    has_spread = rng.random(rows) >= 0.5
    return frame.assign(
        task=np.where(np.arange(rows) % 2, "3", "37"),
        training=np.arange(rows) // 4,  # four evaluations of each training
        value=rng.random(rows),
        spread=np.where(has_spread, rng.random(rows), np.nan),
        seconds=1.5,
    )


@pytest.mark.parametrize("space", [make_svm_space(), make_xgboost_space(), make_ranger_space()])
def test_written_evaluations_are_read_exactly(tmp_path, space):
    """Values are read to the last bit; tasks are in the order in which they come first."""
    frame = make_table(space)
    path = tmp_path / "folder" / "x.parquet"
    write_raw(path, frame, DESCRIPTION_OF_TABLE)

    table = read_raw(path, benchmark="mine", space=space)

    assert table.about == DESCRIPTION_OF_TABLE
    assert list(table.tasks) == ["37", "3"]
    # Made as `make_table` makes them
    values = space.decode(space.sample_unit(np.random.default_rng(0), len(frame)))
    for task, raw in table.tasks.items():
        is_of_task = (frame["task"] == task).to_numpy()
        np.testing.assert_array_equal(raw.values, values[is_of_task])
        np.testing.assert_array_equal(raw.objective, frame["value"][is_of_task])
        np.testing.assert_array_equal(raw.spread, frame["spread"][is_of_task])
        np.testing.assert_array_equal(raw.training, frame["training"][is_of_task])


@pytest.fixture
def table_read_back(tmp_path):
    """Random evaluations of the tasks 37 and 3, written to a file and read back."""
    write_raw(tmp_path / "x", make_table(make_svm_space()), DESCRIPTION_OF_TABLE)
    return read_raw(tmp_path / "x", benchmark="mine", space=make_svm_space())


@pytest.mark.parametrize(("names", "selected"), [(["3", "37"], ["37", "3"]), (["3"], ["3"])])
def test_selected_tasks_keep_their_order(table_read_back, names, selected):
    """The order of the file, whatever that of the names."""
    assert list(table_read_back.select_tasks(names).tasks) == selected


def test_unknown_task_cannot_be_selected(table_read_back):
    # There are evaluations of the tasks 37 and 3.
    with pytest.raises(UnknownNameError, match="task with evaluations '31' of mine"):
        table_read_back.select_tasks(["3", "31"])


def test_evaluations_of_another_benchmark_are_refused(tmp_path):
    """A table tells which benchmark its evaluations are of."""
    write_raw(
        tmp_path / "x",
        make_table(make_svm_space()),
        replace(DESCRIPTION_OF_TABLE, benchmark="yours"),
    )

    with pytest.raises(ArtifactError, match="x holds evaluations of 'yours', not 'mine'"):
        read_raw(tmp_path / "x", benchmark="mine", space=make_svm_space())


def test_other_files_are_refused(tmp_path):
    """A Parquet file without a description of its evaluations."""
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "x")

    with pytest.raises(ArtifactError, match="x is not a table of raw evaluations"):
        read_raw(tmp_path / "x", benchmark="mine", space=make_svm_space())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda table: table.drop(columns="config.cost"), "no column 'cost' for a hyperparameter"),
        (lambda table: table.drop(columns="spread"), "no column 'spread'"),
        (lambda table: table.assign(value="high"), "'value' must hold floating-point numbers"),
        (lambda table: table.assign(**{"config.cost": 1e6}), "(?s)'cost' must be a number "),
    ],
)
def test_wrong_tables_are_refused(damage, message, tmp_path):
    """A table of 40 rows is changed by the function `damage`; the error names the file."""
    path = tmp_path / "x"
    write_raw(path, damage(make_table(make_svm_space())), DESCRIPTION_OF_TABLE)

    with pytest.raises(ArtifactError, match=message) as caught:
        read_raw(path, benchmark="mine", space=make_svm_space())

    assert str(caught.value).startswith(str(path))
