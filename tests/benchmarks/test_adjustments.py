"""The adjusted search spaces against the paper's tables, written out here as they are printed."""

import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context

import numpy as np
import pytest
from by_hand import clipped

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, Value
from hpobench_ordered.benchmarks._adjustment import Steps
from hpobench_ordered.benchmarks.adjustments import FINITE, SEARCHED
from hpobench_ordered.benchmarks.tabular import EDGES, FCNET_TABLES
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.files.bundle import read_card, read_definition
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.testing import check_benchmark


@pytest.fixture(scope="module")
def executor():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


TABLE_1 = """
Benchmark | #Hyperparameters Old | #Hyperparameters New | #Tasks
FCN-A     | 6                    | 5                    | 4
FCN-B     | 6                    | 8                    | 4
NAS-A     | 6                    | 6                    | 3
NAS-B     | 3                    | 6                    | 3
XGB-A     | 5                    | 9                    | 10
XGB-B     | 6                    | 6                    | 10
SVM-A     | 2                    | 2                    | 10
SVM-B     | 2                    | 2                    | 10
"""

TABLE_2 = """
Hyperparameter        | Values
# Units Layer {1, 2}  | (16, 32, 64, 128, 256, 512)
Dropout Layer {1, 2}  | (0.0, 0.3, 0.6)
Initial Learning Rate | (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1)
Batch Size            | (8, 16, 32, 64)
"""

TABLES = {
    # Table 3
    "fcn-a": """
Steps | Hyperparameter         | Range/Value  | Prior
1     | # Units Layer 1        | 1            | -
1     | # Units Layer 2        | 1            | -
1     | Batch Size             | {0, ..., 3}  | Uniform
1, 2  | Dropout Layer 1        | {0, ..., 2}  | Uniform
1, 2  | Dropout Layer 2        | {0, ..., 2}  | Uniform
1, 2  | Activation Layer 1     | {ReLu, tanh} | Uniform
1, 2  | Activation Layer 2     | {ReLu, tanh} | Uniform
1, 2  | Initial Learning Rate  | {0, ..., 5}  | Uniform
1, 2  | Learning Rate Schedule | Constant     | Uniform
2     | # Units Layer 1        | 5            | -
2     | # Units Layer 2        | 5            | -
2     | Batch Size             | 1            | -
""",
    # Table 4
    "fcn-b": """
Steps | Hyperparameter         | Range/Value  | Prior
1     | Activation Layer 1     | tanh         | -
1     | Activation Layer 2     | tanh         | -
1     | Learning Rate Schedule | Constant     | -
1, 2  | # Units Layer 1        | {0, ..., 5}  | Uniform
1, 2  | # Units Layer 2        | {0, ..., 5}  | Uniform
1, 2  | Dropout Layer 1        | {0, ..., 2}  | Uniform
1, 2  | Dropout Layer 2        | {0, ..., 2}  | Uniform
1, 2  | Initial Learning Rate  | {0, ..., 5}  | Uniform
1, 2  | Batch Size             | {0, ..., 3}  | Uniform
2     | Activation Layer 1     | {ReLu, tanh} | Uniform
2     | Activation Layer 2     | {ReLu, tanh} | Uniform
2     | Learning Rate Schedule | Cosine       | -
""",
    # Table 5
    "nas-a": """
Steps | Hyperparameter | Range/Value                                         | Prior
1, 2  | 0 -> 2         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
1, 2  | 0 -> 3         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
1, 2  | 2 -> 3         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
2     | 0 -> 1         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
2     | 1 -> 2         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
2     | 1 -> 3         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
""",
    # Table 6
    "nas-b": """
Steps | Hyperparameter | Range/Value                                         | Prior
1     | 0 -> 1         | {none, skip-connect, conv1x1, conv3x3}              | Uniform
1     | 0 -> 2         | {none, skip-connect, conv1x1, conv3x3}              | Uniform
1     | 0 -> 3         | {none, skip-connect, conv1x1, conv3x3}              | Uniform
1     | 1 -> 2         | {none, skip-connect, conv1x1, conv3x3}              | Uniform
1     | 1 -> 3         | {none, skip-connect, conv1x1, conv3x3}              | Uniform
1     | 2 -> 3         | {none, skip-connect, conv1x1, conv3x3}              | Uniform
2     | 0 -> 1         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
2     | 0 -> 2         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
2     | 0 -> 3         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
2     | 1 -> 2         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
2     | 1 -> 3         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
2     | 2 -> 3         | {none, skip-connect, conv1x1, conv3x3, avg-pool3x3} | Uniform
""",
    # Table 7
    "svm-a": """
Steps | Hyperparameter | Range/Value     | Prior
1     | Kernel         | Radial          | -
1     | Degree         | {2, ..., 5}     | Uniform
1, 2  | Cost           | [2^-10, 2^10]   | Log-uniform
2     | Kernel         | Polynomial      | -
2     | Gamma          | [2^-5, 2^5]     | Log-uniform
""",
    # Table 8
    "svm-b": """
Steps | Hyperparameter | Range/Value                  | Prior
1     | Cost           | [2^-5, 2^5]                  | Log-uniform
1, 2  | Gamma          | 1                            | -
1, 2  | Degree         | 5                            | -
1, 2  | Kernel         | {Polynomial, Linear, Radial} | Uniform
2     | Cost           | [2^-10, 2^10]                | Log-uniform
""",
    # Table 9
    "xgb-a": """
Steps | Hyperparameter       | Range/Value    | Prior
1     | Colsample-by-tree    | 1              | -
1     | Colsample-by-level   | 1              | -
1     | Minimum child weight | 1              | -
1     | Maximum depth        | 6              | -
1, 2  | Booster              | Tree           | -
1, 2  | # Rounds             | {1, ..., 5000} | Uniform
1, 2  | Subsample            | [0, 1]         | Uniform
1, 2  | Eta                  | [2^-10, 2^0]   | Log-uniform
1, 2  | Lambda               | [2^-10, 2^10]  | Log-uniform
1, 2  | Alpha                | [2^-10, 2^10]  | Log-uniform
2     | Colsample-by-tree    | [0, 1]         | Uniform
2     | Colsample-by-level   | [0, 1]         | Uniform
2     | Minimum child weight | [2^0, 2^7]     | Log-uniform
2     | Maximum depth        | {1, ..., 15}   | Uniform
""",
    # Table 10
    "xgb-b": """
Steps | Hyperparameter       | Range/Value    | Prior
1     | Colsample-by-tree    | 1              | -
1     | Colsample-by-level   | 1              | -
1     | Minimum child weight | 1              | -
1     | Maximum depth        | 6              | -
1, 2  | Booster              | {Linear, Tree} | -
1, 2  | # Rounds             | {1, ..., 5000} | Uniform
1, 2  | Subsample            | [0, 1]         | Uniform
1, 2  | Eta                  | [2^-10, 2^0]   | Log-uniform
1, 2  | Lambda               | [2^-10, 2^10]  | Log-uniform
1, 2  | Alpha                | [2^-10, 2^10]  | Log-uniform
2     | Colsample-by-tree    | 1              | -
2     | Colsample-by-level   | 0.5            | -
2     | Minimum child weight | 10             | -
2     | Maximum depth        | 10             | -
""",
}

NAMES = {
    "# Units Layer 1": "n_units_1",
    "# Units Layer 2": "n_units_2",
    "Dropout Layer 1": "dropout_1",
    "Dropout Layer 2": "dropout_2",
    "Activation Layer 1": "activation_fn_1",
    "Activation Layer 2": "activation_fn_2",
    "Initial Learning Rate": "init_lr",
    "Learning Rate Schedule": "lr_schedule",
    "Batch Size": "batch_size",
    "Colsample-by-tree": "colsample_bytree",
    "Colsample-by-level": "colsample_bylevel",
    "Minimum child weight": "min_child_weight",
    "Maximum depth": "max_depth",
    "# Rounds": "nrounds",
} | {f"{i} -> {j}": f"edge_{i}_{j}" for i, j in EDGES}
VALUES = {
    "ReLu": "relu",
    "Constant": "const",
    "Cosine": "cosine",
    "Radial": "radial",
    "Polynomial": "polynomial",
    "Tree": "gbtree",
}
LINEAR = {"kernel": "linear", "booster": "gblinear"}


@dataclass(frozen=True)
class Line:
    """A line of a table in this package's terms."""

    steps: str
    name: str
    allowed: tuple[Value, Value] | frozenset[Value] | Value
    is_integer: bool = False
    is_log: bool = False


def rows(table: str) -> list[list[str]]:
    """Cells of a table without its heading."""
    return [[cell.strip() for cell in row.split("|")] for row in table.strip().splitlines()[1:]]


def value(text: str, name: str) -> Value:
    if text == "Linear":
        return LINEAR[name]
    return float(text) if re.fullmatch(r"[\d.]+", text) else VALUES.get(text, text)


def parse(steps: str, hyperparameter: str, allowed: str, prior: str) -> Line:
    name = NAMES.get(hyperparameter, hyperparameter.lower())
    if match := re.fullmatch(r"\{(\d+), \.\.\., (\d+)\}", allowed):
        assert prior == "Uniform"
        return Line(steps, name, (float(match[1]), float(match[2])), is_integer=True)
    if match := re.fullmatch(r"\[(\S+), (\S+)\]", allowed):
        assert prior in ("Uniform", "Log-uniform")
        bounds = [float(b) if "^" not in b else 2.0 ** float(b[2:]) for b in match.groups()]
        return Line(steps, name, (bounds[0], bounds[1]), is_log=prior == "Log-uniform")
    if allowed.startswith("{"):
        return Line(steps, name, frozenset(value(c, name) for c in allowed[1:-1].split(", ")))
    return Line(steps, name, value(allowed, name))


def lines(space: hbo.SearchSpace) -> set[Line]:
    """What a search space consists of, as lines of a table."""
    found = {Line("", name, fixed) for name, fixed in space.constants.items()}
    for p in space.parameters:
        assert p.kind is not hbo.Kind.ORDINAL
        if p.choices:
            found.add(Line("", p.name, frozenset(p.choices)))
        else:
            found.add(Line("", p.name, (p.lower, p.upper), p.kind is hbo.Kind.INTEGER, p.log))
    return found


ADJUSTMENTS = {a.name: a for a in (*FINITE, *SEARCHED)}


@pytest.mark.parametrize("adjustment", ADJUSTMENTS.values(), ids=lambda a: a.name)
def test_search_spaces_are_those_of_the_tables(adjustment):
    table = [parse(*cells) for cells in rows(TABLES[adjustment.name])]
    assert adjustment.table == 3 + list(TABLES).index(adjustment.name)
    for step, number in ((Steps.STEP_1, "1"), (Steps.STEP_2, "2")):
        space = adjustment.space(step)
        listed = [entry for entry in table if number in entry.steps]
        assert lines(space) == {replace(entry, steps="") for entry in listed}
        assert len(space.constants) + space.dimension == len(listed)
        assert not space.conditions


# Table 1 has these names the other way round than tables 5 and 6, which are followed.
SWAPPED = {"NAS-A": "NAS-B", "NAS-B": "NAS-A"}


@pytest.mark.parametrize(("name", "old", "new", "tasks"), rows(TABLE_1))
def test_sizes_are_those_of_table_1(name, old, new, tasks):
    adjustment = ADJUSTMENTS[SWAPPED.get(name, name).lower()]
    assert adjustment.space(Steps.STEP_1).dimension == int(old)
    assert adjustment.space(Steps.STEP_2).dimension == int(new)
    assert len(adjustment.definition(Steps.STEP_2).tasks) == int(tasks)


def test_codes_of_networks_are_those_of_table_2():
    published = dict(FCNET_TABLES.choices)
    for hyperparameter, values in rows(TABLE_2):
        layers = ("1", "2") if "{1, 2}" in hyperparameter else ("",)
        for layer in layers:
            name = NAMES[hyperparameter.replace("{1, 2}", layer)]
            assert published[name] == tuple(float(v) for v in values.strip("()").split(","))


# -- benchmarks ------------------------------------------------------------------------------------


def test_every_adjustment_is_registered_and_what_was_before_is_not():
    for name, adjustment in ADJUSTMENTS.items():
        spec = benchmark_spec(name)
        assert spec.previous is not None
        assert spec.previous.name == f"{name}-old"
        assert spec.previous.version == spec.version
        names = [option.name for option in spec.surrogates]
        assert [option.name for option in spec.previous.surrogates] == names
        assert set(names) <= {option.name for option in adjustment.base.surrogates}
        before, after = adjustment.definition(Steps.STEP_1), spec.define()
        assert (before.tasks, before.objective) == (after.tasks, after.objective)
        assert all(task in adjustment.base.define().tasks for task in after.tasks)
        with pytest.raises(UnknownNameError):
            benchmark_spec(f"{name}-old")


def loaded(name: str) -> tuple[hbo.Benchmark, hbo.Benchmark]:
    """The benchmark before and after the adjustment."""
    after = hbo.load(name)
    assert after.previous is not None
    return after.previous, after


def natively(config: Config, base: hbo.Benchmark, unlisted: Config) -> Config:
    """A configuration in the terms of the base benchmark, where integers number its choices."""
    native = {**unlisted, **config}
    for name, value in native.items():
        if isinstance(value, int) and base.space[name].choices:
            native[name] = base.space[name].choices[value]
    return native


@pytest.mark.slow
@pytest.mark.parametrize("adjustment", FINITE, ids=lambda a: a.name)
def test_values_are_those_of_the_whole_table(adjustment):
    base = hbo.load(adjustment.base.name)
    rng = np.random.default_rng(0)
    for benchmark in loaded(adjustment.name):
        for task, whole in zip(benchmark.tasks, base.tasks, strict=True):
            assert task.name == whole.name
            for config in (benchmark.space.sample(rng) for _ in range(100)):
                native = natively(config, base, adjustment.unlisted)
                assert task.evaluate(config) == whole.evaluate(native)


@pytest.mark.slow
@pytest.mark.parametrize("adjustment", FINITE, ids=lambda a: a.name)
def test_best_values_are_optima(adjustment):
    for benchmark in (b for b in loaded(adjustment.name) if b.space.size < 5000):
        choices = [
            p.choices or [p.value(v) for v in np.arange(p.lower, p.upper + 1)]
            for p in benchmark.space.parameters
        ]
        configs = [dict(zip(benchmark.space.names, c, strict=True)) for c in product(*choices)]
        for task in benchmark.tasks:
            assert task.regret(task.evaluate_many(configs)).min() == 0


@pytest.mark.slow
@pytest.mark.parametrize("adjustment", ADJUSTMENTS.values(), ids=lambda a: a.name)
def test_both_conform(adjustment, executor):
    for benchmark in loaded(adjustment.name):
        check_benchmark(benchmark, executor=executor)


@pytest.mark.parametrize("adjustment", FINITE, ids=lambda a: a.name)
def test_repeats_are_those_of_both(adjustment):
    repeat = hbo.load(adjustment.name, surrogate="repeat-1")
    assert repeat.previous is not None and repeat.previous.surrogate == "repeat-1"
    if adjustment.name.startswith("nas"):  # the new space is the whole one
        best = [task.best_value for task in hbo.load("nas201").tasks]
        assert [task.best_value for task in hbo.load(adjustment.name).tasks] == best


@pytest.mark.parametrize("adjustment", SEARCHED, ids=lambda a: a.name)
def test_artifacts_say_what_the_tables_say(adjustment):
    assert adjustment.artifact is not None
    assert read_definition(adjustment.artifact) == adjustment.definition(Steps.STEP_2)
    card = read_card(adjustment.artifact)
    assert card.benchmark == adjustment.name
    assert [f.name for f in card.figures] == list(adjustment.tasks)


@pytest.mark.slow
@pytest.mark.parametrize("adjustment", SEARCHED, ids=lambda a: a.name)
def test_values_are_those_of_the_flows_forest(adjustment):
    base = hbo.load(adjustment.base.name, surrogate="forest")
    rng = np.random.default_rng(0)
    for benchmark in loaded(adjustment.name):
        for config in (benchmark.space.sample(rng) for _ in range(100)):
            row = unchecked_row(base.space, {**adjustment.unlisted, **config})
            for task in benchmark.tasks[::4]:
                whole = base.task(task.name)
                assert task.evaluate(config) == whole._surrogate.predict_one(row, whole.index)


def unchecked_row(space: hbo.SearchSpace, config: Config) -> np.ndarray:
    """Code a configuration whose numbers may lie beyond the bounds of the space."""
    row = space.row(clipped(space, config))
    for j, parameter in enumerate(space.parameters):
        if not (parameter.choices or np.isnan(row[j])):
            row[j] = float(config[parameter.name])
    return row


@pytest.mark.parametrize("name", ["xgb-a", "xgb-b"])
def test_nothing_of_the_data_has_a_value_too(name):
    for benchmark in loaded(name):
        config = benchmark.space.sample(np.random.default_rng(0)) | {"subsample": 0.0}
        assert all(0 <= task.evaluate(config) <= 1 for task in benchmark.tasks)


@pytest.mark.parametrize("name", ["svm-b", pytest.param("xgb-a", marks=pytest.mark.slow)])
def test_a_wider_search_space_has_no_worse_best_value(name):
    before, after = loaded(name)
    for old, new in zip(before.tasks, after.tasks, strict=True):
        assert old.best_value is not None and new.best_value is not None
        assert new.best_value >= old.best_value
