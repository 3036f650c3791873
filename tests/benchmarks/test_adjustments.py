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
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.benchmarks.tabular import EDGES, FCNET_TABLES
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.space import Kind
from hpobench_ordered.surrogates.bundle import read_card, read_definition
from hpobench_ordered.testing import check_benchmark


@pytest.fixture(scope="module")
def other_process():
    """A second process: benchmarks must give the same values there as in this one."""
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

TABLE_OF_ADJUSTMENT = {
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

NAME_OF_PRINTED_HYPERPARAMETER = {
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
VALUE_OF_PRINTED_TEXT = {
    "ReLu": "relu",
    "Constant": "const",
    "Cosine": "cosine",
    "Radial": "radial",
    "Polynomial": "polynomial",
    "Tree": "gbtree",
}
"""Values in this package, by those in the tables; others are the same, or numbers."""
LINEAR_VALUE_OF_HYPERPARAMETER = {"kernel": "linear", "booster": "gblinear"}
"""What "Linear" is called in this package, by hyperparameter."""


@dataclass(frozen=True)
class TableLine:
    """A line of a table in this package's terms."""

    name: str
    allowed: tuple[Value, Value] | frozenset[Value] | Value
    """Bounds, choices, or a fixed value."""
    is_integer: bool = False
    is_log: bool = False


def read_cells(table: str) -> list[list[str]]:
    """Read the cells of a printed table, "cell | cell | ...", line by line without the heading."""
    _, *rows = table.strip().splitlines()
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def parse_value(text: str, name: str) -> Value:
    """Parse a printed value: a number, or a text, which may have another name in this package."""
    # The only text whose name in this package depends on the hyperparameter.
    if text == "Linear":
        return LINEAR_VALUE_OF_HYPERPARAMETER[name]
    is_number = re.fullmatch(r"[\d.]+", text)
    if is_number:
        return float(text)
    # Texts that are not listed have the same name in this package.
    return VALUE_OF_PRINTED_TEXT.get(text, text)


def parse_bound(text: str) -> float:
    """Parse a printed number such as "1" or "2^-10"."""
    base, _, exponent = text.partition("^")
    return float(base) ** float(exponent or 1)


def parse_line(hyperparameter: str, allowed: str, prior: str) -> TableLine:
    """Parse a printed line: a hyperparameter, the values it is allowed, and its prior.

    Allowed are integers "{0, ..., 3}", an interval "[2^-10, 1]", choices "{ReLu, tanh}", or a
    single value.
    """
    name = NAME_OF_PRINTED_HYPERPARAMETER.get(hyperparameter, hyperparameter.lower())

    integers = re.fullmatch(r"\{(\d+), \.\.\., (\d+)\}", allowed)
    if integers:
        assert prior == "Uniform"
        lower, upper = integers.groups()
        return TableLine(name, (float(lower), float(upper)), is_integer=True)

    interval = re.fullmatch(r"\[(\S+), (\S+)\]", allowed)
    if interval:
        assert prior in ("Uniform", "Log-uniform")
        lower, upper = interval.groups()
        bounds = (parse_bound(lower), parse_bound(upper))
        return TableLine(name, bounds, is_log=prior == "Log-uniform")

    is_list_of_choices = allowed.startswith("{")
    if is_list_of_choices:
        texts = allowed.strip("{}").split(", ")
        choices = frozenset(parse_value(text, name) for text in texts)
        return TableLine(name, choices)

    return TableLine(name, parse_value(allowed, name))


def describe_space(space: hbo.SearchSpace) -> list[TableLine]:
    """Describe a search space by the lines of a table: its fixed values and its hyperparameters."""
    lines = [TableLine(name, value) for name, value in space.constants.items()]
    for parameter in space.parameters:
        assert parameter.kind is not Kind.ORDINAL  # which a table has no way to print
        if parameter.choices:
            lines.append(TableLine(parameter.name, frozenset(parameter.choices)))
        else:
            bounds = (parameter.lower, parameter.upper)
            is_integer = parameter.kind is Kind.INTEGER
            lines.append(TableLine(parameter.name, bounds, is_integer, parameter.log))
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
@pytest.mark.parametrize(("step", "digit_of_step"), [(Steps.STEP_1, "1"), (Steps.STEP_2, "2")])
def test_search_space_is_the_printed_table(adjustment, step, digit_of_step):
    """Each adjustment has a table in the paper, whose lines name the steps that they hold for.

    Step 1 is the search space before the adjustment, step 2 the one after it.
    """
    expected_lines = []
    printed_table = TABLE_OF_ADJUSTMENT[adjustment.name]
    for steps_of_line, hyperparameter, allowed, prior in read_cells(printed_table):
        if digit_of_step in steps_of_line:
            expected_lines.append(parse_line(hyperparameter, allowed, prior))

    space = adjustment.make_space(step)

    # Counters ignore the order of lines.
    assert Counter(describe_space(space)) == Counter(expected_lines)
    assert not space.conditions


# Table 1 has these names the other way round than tables 5 and 6, which are followed.
NAME_IN_LATER_TABLES = {"NAS-A": "NAS-B", "NAS-B": "NAS-A"}


@pytest.mark.parametrize(("name", "old_dimension", "new_dimension", "tasks"), read_cells(TABLE_1))
def test_sizes_are_those_of_table_1(name, old_dimension, new_dimension, tasks):
    """A line of table 1: a benchmark's numbers of hyperparameters and of tasks, as texts."""
    # Table 1 swaps the names NAS-A and NAS-B of the other tables, which this package has.
    own_name = NAME_IN_LATER_TABLES.get(name, name).lower()
    adjustment = ADJUSTMENTS[own_name]

    space_before = adjustment.make_space(Steps.STEP_1)
    space_after = adjustment.make_space(Steps.STEP_2)

    assert space_before.dimension == int(old_dimension)
    assert space_after.dimension == int(new_dimension)
    assert len(adjustment.define(Steps.STEP_2).tasks) == int(tasks)


@pytest.mark.parametrize(("hyperparameter", "values"), read_cells(TABLE_2))
def test_choices_are_in_order_of_table_2(hyperparameter, values):
    """FCN-A and FCN-B number the choices of `fcnet`: 0 is the first value of a line of table 2.

    A name with "{1, 2}" stands for two hyperparameters, of layer 1 and of layer 2.
    """
    printed_values = tuple(float(value) for value in values.strip("()").split(","))
    choices_of_fcnet = dict(FCNET_TABLES.choices)

    printed_names = {hyperparameter.replace("{1, 2}", layer) for layer in ("1", "2")}
    for printed_name in printed_names:
        name = NAME_OF_PRINTED_HYPERPARAMETER[printed_name]
        assert choices_of_fcnet[name] == printed_values


# -- benchmarks ------------------------------------------------------------------------------------


@EVERY_ADJUSTMENT
def test_both_steps_have_same_tasks(adjustment):
    """An adjustment changes the search space alone, neither the tasks nor the objective."""
    before = adjustment.define(Steps.STEP_1)

    after = benchmark_spec(adjustment.name).define()

    assert after.tasks == before.tasks
    assert after.objective == before.objective


@EVERY_ADJUSTMENT
def test_old_benchmark_is_not_registered(adjustment):
    """The benchmark before an adjustment has no name of its own: it is found as `previous` only."""
    with pytest.raises(UnknownNameError):
        benchmark_spec(f"{adjustment.name}-old")


def load_both(name: str) -> tuple[hbo.Benchmark, hbo.Benchmark]:
    """Load the benchmarks before and after an adjustment, by the name of the one after it."""
    after = hbo.load(name)
    assert after.previous is not None
    return after.previous, after


def sample_configs(space: hbo.SearchSpace) -> list[Config]:
    """Sample a hundred configurations."""
    rng = np.random.default_rng(0)
    return [space.sample(rng) for _ in range(100)]


def translate_for_base(config: Config, base: hbo.Benchmark, unlisted: Config) -> Config:
    """Translate a configuration of an adjusted benchmark into the one of its base.

    `unlisted` holds the fixed values of the hyperparameters that the paper's table does not list.
    An integer may stand for a choice of the base, which it numbers from 0.
    """
    translated = {**unlisted, **config}
    for name, value in translated.items():
        choices = base.space[name].choices
        is_number_of_choice = isinstance(value, int) and choices
        if is_number_of_choice:
            translated[name] = choices[value]
    return translated


@pytest.mark.slow
@EVERY_FINITE_ADJUSTMENT
def test_values_are_those_of_base_table(adjustment):
    """These adjustments look values up in the tables of `fcnet` or `nas201`, their base."""
    base = hbo.load(adjustment.base.name)
    # The paper's table does not list these hyperparameters of the base: they are fixed.
    unlisted = adjustment.unlisted
    for benchmark in load_both(adjustment.name):
        configs = sample_configs(benchmark.space)
        base_configs = [translate_for_base(config, base, unlisted) for config in configs]

        for task, base_task in zip(benchmark.tasks, base.tasks, strict=True):
            assert task.name == base_task.name
            expected = [base_task.evaluate(config) for config in base_configs]
            assert [task.evaluate(config) for config in configs] == expected


def list_all_configs(space: hbo.SearchSpace) -> list[Config]:
    """List all configurations of a space whose hyperparameters are integers or choices."""
    values_of_parameters = []
    for parameter in space.parameters:
        if parameter.choices:
            values_of_parameters.append(parameter.choices)
        else:
            integers = np.arange(parameter.lower, parameter.upper + 1)
            values_of_parameters.append([parameter.value(integer) for integer in integers])

    combinations = product(*values_of_parameters)
    return [dict(zip(space.names, combination, strict=True)) for combination in combinations]


@pytest.mark.slow
@EVERY_FINITE_ADJUSTMENT
def test_best_values_are_optima(adjustment):
    """Of all configurations, the best has exactly the value that is stored as the best.

    Search spaces of 5000 and more configurations would take too long.
    """
    for benchmark in load_both(adjustment.name):
        if benchmark.space.size >= 5000:
            continue

        configs = list_all_configs(benchmark.space)
        for task in benchmark.tasks:
            regrets = task.regret(task.evaluate_many(configs))
            assert regrets.min() == 0


@pytest.mark.slow
@EVERY_ADJUSTMENT
def test_both_benchmarks_conform(adjustment, other_process):
    """Both benchmarks, before and after, pass `check_benchmark`, the public check."""
    for benchmark in load_both(adjustment.name):
        check_benchmark(benchmark, executor=other_process)


def test_surrogate_is_chosen_for_both():
    """A surrogate that is asked for, here "repeat-1", is used before and after the adjustment."""
    after = hbo.load("nas-a", surrogate="repeat-1")

    assert after.surrogate == "repeat-1"
    assert after.previous is not None
    assert after.previous.surrogate == "repeat-1"


@pytest.mark.parametrize("name", ["nas-a", "nas-b"])
def test_nas_space_has_optimum_of_whole_table(name):
    """After the adjustment the space holds all architectures of `nas201`, so also the best."""
    best_values = [task.best_value for task in hbo.load(name).tasks]

    best_values_of_nas201 = [task.best_value for task in hbo.load("nas201").tasks]
    assert best_values == best_values_of_nas201


@EVERY_SEARCHED_ADJUSTMENT
def test_artifacts_describe_the_adjustment(adjustment):
    """An artifact stores the definition and a card, which has figures of each task."""
    assert adjustment.artifact is not None

    definition = read_definition(adjustment.artifact)
    card = read_card(adjustment.artifact)

    # Step 2 is after the adjustment.
    assert definition == adjustment.define(Steps.STEP_2)
    assert card.benchmark == adjustment.name
    tasks_on_card = [figures_of_task.name for figures_of_task in card.figures]
    assert tasks_on_card == list(adjustment.tasks)


@pytest.mark.slow
@EVERY_SEARCHED_ADJUSTMENT
def test_values_are_those_of_base_forest(adjustment):
    """Values are the predictions of the base benchmark's forest.

    An adjusted space may be wider than the base's, whose `evaluate` refuses numbers beyond its
    bounds. Its forest predicts for any numbers, so that it is asked directly.
    """
    base = hbo.load(adjustment.base.name, surrogate="forest")
    # The paper's table does not list these hyperparameters of the base: they are fixed.
    unlisted = adjustment.unlisted
    for benchmark in load_both(adjustment.name):
        every_fourth_task = benchmark.tasks[::4]  # to save time
        for config in sample_configs(benchmark.space):
            base_row = code_without_check(base.space, {**unlisted, **config})
            for task in every_fourth_task:
                base_task = base.task(task.name)
                value_of_forest = base_task._surrogate.predict_one(base_row, base_task.index)
                assert task.evaluate(config) == value_of_forest


def code_without_check(space: hbo.SearchSpace, config: Config) -> np.ndarray:
    """Code a configuration as numbers, (d,), some of which may lie beyond the space's bounds."""
    row = space.row(clip_config(space, config))
    # Put the numbers back that were clipped to the bounds.
    for column, parameter in enumerate(space.parameters):
        is_active = not np.isnan(row[column])
        if is_active and not parameter.choices:
            row[column] = float(config[parameter.name])
    return row


@pytest.mark.parametrize("name", ["xgb-a", "xgb-b"])
def test_subsample_of_nothing_has_an_auc(name):
    """The paper's range begins at a share of 0, on which no model was ever trained."""
    for benchmark in load_both(name):
        random_config = benchmark.space.sample(np.random.default_rng(0))
        config = random_config | {"subsample": 0.0}

        for task in benchmark.tasks:
            auc = task.evaluate(config)
            assert 0 <= auc <= 1
