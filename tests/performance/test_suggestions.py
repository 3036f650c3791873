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
from baselines import BoTorch

from hpobench_ordered.core.benchmark import Task
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods._boosting.model import BoostedTrees
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.registry import list_methods, method_spec
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
    *((n, Case(5, 29, 100, 25, later=150e-3 if n in JOINT else 5e-3)) for n in NETWORKS),
    ("abrac", Case(5, 29, 100, 25, first=2.0)),
    *((name, Case(7, 10, 50, 10)) for name in ("dist-gp", "manual-gp", "multi-gp")),
]


def problem(case: Case) -> tuple[Task, tuple[Evaluations, ...]]:
    """The current task, and the history before it."""
    space = SearchSpace([Parameter.number(f"x{j}", 0, 1) for j in range(case.dimension)])
    *earlier, task = toy_benchmark(space, tasks=case.tasks + 1).tasks
    return task, random_history(earlier, seed=0, evaluations=case.evaluations)


def seconds(spec: MethodSpec, case: Case, *, suggestions: int = SUGGESTIONS) -> tuple[float, float]:
    """Of the first suggestion, and of a later one in the median."""
    task, history = problem(case)
    rng, times = np.random.default_rng(1), []
    before = max(case.own - 1 - suggestions // 2, 0)  # the median has so many as the case says
    begin = time.process_time()
    method = construct_method(spec, task, history, np.random.default_rng(0))
    config = method.ask()
    first = time.process_time() - begin
    for told in [config, *(task.space.sample(rng) for _ in range(before))]:
        method.tell(told, task.evaluate(told))
    for _ in range(suggestions + 1):
        begin = time.process_time()
        config = method.ask()
        times.append(time.process_time() - begin)
        method.tell(config, task.evaluate(config))
    return first, float(np.median(times[1:]))  # the one before fits to all that was told


@pytest.fixture(autouse=True)
def one_blas_thread():
    with one_thread():
        yield


@pytest.mark.parametrize(("name", "case"), CASES)
def test_suggestion(name, case):
    """The first suggestion and a later one take at most the seconds of the case."""
    seconds(method_spec(name), case, suggestions=1)  # compiles
    first, later = seconds(method_spec(name), case)
    print(f"\n{name}, {case}: {first:.3f} s, then {1e3 * later:.2f} ms")
    assert first <= case.first
    assert later <= case.later


@pytest.mark.parametrize("name", ["dist-blr", "manual-blr", "multi-blr"])
def test_regressions_grow_linearly(name):
    # Ten tasks of 30 or 150 evaluations, in seven dimensions.
    cases = [Case(7, 10, each, 10) for each in (30, 150)]
    few, many = (seconds(method_spec(name), case, suggestions=3)[1] for case in cases)
    # Five times the evaluations, with some room.
    assert many <= 1.5 * 5 * few


@pytest.mark.filterwarnings("ignore")  # BoTorch's
@pytest.mark.parametrize(("evaluations", "ratio"), [(5, 1), (25, 200), (50, 1), (200, 1)])
def test_beside_botorch(evaluations, ratio):
    """BoTorch takes at least `ratio` times as long with so many evaluations."""
    pytest.importorskip("botorch", reason="BoTorch is not installed: pip install -e '.[compare]'")
    import torch

    torch.set_num_threads(1)
    case = Case(dimension=4, tasks=0, evaluations=0, own=evaluations)  # no earlier tasks
    _, theirs = seconds(MethodSpec("botorch", BoTorch, "", ""), case, suggestions=7)
    _, ours = seconds(method_spec("bo"), case)
    print(f"\n{evaluations} evaluations: BoTorch takes {1e3 * theirs:.0f} ms, {theirs / ours:.0f}x")
    assert theirs >= ratio * ours


class OptunaTPE(Method):
    """Optuna's TPE, asked and told without this package's adapter."""

    def prepare(self) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        names = self.space.names
        self.distributions = {name: optuna.distributions.FloatDistribution(0, 1) for name in names}
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        for e in self.history:
            for config, loss in zip(e.space.configs(e.values), e.losses.tolist(), strict=True):
                self.tell(config, loss)

    def ask(self):
        return self.study.ask(self.distributions).params

    def tell(self, config, loss):
        add = optuna.trial.create_trial
        self.study.add_trial(add(params=config, distributions=self.distributions, value=loss))


@pytest.mark.parametrize(
    ("name", "case", "ratio"),
    [("tpe", Case(4, 0, 0, 25), 1), ("ordered-gp", Case(6, 8, 25, 25), 1 / 1.5)],
)
def test_beside_optuna(name, case, ratio):
    """Optuna's TPE takes at least `ratio` times as long."""
    _, theirs = seconds(MethodSpec("optuna", OptunaTPE, "", ""), case)
    seconds(method_spec(name), case, suggestions=1)  # compiles
    _, ours = seconds(method_spec(name), case)
    print(f"\n{name}: Optuna's TPE takes {1e3 * theirs:.2f} ms, {theirs / ours:.1f} times as long")
    assert theirs >= ratio * ours


@pytest.mark.parametrize(("n", "limit"), [(25, 2e-3), (700, 40e-3), (20_000, 5.0)])
def test_boosted_trees(benchmark, n, limit):
    """A fit to n rows takes at most `limit` seconds, a prediction of 2000 rows 10 ms."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 4))
    y = np.sin(5 * X[:, 0]) + 3 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    rounds = max(3, min(200, 20_000 // n))
    trees = benchmark.pedantic(BoostedTrees.fit, (X, y), rounds=rounds, warmup_rounds=1)
    assert benchmark.stats.stats.median <= limit
    begin = time.process_time()
    trees.predict(rng.random((2000, 4)))
    assert time.process_time() - begin <= 10e-3
