"""The format of raw evaluations: what is written is read back, and what is wrong is named."""

from collections.abc import Callable
from dataclasses import replace
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

ABOUT = About(
    benchmark="mine",
    source="dice",
    licence="none",
    limits=("Nothing is real.",),
    contexts={"37": {"n_rows": 768.0}, "3": {"n_rows": 3196.0}},
    dropped={"out of bounds": 3},
    versions={"numpy": "2"},
)


def table(space: SearchSpace, n: int = 40, seed: int = 0) -> pd.DataFrame:
    """Random evaluations of the tasks 37 and 3, taking turns."""
    rng = np.random.default_rng(seed)
    values = space.decode(space.sample_unit(rng, n))
    frame = pd.DataFrame(space.configs(values), columns=space.names).add_prefix("config.")
    spread = np.where(rng.random(n) < 0.5, np.nan, rng.random(n))
    return frame.assign(
        task=np.where(np.arange(n) % 2, "3", "37"),
        training=np.arange(n) // 4,
        value=rng.random(n),
        spread=spread,
        seconds=1.5,
    )


def first(column: str, values: list[Any]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Replaces a column's first values."""
    return lambda f: f.assign(**{column: [*values, *f[column][len(values) :]]})


@settings(deadline=None, max_examples=15)
@given(st.sampled_from([svm_space(), xgboost_space(), ranger_space()]), st.integers(0, 2**32 - 1))
def test_configurations_come_back_exactly(tmp_path_factory, space, seed):
    frame = table(space, seed=seed)
    path = tmp_path_factory.mktemp("raw") / "folder" / "x.parquet"
    write_raw(path, frame, ABOUT)
    raw_table = read_raw(path, benchmark="mine", space=space)
    assert raw_table.about == ABOUT
    assert list(raw_table.tasks) == ["37", "3"]  # as they come first
    expected = space.decode(space.sample_unit(np.random.default_rng(seed), len(frame)))
    for first, raw in enumerate(raw_table.tasks.values()):
        np.testing.assert_array_equal(raw.values, expected[first::2])
        np.testing.assert_array_equal(raw.objective, frame["value"][first::2])
        np.testing.assert_array_equal(raw.spread, frame["spread"][first::2])
        np.testing.assert_array_equal(raw.training, frame["training"][first::2])


def test_the_same_evaluations_make_the_same_file_that_other_tools_read(tmp_path):
    frame = table(xgboost_space())
    for name in ("a", "b"):
        write_raw(tmp_path / name, frame, ABOUT)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a"), frame)


def test_some_of_the_tasks(tmp_path):
    write_raw(tmp_path / "x", table(svm_space()), ABOUT)
    raw = read_raw(tmp_path / "x", benchmark="mine", space=svm_space())
    assert list(raw.select_tasks(["3", "37"]).tasks) == ["37", "3"]
    assert list(raw.select_tasks(["3"]).tasks) == ["3"]
    with pytest.raises(UnknownNameError, match="task with evaluations '31' of mine"):
        raw.select_tasks(["3", "31"])


def test_what_is_no_such_file_is_refused(tmp_path):
    write_raw(tmp_path / "other", table(svm_space()), replace(ABOUT, benchmark="yours"))
    (tmp_path / "text").write_text("a,b\n1,2\n")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "plain")
    broken = pq.read_table(tmp_path / "plain").replace_schema_metadata({"hpobench_ordered": "{}"})
    pq.write_table(broken, tmp_path / "untold")
    table_of = "is not a table of raw evaluations"
    messages = dict.fromkeys(("text", "plain", "untold", "missing"), table_of)
    messages["other"] = "holds evaluations of 'yours', not 'mine'"
    for name, message in messages.items():
        with pytest.raises(ArtifactError, match=f"{name} {message}"):
            read_raw(tmp_path / name, benchmark="mine", space=svm_space())
    with pytest.raises(ArtifactError, match="cannot write the evaluations"):
        write_raw(tmp_path / "text" / "x", table(svm_space()), ABOUT)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: f.drop(columns="value"), "no column 'value' for the objective"),
        (lambda f: f.drop(columns="config.cost"), "no column 'cost' for a hyperparameter"),
        (lambda f: f.drop(columns="spread"), "no column 'spread'"),
        (lambda f: f.assign(**{"config.C": 1.0}), "unknown hyperparameters: config.C"),
        (lambda f: f[:0], "no usable evaluation"),
        (lambda f: f.assign(task=None), "(?s)40 of 40 .*names no task"),
        (lambda f: f.assign(value=f["value"].where(f.index > 4)), "(?s)5 of 40 .*a finite number"),
        (lambda f: f.assign(value="high"), "must be a finite number: row 0 \\('high'\\)"),
        (lambda f: f.assign(training=np.nan), "'training' must hold whole numbers"),
        (first("config.cost", [1e6, 1e6]), "(?s)2 of 40 .*'cost' must be a number "),
        (first("config.kernel", ["rbf"]), "(?s)1 of 40 .*'kernel' must be one of 'linear', "),
    ],
)
def test_what_is_wrong_is_counted_and_named(damage, message, tmp_path):
    damaged = damage(table(svm_space()))
    with pytest.raises(ArtifactError, match=message):
        code_tasks(damaged, svm_space())
    write_raw(tmp_path / "x", damaged, ABOUT)
    with pytest.raises(ArtifactError, match=message) as error:
        read_raw(tmp_path / "x", benchmark="mine", space=svm_space())
    assert str(error.value).startswith(f"{tmp_path / 'x'}: ")
