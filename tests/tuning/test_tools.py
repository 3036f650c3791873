"""Other tools' optimisers as methods: the contract, and runs of the tools by themselves.

Tests of a tool that is not installed are skipped; all are in the extra `compare`.
"""

import importlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import optuna
import pytest

from hpobench_ordered import Evaluations, Method, MethodSpec, SearchSpace
from hpobench_ordered._typing import Config
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.methods.wrapping.factory import SEED_LIMIT
from hpobench_ordered.testing import check_degenerate_input, check_method
from hpobench_ordered.testing.toy import (
    conditional_space,
    integer_space,
    numeric_space,
    random_history,
    toy_benchmark,
)
from hpobench_ordered.tuning.tools.base import EXTRA, describe_method, list_best_configs

METHODS = (
    "optuna:TPE",
    "optuna:GP",
    "optuna:TPE_BEST_FIRST",
    "skopt:GP",
    "smac:HPO",
    "botorch:GP",
    "botorch:MULTI_TASK",
)
PACKAGES = {"optuna:GP": "torch", "skopt:GP": "skopt", "smac:HPO": "smac"}
"""What a method needs besides its own module's package and those of the tests."""

SLOW = {"optuna:GP", "optuna:TPE", "optuna:TPE_BEST_FIRST"}
"""Methods that pass the checks within seconds; the others take minutes."""
MOST_ITERATIONS = 20  # of a fit to several tasks, which would take a minute in a check


def load_spec(name: str) -> MethodSpec:
    """Load a method, "module:NAME"; the test is skipped if its tool is not installed."""
    module, _, attribute = name.partition(":")
    package = PACKAGES.get(name, module)
    pytest.importorskip(package, reason=f"{package} is not installed: pip install -e '.[compare]'")
    tool = importlib.import_module(f"hpobench_ordered.tuning.tools.{module}")
    spec = getattr(tool, attribute)
    assert isinstance(spec, MethodSpec)
    return spec


def make_method(
    spec: MethodSpec, space: SearchSpace, *, seed: int = 0, history=(), budget: int = 12
) -> Method:
    return spec.method(
        space=space,
        rng=np.random.default_rng(seed),
        history=history,
        context={},
        budget=budget,
    )


def make_task_and_history(space: SearchSpace, *, tasks: int):
    """Make the last task of a toy benchmark, and random evaluations of those before it."""
    *earlier_tasks, task = toy_benchmark(space, tasks=tasks).tasks
    return task, random_history(earlier_tasks, seed=0)


def draw_seed(seed: int) -> int:
    """The seed that a method with this generator gives to its tool."""
    return int(np.random.default_rng(seed).integers(SEED_LIMIT))


def list_suggestions(method: Method, task, trials: int) -> list[Config]:
    """Run a method for some trials, and return its configurations."""
    configs = []
    for _ in range(trials):
        config = method.ask()
        configs.append(dict(config))
        method.tell(config, task.evaluate(config))
    return configs


def mark_by_time(name: str) -> object:
    """Mark the checks of a method as slow or as long."""
    return pytest.param(name, marks=pytest.mark.slow if name in SLOW else pytest.mark.long)


@pytest.fixture
def quick_fits(monkeypatch):
    """Stop BoTorch's fits early: to random evaluations of several tasks they take a minute."""
    botorch = pytest.importorskip(
        "botorch", reason="botorch is not installed: pip install -e '.[compare]'"
    )
    from hpobench_ordered.tuning.tools import botorch as tool

    few_iterations = {"options": {"maxiter": MOST_ITERATIONS}}
    fit = partial(botorch.fit_gpytorch_mll, optimizer_kwargs=few_iterations)
    monkeypatch.setattr(tool, "fit_gpytorch_mll", fit)


@pytest.mark.parametrize(
    "name", [mark_by_time(name) for name in METHODS if name != "botorch:MULTI_TASK"]
)
@pytest.mark.filterwarnings("ignore")  # the tools' own
def test_method_keeps_contract(name):
    check_method(load_spec(name), time_limit=None)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_multi_task_keeps_contract(quick_fits):
    """The fits are shortened, so that another process, in which they are not, is not tried."""
    with ThreadPoolExecutor(1) as this_process:
        check_method(load_spec("botorch:MULTI_TASK"), time_limit=None, executor=this_process)


@pytest.mark.parametrize("name", ["optuna:TPE", "optuna:TPE_BEST_FIRST"])
def test_method_survives_degenerate_input(name):
    check_degenerate_input(load_spec(name))


@pytest.mark.long
@pytest.mark.parametrize("name", ["smac:HPO", "skopt:GP", "botorch:GP"])
@pytest.mark.parametrize("loss", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore")
def test_method_goes_on_after_failures(name, loss):
    """The first four of twelve evaluations fail, and every other one later."""
    task, _ = make_task_and_history(conditional_space(), tasks=1)
    method = make_method(load_spec(name), task.space)

    for trial in range(12):
        config = method.ask()
        task.space.validate(config)
        has_failed = trial < 4 or trial % 2 == 0
        method.tell(config, loss if has_failed else task.evaluate(config))

    assert method.fallbacks == 0


@pytest.mark.parametrize(
    "name", [mark_by_time(name) for name in METHODS if not name.startswith("botorch")]
)
@pytest.mark.filterwarnings("ignore")
def test_same_seed_gives_same_suggestions(name):
    """Two methods of one seed agree in all trials, and one of another seed does not."""
    spec = load_spec(name)
    task, history = make_task_and_history(conditional_space(), tasks=2)

    first, second, other = (
        list_suggestions(make_method(spec, task.space, seed=seed, history=history), task, 12)
        for seed in (0, 0, 1)
    )

    assert first == second
    assert first != other


def test_best_of_last_ten_tasks_is_first():
    """After twelve tasks, the best of the last ten are suggested, the latest first."""
    task, history = make_task_and_history(numeric_space(), tasks=13)
    expected = []
    for evaluations in reversed(history[2:]):
        row = evaluations.losses.argmin()
        expected += task.space.configs(evaluations.values[[row]])

    method = make_method(load_spec("optuna:TPE_BEST_FIRST"), task.space, history=history)

    assert list_suggestions(method, task, 10) == expected


def test_equal_configurations_are_suggested_once():
    """Only two configurations exist, so that most of ten tasks have the same best one."""
    _, history = make_task_and_history(integer_space(2), tasks=11)
    configs = list_best_configs(history, 10)
    assert 1 <= len(configs) <= 2
    assert len(configs) == len({config["n"] for config in configs})


def test_failed_tasks_have_no_best_configuration():
    """All evaluations of the last of two tasks failed."""
    space = integer_space(5)
    values = np.array([[1.0], [2.0]])
    succeeded = Evaluations(
        "0", {}, values, np.array([3.0, 1.0]), space=space, direction="minimize"
    )
    failed = Evaluations("1", {}, values, np.full(2, np.nan), space=space, direction="minimize")
    assert list_best_configs([succeeded, failed], 10) == [{"n": 2}]


def test_tpe_suggests_what_a_study_does():
    """Optuna's own loop with the same seed, on the same objective, tries the same 30 points."""
    task, _ = make_task_and_history(numeric_space(), tasks=1)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=draw_seed(0)))

    def evaluate(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -5, 5)
        y = trial.suggest_float("y", 1e-4, 1, log=True)
        return task.evaluate({"x": x, "y": y})

    study.optimize(evaluate, n_trials=30)

    suggestions = list_suggestions(make_method(load_spec("optuna:TPE"), task.space), task, 30)
    assert suggestions == [trial.params for trial in study.trials]


@pytest.mark.long
def test_smac_suggests_what_its_loop_does(tmp_path):
    """SMAC's `optimize` with the same seed, on the same objective, tries the same 12 points.

    SMAC starts its searches in the order of a set, which this package fixes, and so does the test.
    """
    spec = load_spec("smac:HPO")
    from smac import HyperparameterOptimizationFacade, Scenario

    from hpobench_ordered.tuning.tools.smac import LocalSearchInOrder

    task, _ = make_task_and_history(numeric_space(), tasks=1)
    configspace = task.space.to_configspace()
    scenario = Scenario(
        configspace, deterministic=True, n_trials=12, seed=draw_seed(0), output_directory=tmp_path
    )
    maximizer = HyperparameterOptimizationFacade.get_acquisition_maximizer(scenario)
    maximizer._local_search = LocalSearchInOrder(configspace, seed=scenario.seed)
    evaluated = []

    def evaluate(config, seed=0):
        evaluated.append(dict(config))
        return task.evaluate(dict(config))

    facade = HyperparameterOptimizationFacade(
        scenario, evaluate, acquisition_maximizer=maximizer, logging_level=False
    )
    facade.optimize()

    suggestions = list_suggestions(make_method(spec, task.space, budget=12), task, 12)
    assert len(suggestions) == 12
    assert [list(config.values()) for config in suggestions] == [
        pytest.approx(list(config.values()), rel=1e-12) for config in evaluated
    ]


@pytest.mark.slow
def test_smac_leaves_no_folder(tmp_path, monkeypatch):
    """Its files are gone while the method is used, so that a killed process leaves none either."""
    spec = load_spec("smac:HPO")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    task, _ = make_task_and_history(numeric_space(), tasks=1)

    method = make_method(spec, task.space)
    list_suggestions(method, task, 5)  # more than the three initial ones

    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_skopt_is_told_defaults_of_inactive():
    """x is inactive for the kind c, and is told with the middle of its range."""
    load_spec("skopt:GP")
    space = conditional_space()
    method = make_method(load_spec("skopt:GP"), space)
    method.tell({"kind": "c", "level": 10, "n": 7, "fixed": "always"}, 1.0)
    assert method._optimizer.Xi == [[2, 1, 7, 0.5]]


@pytest.mark.parametrize("tool", ["smac", "skopt", "botorch"])
def test_missing_package_names_extra(tool, monkeypatch):
    """The module of the methods is imported anew where the tool is not installed."""
    module = f"hpobench_ordered.tuning.tools.{tool}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, tool, None)  # it cannot be imported

    with pytest.raises(MissingExtraError, match=rf"needs the package .*\[{EXTRA}\]"):
        importlib.import_module(module)


def test_optuna_needs_torch_for_gp_only():
    """Optuna's other samplers can be used without PyTorch."""
    from hpobench_ordered.tuning.tools import optuna as tool

    assert [spec.needs for spec in (tool.TPE, tool.GP)] == [(), (f"extra {EXTRA}",)]


def test_source_names_versions_of_packages():
    """The versions are part of the method, so that another version has other results."""
    spec = describe_method("mine", RandomSearch, packages=["optuna", "missing"], summary="")
    assert spec.source == f"optuna {optuna.__version__}, missing (not installed)"
    assert spec.method.version == spec.source
