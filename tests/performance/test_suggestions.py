"""Time of suggestions, beside other libraries' where they are installed; figures with `-s`.

Processor time on one thread, as in the experiment's workers: of making a method with its first
suggestion, which fits what can be fitted beforehand, and of a suggestion after one more result.
What compiles once is not counted.
"""

import time
from dataclasses import dataclass

import numpy as np
import optuna
import pytest

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Task
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods._boosting.model import BoostedTrees
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.methods.registry import list_methods, method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.testing.toy import construct_method, random_history, toy_benchmark

SUGGESTIONS = 15


@dataclass(frozen=True)
class Case:
    """How much a method has to look at, and how long it may take.

    Attributes:
        dimension: Number of hyperparameters.
        tasks: Earlier tasks.
        evaluations: Evaluations of each of them.
        own: Evaluations of the current task.
        first: Seconds until the first suggestion, at most.
        later: Seconds of a suggestion, in the median, at most.
    """

    dimension: int
    tasks: int
    evaluations: int
    own: int
    first: float = np.inf
    later: float = np.inf


NETWORKS = [name for name in list_methods() if name.startswith(("ablr", "abrac"))]
JOINT = ("ablr", "ablr-transfer", "ablr-ctx", "ablr-embeddings")
"""They fit their network again for every suggestion."""
CASES = [
    ("bo", Case(4, 0, 0, 25, later=0.6e-3)),
    ("bo", Case(4, 0, 0, 200, later=20e-3)),
    ("tpe", Case(4, 0, 0, 25, later=0.5e-3)),
    ("tpe", Case(4, 0, 0, 200, later=2e-3)),
    ("ordered-gp", Case(4, 3, 25, 25, later=2e-3)),
    ("ordered-gp", Case(6, 8, 25, 25, later=6e-3)),
    *((name, Case(8, 27, 25, 5, first=0.2)) for name in ("zero-shot", "cts", "dre-ordered")),
    *((name, Case(8, 100, 1000, 5, first=10.0)) for name in ("zero-shot", "cts", "dre-ordered")),
    *((name, Case(5, 29, 100, 25, later=150e-3)) for name in JOINT),
    *((name, Case(5, 29, 100, 25, later=5e-3)) for name in NETWORKS if name not in JOINT),
    ("abrac", Case(5, 29, 100, 25, first=2.0)),
    *((name, Case(7, 10, 50, 10)) for name in ("dist-gp", "manual-gp", "multi-gp")),
]


def make_task_and_history(case: Case) -> tuple[Task, tuple[Evaluations, ...]]:
    """Make the current task, and the history before it."""
    space = SearchSpace([Parameter.number(f"x{j}", 0, 1) for j in range(case.dimension)])
    *earlier, task = toy_benchmark(space, tasks=case.tasks + 1).tasks
    return task, random_history(earlier, seed=0, evaluations=case.evaluations)


def measure_seconds(
    spec: MethodSpec, case: Case, *, suggestions: int = SUGGESTIONS
) -> tuple[float, float]:
    """Measure the CPU seconds of the first suggestion, and of a later one in the median.

    The first includes the construction of the method. Then the method is told random
    configurations, so many that the task has the case's number of evaluations, `own`, when half of
    the later suggestions are made.
    """
    task, history = make_task_and_history(case)
    start = time.process_time()
    method = construct_method(spec, task, history, np.random.default_rng(0))
    first_config = method.ask()
    seconds_of_first = time.process_time() - start

    rng = np.random.default_rng(1)
    n_random = max(case.own - 1 - suggestions // 2, 0)
    random_configs = [task.space.sample(rng) for _ in range(n_random)]
    for config in [first_config, *random_configs]:
        method.tell(config, task.evaluate(config))
    suggest_once(method, task)  # not timed, as it fits a model to all random configurations at once

    seconds = []
    for _ in range(suggestions):
        start = time.process_time()
        config = method.ask()
        seconds.append(time.process_time() - start)
        method.tell(config, task.evaluate(config))
    return seconds_of_first, float(np.median(seconds))


def suggest_once(method: Method, task: Task) -> None:
    """Ask a method for a configuration, and tell it the loss."""
    config = method.ask()
    method.tell(config, task.evaluate(config))


def compile_kernels(spec: MethodSpec, case: Case) -> None:
    """Let a method suggest something like what is timed next, so that all it needs is compiled."""
    measure_seconds(spec, case, suggestions=1)


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Linear algebra on one thread, as in the workers of experiments."""
    with one_thread():
        yield


@pytest.mark.parametrize(("name", "case"), CASES)
def test_suggestions_take_limited_time(name, case):
    """The first suggestion and a later one take at most the seconds of the case."""
    spec = method_spec(name)
    compile_kernels(spec, case)

    first, later = measure_seconds(spec, case)

    print(f"\n{name}, {case}: {first:.3f} s, then {1e3 * later:.2f} ms")
    assert first <= case.first
    assert later <= case.later


@pytest.mark.parametrize("name", ["dist-blr", "manual-blr", "multi-blr"])
def test_time_of_regressions_grows_linearly(name):
    """Five times as many evaluations take five times as long, with room for half as much again."""
    spec = method_spec(name)
    with_few = Case(dimension=7, tasks=10, evaluations=30, own=10)
    with_many = Case(dimension=7, tasks=10, evaluations=150, own=10)

    _, seconds_with_few = measure_seconds(spec, with_few, suggestions=3)
    _, seconds_with_many = measure_seconds(spec, with_many, suggestions=3)

    assert seconds_with_many <= 1.5 * 5 * seconds_with_few


@pytest.mark.filterwarnings("ignore")  # BoTorch's
@pytest.mark.parametrize(("evaluations", "ratio"), [(5, 1), (25, 200), (50, 1), (200, 1)])
def test_beside_botorch(evaluations, ratio):
    """BoTorch takes at least `ratio` times as long with so many evaluations."""
    pytest.importorskip("botorch", reason="BoTorch is not installed: pip install -e '.[compare]'")
    import torch

    from hpobench_ordered.tuning.tools.botorch import BoTorch

    torch.set_num_threads(1)
    without_history = Case(dimension=4, tasks=0, evaluations=0, own=evaluations)

    botorch = MethodSpec("botorch", BoTorch, summary="", source="")

    _, theirs = measure_seconds(botorch, without_history, suggestions=7)
    _, ours = measure_seconds(method_spec("bo"), without_history)

    print(f"\n{evaluations} evaluations: BoTorch takes {1e3 * theirs:.0f} ms, {theirs / ours:.0f}x")
    assert theirs >= ratio * ours


class OptunaTPE(Method):
    """Optuna's TPE, asked and told without this package's adapter."""

    def prepare(self) -> None:
        """Create a study, and tell it all evaluations of earlier tasks as if of this one."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        unit_interval = optuna.distributions.FloatDistribution(0, 1)
        self.distributions = dict.fromkeys(self.space.names, unit_interval)
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        for evaluations in self.history:
            configs = evaluations.space.configs(evaluations.values)
            for config, loss in zip(configs, evaluations.losses.tolist(), strict=True):
                self.tell(config, loss)

    def ask(self):
        return self.study.ask(self.distributions).params

    def tell(self, config, loss):
        """Add the configuration and its loss to the study, as a finished trial."""
        trial = optuna.trial.create_trial(
            params=config, distributions=self.distributions, value=loss
        )
        self.study.add_trial(trial)


@pytest.mark.parametrize(
    ("name", "case", "ratio"),
    [("tpe", Case(4, 0, 0, 25), 1), ("ordered-gp", Case(6, 8, 25, 25), 1 / 1.5)],
)
def test_beside_optuna(name, case, ratio):
    """Optuna's TPE takes at least `ratio` times as long."""
    spec = method_spec(name)
    compile_kernels(spec, case)
    optuna_tpe = MethodSpec("optuna", OptunaTPE, summary="", source="")

    _, theirs = measure_seconds(optuna_tpe, case)
    _, ours = measure_seconds(spec, case)

    print(f"\n{name}: Optuna's TPE takes {1e3 * theirs:.2f} ms, {theirs / ours:.1f} times as long")
    assert theirs >= ratio * ours


def draw_rows(count: int) -> tuple[FloatArray, FloatArray]:
    """Draw inputs, shape (n, 4), and noisy values of a smooth function of two of them, (n,)."""
    rng = np.random.default_rng(0)
    inputs = rng.random((count, 4))
    noise = 0.1 * rng.standard_normal(count)
    return inputs, np.sin(5 * inputs[:, 0]) + 3 * inputs[:, 1] ** 2 + noise


@pytest.mark.parametrize(("rows", "seconds"), [(25, 2e-3), (700, 40e-3), (20_000, 5.0)])
def test_boosted_trees_fit_in_limited_time(benchmark, rows, seconds):
    """The median over rounds counts: fits to fewer rows are shorter, and get more rounds."""
    rounds = max(3, min(200, 20_000 // rows))

    benchmark.pedantic(BoostedTrees.fit, draw_rows(rows), rounds=rounds, warmup_rounds=1)

    assert benchmark.stats.stats.median <= seconds


@pytest.mark.parametrize("rows", [25, 700, 20_000])
def test_boosted_trees_predict_in_ten_milliseconds(rows):
    """The trees predict 2000 rows, after a fit to few or many rows."""
    trees = BoostedTrees.fit(*draw_rows(rows))
    inputs, _ = draw_rows(2000)
    trees.predict(inputs)  # compiles
    start = time.process_time()

    trees.predict(inputs)

    assert time.process_time() - start <= 10e-3
