"""The adjusted search spaces against the paper's tables, written out here as they are printed."""

import re
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context

import numpy as np
import pytest
from by_hand import clip_config

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, Value
from hpobench_ordered.benchmarks._adjustment import Steps
from hpobench_ordered.benchmarks.adjustments import FINITE, SEARCHED
from hpobench_ordered.benchmarks.tabular import EDGES, FCNET_TABLES
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates.bundle import read_card, read_definition
from hpobench_ordered.testing import check_benchmark


@pytest.fixture(scope="module")
def executor():
    """A process of its own, in which benchmarks must have the same values."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


# Tables of the paper are written as "cell | cell | ...", after a line of headings.
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
"""Names of hyperparameters in this package, by those in the tables; others are in lower case."""
VALUES = {
    "ReLu": "relu",
    "Constant": "const",
    "Cosine": "cosine",
    "Radial": "radial",
    "Polynomial": "polynomial",
    "Tree": "gbtree",
}
"""Values in this package, by those in the tables; others are the same, or numbers."""
LINEAR = {"kernel": "linear", "booster": "gblinear"}
"""What "Linear" means, by hyperparameter."""


@dataclass(frozen=True)
class Line:
    """A line of a table in this package's terms."""

    name: str
    allowed: tuple[Value, Value] | frozenset[Value] | Value
    """Bounds, choices, or a fixed value."""
    is_integer: bool = False
    is_log: bool = False


def read_cells(table: str) -> list[list[str]]:
    """Cells of a table without its heading."""
    _, *rows = table.strip().splitlines()
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def parse_value(text: str, name: str) -> Value:
    """The value of a hyperparameter, given its name: a number, or what this package calls it."""
    # The one text whose meaning depends on the hyperparameter.
    if text == "Linear":
        return LINEAR[name]
    is_number = re.fullmatch(r"[\d.]+", text)
    if is_number:
        return float(text)
    return VALUES.get(text, text)


def parse_bound(text: str) -> float:
    """The number of a text such as "1" or "2^-10"."""
    base, _, exponent = text.partition("^")
    return float(base) ** float(exponent or 1)


def parse_line(hyperparameter: str, allowed: str, prior: str) -> Line:
    """Parse integers "{0, ..., 3}", an interval "[2^-10, 1]", choices "{ReLu, tanh}" or a value."""
    name = NAMES.get(hyperparameter, hyperparameter.lower())

    integers = re.fullmatch(r"\{(\d+), \.\.\., (\d+)\}", allowed)
    if integers:
        assert prior == "Uniform"
        lower, upper = integers.groups()
        return Line(name, (float(lower), float(upper)), is_integer=True)

    interval = re.fullmatch(r"\[(\S+), (\S+)\]", allowed)
    if interval:
        assert prior in ("Uniform", "Log-uniform")
        lower, upper = interval.groups()
        bounds = (parse_bound(lower), parse_bound(upper))
        return Line(name, bounds, is_log=prior == "Log-uniform")

    if allowed.startswith("{"):
        choices = allowed.strip("{}").split(", ")
        return Line(name, frozenset(parse_value(choice, name) for choice in choices))
    return Line(name, parse_value(allowed, name))


def describe_space(space: hbo.SearchSpace) -> list[Line]:
    """The lines of a table that describe a search space."""
    lines = [Line(name, value) for name, value in space.constants.items()]
    for parameter in space.parameters:
        assert parameter.kind is not hbo.Kind.ORDINAL
        if parameter.choices:
            lines.append(Line(parameter.name, frozenset(parameter.choices)))
        else:
            bounds = (parameter.lower, parameter.upper)
            is_integer = parameter.kind is hbo.Kind.INTEGER
            lines.append(Line(parameter.name, bounds, is_integer, parameter.log))
    return lines


ADJUSTMENTS = {adjustment.name: adjustment for adjustment in (*FINITE, *SEARCHED)}
EVERY_ADJUSTMENT = pytest.mark.parametrize(
    "adjustment", ADJUSTMENTS.values(), ids=lambda adjustment: adjustment.name
)
EVERY_FINITE_ADJUSTMENT = pytest.mark.parametrize(
    "adjustment", FINITE, ids=lambda adjustment: adjustment.name
)
EVERY_SEARCHED_ADJUSTMENT = pytest.mark.parametrize(
    "adjustment", SEARCHED, ids=lambda adjustment: adjustment.name
)


@EVERY_ADJUSTMENT
@pytest.mark.parametrize(("step", "number"), [(Steps.STEP_1, "1"), (Steps.STEP_2, "2")])
def test_search_spaces_are_the_tables(adjustment, step, number):
    """Step 1 is before the adjustment, step 2 after it; a line names the steps it holds for."""
    expected = []
    for steps, hyperparameter, allowed, prior in read_cells(TABLES[adjustment.name]):
        if number in steps:
            expected.append(parse_line(hyperparameter, allowed, prior))

    space = adjustment.space(step)

    # In any order.
    assert Counter(describe_space(space)) == Counter(expected)
    assert not space.conditions


@EVERY_ADJUSTMENT
def test_adjustments_name_their_table(adjustment):
    # Tables 3 to 10 of the paper, in their order.
    assert adjustment.table == 3 + list(TABLES).index(adjustment.name)


# Table 1 has these names the other way round than tables 5 and 6, which are followed.
SWAPPED = {"NAS-A": "NAS-B", "NAS-B": "NAS-A"}


@pytest.mark.parametrize(("name", "old_dimension", "new_dimension", "tasks"), read_cells(TABLE_1))
def test_sizes_are_those_of_table_1(name, old_dimension, new_dimension, tasks):
    """Numbers of hyperparameters before and after the adjustment, and of tasks; table 1 swaps the
    names NAS-A and NAS-B.
    """
    adjustment = ADJUSTMENTS[SWAPPED.get(name, name).lower()]

    assert adjustment.space(Steps.STEP_1).dimension == int(old_dimension)
    assert adjustment.space(Steps.STEP_2).dimension == int(new_dimension)
    assert len(adjustment.definition(Steps.STEP_2).tasks) == int(tasks)


@pytest.mark.parametrize(("hyperparameter", "values"), read_cells(TABLE_2))
def test_codes_are_those_of_table_2(hyperparameter, values):
    """FCN-A and FCN-B have integers, which stand for the choices of `fcnet` in this order."""
    expected = tuple(float(value) for value in values.strip("()").split(","))
    choices_of_tables = dict(FCNET_TABLES.choices)

    # "{1, 2}" in a name stands for two hyperparameters, one a layer.
    layers = ("1", "2") if "{1, 2}" in hyperparameter else ("",)
    for layer in layers:
        name = NAMES[hyperparameter.replace("{1, 2}", layer)]
        assert choices_of_tables[name] == expected


# -- benchmarks ------------------------------------------------------------------------------------


@EVERY_ADJUSTMENT
def test_previous_spec_is_named_old(adjustment):
    """The previous benchmark is the one before the adjustment."""
    spec = benchmark_spec(adjustment.name)

    assert spec.previous is not None
    assert spec.previous.name == f"{adjustment.name}-old"
    assert spec.previous.version == spec.version


@EVERY_ADJUSTMENT
def test_previous_spec_has_same_surrogates(adjustment):
    """They are some of the surrogates of the base benchmark, which is evaluated by both."""
    spec = benchmark_spec(adjustment.name)

    assert spec.previous is not None
    names = [option.name for option in spec.surrogates]
    assert [option.name for option in spec.previous.surrogates] == names
    assert set(names) <= {option.name for option in adjustment.base.surrogates}


@EVERY_ADJUSTMENT
def test_both_steps_have_same_tasks(adjustment):
    before = adjustment.definition(Steps.STEP_1)

    after = benchmark_spec(adjustment.name).define()

    assert after.tasks == before.tasks
    assert after.objective == before.objective


@EVERY_ADJUSTMENT
def test_tasks_are_those_of_base(adjustment):
    """All or some of the tasks of the benchmark whose surrogates are evaluated."""
    base_tasks = adjustment.base.define().tasks

    tasks = benchmark_spec(adjustment.name).define().tasks

    assert all(task in base_tasks for task in tasks)


@EVERY_ADJUSTMENT
def test_old_benchmark_is_not_registered(adjustment):
    """It exists only as the previous one of the adjusted benchmark."""
    with pytest.raises(UnknownNameError):
        benchmark_spec(f"{adjustment.name}-old")


def load_both(name: str) -> tuple[hbo.Benchmark, hbo.Benchmark]:
    """The benchmarks before and after an adjustment, given the name of the latter."""
    after = hbo.load(name)
    assert after.previous is not None
    return after.previous, after


def sample_configs(space: hbo.SearchSpace) -> list[Config]:
    """A hundred random configurations."""
    rng = np.random.default_rng(0)
    return [space.sample(rng) for _ in range(100)]


def decode_for_base(config: Config, base: hbo.Benchmark, unlisted: Config) -> Config:
    """The configuration of the base benchmark that a configuration of an adjusted one stands for.

    Hyperparameters that are not listed have fixed values; integers are places among the choices.
    """
    decoded = {**unlisted, **config}
    for name, value in decoded.items():
        choices = base.space[name].choices
        if isinstance(value, int) and choices:
            decoded[name] = choices[value]
    return decoded


@pytest.mark.slow
@EVERY_FINITE_ADJUSTMENT
def test_values_are_those_of_base_table(adjustment):
    base = hbo.load(adjustment.base.name)
    for benchmark in load_both(adjustment.name):
        configs = sample_configs(benchmark.space)
        base_configs = [decode_for_base(config, base, adjustment.unlisted) for config in configs]

        for task, base_task in zip(benchmark.tasks, base.tasks, strict=True):
            assert task.name == base_task.name
            expected = [base_task.evaluate(config) for config in base_configs]
            assert [task.evaluate(config) for config in configs] == expected


def list_all_configs(space: hbo.SearchSpace) -> list[Config]:
    """All configurations of a space of integers and choices."""
    values_of_parameters = []
    for parameter in space.parameters:
        integers = np.arange(parameter.lower, parameter.upper + 1)
        values = parameter.choices or [parameter.value(number) for number in integers]
        values_of_parameters.append(values)
    combinations = product(*values_of_parameters)
    return [dict(zip(space.names, combination, strict=True)) for combination in combinations]


@pytest.mark.slow
@EVERY_FINITE_ADJUSTMENT
def test_best_values_are_optima(adjustment):
    """The regret, the distance from the best value, is 0 at best and never negative."""
    for benchmark in load_both(adjustment.name):
        if benchmark.space.size >= 5000:  # too many to evaluate here
            continue
        configs = list_all_configs(benchmark.space)
        for task in benchmark.tasks:
            regrets = task.regret(task.evaluate_many(configs))
            assert regrets.min() == 0


@pytest.mark.slow
@EVERY_ADJUSTMENT
def test_both_benchmarks_conform(adjustment, executor):
    """They pass the public checks of benchmarks, also in another process."""
    for benchmark in load_both(adjustment.name):
        check_benchmark(benchmark, executor=executor)


@EVERY_FINITE_ADJUSTMENT
def test_surrogate_is_chosen_for_both(adjustment):
    """Surrogates of tables are the mean over repeats of a training, or a single repeat."""
    after = hbo.load(adjustment.name, surrogate="repeat-1")

    assert after.surrogate == "repeat-1"
    assert after.previous is not None
    assert after.previous.surrogate == "repeat-1"


@pytest.mark.parametrize("name", ["nas-a", "nas-b"])
def test_new_nas_spaces_have_optimum_of_table(name):
    """After the adjustment, all architectures of NAS-Bench-201 are in the space."""
    best_values = [task.best_value for task in hbo.load(name).tasks]

    best_values_of_table = [task.best_value for task in hbo.load("nas201").tasks]
    assert best_values == best_values_of_table


@EVERY_SEARCHED_ADJUSTMENT
def test_artifacts_describe_the_adjustment(adjustment):
    assert adjustment.artifact is not None

    definition = read_definition(adjustment.artifact)
    card = read_card(adjustment.artifact)

    # Step 2 is after the adjustment.
    assert definition == adjustment.definition(Steps.STEP_2)
    assert card.benchmark == adjustment.name
    assert [quality.name for quality in card.figures] == list(adjustment.tasks)


@pytest.mark.slow
@EVERY_SEARCHED_ADJUSTMENT
def test_values_are_those_of_base_forest(adjustment):
    """An adjusted space may be wider than that of the base, whose own checks would refuse it."""
    base = hbo.load(adjustment.base.name, surrogate="forest")
    for benchmark in load_both(adjustment.name):
        for config in sample_configs(benchmark.space):
            # Hyperparameters that are not listed have fixed values.
            row = code_without_check(base.space, {**adjustment.unlisted, **config})
            for task in benchmark.tasks[::4]:  # some of them, to save time
                base_task = base.task(task.name)
                expected = base_task._surrogate.predict_one(row, base_task.index)
                assert task.evaluate(config) == expected


def code_without_check(space: hbo.SearchSpace, config: Config) -> np.ndarray:
    """Code a configuration, (d,), whose numbers may lie beyond the bounds of the space."""
    row = space.row(clip_config(space, config))
    # Put the numbers back that were clipped to the bounds.
    for column, parameter in enumerate(space.parameters):
        is_active = not np.isnan(row[column])
        if is_active and not parameter.choices:
            row[column] = float(config[parameter.name])
    return row


@pytest.mark.parametrize("name", ["xgb-a", "xgb-b"])
def test_subsample_of_nothing_has_a_value(name):
    """The paper's range includes a share of 0, of which the surrogate has seen no training."""
    for benchmark in load_both(name):
        config = benchmark.space.sample(np.random.default_rng(0)) | {"subsample": 0.0}

        for task in benchmark.tasks:
            assert 0 <= task.evaluate(config) <= 1


@pytest.mark.parametrize("name", ["svm-b", pytest.param("xgb-a", marks=pytest.mark.slow)])
def test_wider_space_has_no_worse_optimum(name):
    """These spaces contain those before the adjustment, and AUCs are maximised."""
    before, after = load_both(name)

    for old_task, new_task in zip(before.tasks, after.tasks, strict=True):
        assert new_task.best_value >= old_task.best_value
