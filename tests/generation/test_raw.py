"""Tables of raw evaluations: what is written is read back, and what is wrong is named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpobench_ordered.benchmarks.openml_flows import ranger_space, svm_space, xgboost_space
from hpobench_ordered.errors import ArtifactError, UnknownNameError
from hpobench_ordered.generation._raw import About, code_tasks, read_raw, write_raw
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


SPACES = st.sampled_from([svm_space(), xgboost_space(), ranger_space()])


@settings(deadline=None, max_examples=15)
@given(SPACES, st.integers(0, 2**32 - 1))
def test_written_evaluations_are_read_exactly(tmp_path_factory, space, seed):
    """Values are read to the last bit; tasks are in the order in which they come first."""
    frame = make_table(space, seed=seed)
    path = tmp_path_factory.mktemp("raw") / "folder" / "x.parquet"
    write_raw(path, frame, DESCRIPTION_OF_TABLE)

    table = read_raw(path, benchmark="mine", space=space)

    assert list(table.tasks) == ["37", "3"]
    # Made as `make_table` makes them
    values = space.decode(space.sample_unit(np.random.default_rng(seed), len(frame)))
    for task, raw in table.tasks.items():
        is_of_task = (frame["task"] == task).to_numpy()
        np.testing.assert_array_equal(raw.values, values[is_of_task])
        np.testing.assert_array_equal(raw.objective, frame["value"][is_of_task])
        np.testing.assert_array_equal(raw.spread, frame["spread"][is_of_task])
        np.testing.assert_array_equal(raw.training, frame["training"][is_of_task])


def test_table_tells_about_itself_as_written(tmp_path):
    """A file also holds a description: source, licence, limits, contexts and versions."""
    write_raw(tmp_path / "x", make_table(svm_space()), DESCRIPTION_OF_TABLE)

    table = read_raw(tmp_path / "x", benchmark="mine", space=svm_space())

    assert table.about == DESCRIPTION_OF_TABLE


def test_same_evaluations_make_same_file(tmp_path):
    """Files of equal tables are equal to the byte."""
    write_raw(tmp_path / "a", make_table(xgboost_space()), DESCRIPTION_OF_TABLE)
    write_raw(tmp_path / "b", make_table(xgboost_space()), DESCRIPTION_OF_TABLE)

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_writing_leaves_no_temporary_file(tmp_path):
    """The folder has the written file alone."""
    write_raw(tmp_path / "a", make_table(xgboost_space()), DESCRIPTION_OF_TABLE)

    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_pandas_reads_the_file(tmp_path):
    """A user can read the table without this package."""
    frame = make_table(xgboost_space())

    write_raw(tmp_path / "x", frame, DESCRIPTION_OF_TABLE)

    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "x"), frame)


@pytest.fixture
def table_read_back(tmp_path):
    """Random evaluations of the tasks 37 and 3, written to a file and read back."""
    write_raw(tmp_path / "x", make_table(svm_space()), DESCRIPTION_OF_TABLE)
    return read_raw(tmp_path / "x", benchmark="mine", space=svm_space())


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
        tmp_path / "x", make_table(svm_space()), replace(DESCRIPTION_OF_TABLE, benchmark="yours")
    )

    with pytest.raises(ArtifactError, match="x holds evaluations of 'yours', not 'mine'"):
        read_raw(tmp_path / "x", benchmark="mine", space=svm_space())


def write_text(path: Path) -> None:
    path.write_text("a,b\n1,2\n")


def write_plain_parquet(path: Path) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(path)


def write_empty_metadata(path: Path) -> None:
    """Write a Parquet file whose description of the evaluations is empty."""
    write_plain_parquet(path)
    table = pq.read_table(path).replace_schema_metadata({"hpobench_ordered": "{}"})
    pq.write_table(table, path)


def write_nothing(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    "write_file", [write_text, write_plain_parquet, write_empty_metadata, write_nothing]
)
def test_other_files_are_refused(tmp_path, write_file):
    """A text, a Parquet file without a description or with an empty one, or no file at all."""
    write_file(tmp_path / "x")

    with pytest.raises(ArtifactError, match="x is not a table of raw evaluations"):
        read_raw(tmp_path / "x", benchmark="mine", space=svm_space())


def test_file_cannot_be_a_folder(tmp_path):
    write_text(tmp_path / "text")

    # The folder of the new file would be a file.
    with pytest.raises(ArtifactError, match="cannot write the evaluations"):
        write_raw(tmp_path / "text" / "x", make_table(svm_space()), DESCRIPTION_OF_TABLE)


def replace_first(column: str, values: list[Any]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Make a function that replaces the first values of a table's column, and returns the table."""

    def replace_values(frame: pd.DataFrame) -> pd.DataFrame:
        others = frame[column][len(values) :]
        return frame.assign(**{column: [*values, *others]})

    return replace_values


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda table: table.drop(columns="value"), "no column 'value' for the objective"),
        (lambda table: table.drop(columns="config.cost"), "no column 'cost' for a hyperparameter"),
        (lambda table: table.drop(columns="spread"), "no column 'spread'"),
        (lambda table: table.assign(**{"config.C": 1.0}), "unknown hyperparameters: config.C"),
        (lambda table: table[:0], "no usable evaluation"),
        (lambda table: table.assign(task=None), "(?s)40 of 40 .*names no task"),
        (
            lambda table: table.assign(value=table["value"].where(table.index > 4)),
            "(?s)5 of 40 .*a finite number",
        ),
        (lambda table: table.assign(value="high"), "must be a finite number: row 0 \\('high'\\)"),
        (lambda table: table.assign(training=np.nan), "'training' must hold whole numbers"),
        (replace_first("config.cost", [1e6, 1e6]), "(?s)2 of 40 .*'cost' must be a number "),
        (replace_first("config.kernel", ["rbf"]), "(?s)1 of 40 .*'kernel' must be one of 'linear'"),
    ],
)
class TestDamage:
    def test_table_is_refused(self, damage, message):
        """A table of 40 rows is changed by the function `damage`."""
        table = damage(make_table(svm_space()))

        with pytest.raises(ArtifactError, match=message):
            code_tasks(table, svm_space())

    def test_file_is_named(self, damage, message, tmp_path):
        """The same error, of a table read from a file, begins with the file's path."""
        path = tmp_path / "x"
        write_raw(path, damage(make_table(svm_space())), DESCRIPTION_OF_TABLE)

        with pytest.raises(ArtifactError, match=message) as caught:
            read_raw(path, benchmark="mine", space=svm_space())

        assert str(caught.value).startswith(f"{path}: ")
