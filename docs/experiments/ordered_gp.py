"""Ablation of `ordered-gp`: variants with one part left out or replaced.

All variants run in the ordered protocol and are ranked among each other, on each task and seed. The
parts were chosen on every second benchmark of a suite in alphabetical order; ranks are given for
these and for the others.

    python docs/experiments/ordered_gp.py --seeds 2 --output ordered-gp-experiment

Runs are in OUTPUT, and are continued. A seed of all variants takes about twenty minutes on one
core, with `--tasks 10` seven; of one seed there are no intervals.
"""

# ruff: noqa: D102  (overriding methods are explained by the docstring of their class)

import argparse
from collections.abc import Sequence

import numpy as np

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.methods._gp import compiled
from hpobench_ordered.methods._gp.model import MAX_ITERATIONS, LogPrior, TaskPriors
from hpobench_ordered.methods._gp.tasks import (
    fit_hyperparameters,
    negative_log_posterior,
    stack_task_priors,
)
from hpobench_ordered.methods._model_based import Scorer
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.ordered_gp import OrderedGP, Sources

SUITES = ("othpo", "retrain")
TRIALS = (1, 5, 10, 25)
RANK = ("rank", "rank_low", "rank_high")
"""Columns of the leaderboard with a mean rank and its interval."""
FIXED = LogPrior(mean=0.0, sd=1.0, lower=0.0, upper=0.0)
FORGETS_NOTHING = LogPrior(mean=20.0, sd=1.0, lower=20.0, upper=20.0)
"""Memory so long that the distance of tasks does not matter."""
NOTHING_NEW = LogPrior(mean=-20.0, sd=1.0, lower=-20.0, upper=-20.0)
"""Novelty so small that tasks at distance 0 are the same function."""


class NoScales(OrderedGP):
    """Every task has its unit, and no scale that is learned."""

    def priors(self) -> TaskPriors:
        return TaskPriors(scale=FIXED)


class NoLevels(OrderedGP):
    """Every task has its centre, and no level that is integrated out."""

    def priors(self) -> TaskPriors:
        return TaskPriors(level=0.0)


class NoDrift(OrderedGP):
    """All tasks are the same function, up to level and scale."""

    def priors(self) -> TaskPriors:
        return TaskPriors(memory=FORGETS_NOTHING, novelty=NOTHING_NEW)


class NoNovelty(OrderedGP):
    """The correlation of tasks depends on their distance alone."""

    def priors(self) -> TaskPriors:
        return TaskPriors(novelty=NOTHING_NEW)


class NoOrder(OrderedGP):
    """All pairs of tasks have the same correlation."""

    def priors(self) -> TaskPriors:
        return TaskPriors(memory=FORGETS_NOTHING)


class FewCandidates(OrderedGP):
    """A quarter of the candidates."""

    random_candidates = 500
    near_candidates = 250


class Nearest5(OrderedGP):
    """Five earlier tasks."""

    max_earlier_tasks = 5


class Nearest8(OrderedGP):
    """Eight earlier tasks."""

    max_earlier_tasks = 8


class Nearest15(OrderedGP):
    """Fifteen earlier tasks."""

    max_earlier_tasks = 15


class BestsFirst(OrderedGP):
    """Trials 1 to 5 are the bests of the nearest tasks, the nearest first."""

    def initial_configurations(self) -> Sequence[Config]:
        if self.sources is None:
            return ()
        return self.space.configs(self.space.decode(self.sources.best_points[:5]))


class AnywhereFromTrial2(OrderedGP):
    """Only trial 1 chooses among the bests of earlier tasks."""

    def _choose_best_untried(
        self, scorer: Scorer, near_best: FloatArray | None = None
    ) -> FloatArray:
        if self.evaluation_count:
            return BayesianOptimisation._choose_best_untried(self, scorer, near_best)
        return super()._choose_best_untried(scorer, near_best)


class NoneNear(OrderedGP):
    """Random candidates alone."""

    searches_near_best = False


class AsTheyAre(OrderedGP):
    """Losses above the centre as they are."""

    def transform_losses(self, y: FloatArray) -> FloatArray:
        return y


class Clipped(OrderedGP):
    """Losses more than three units above the centre count as three."""

    def transform_losses(self, y: FloatArray) -> FloatArray:
        return np.minimum(y, 3.0)


class ChosenTransform(OrderedGP):
    """Losses as they are or not, whichever makes those of the earlier tasks more likely."""

    def prepare(self) -> None:
        super().prepare()
        self._as_they_are = False

    def transform_losses(self, y: FloatArray) -> FloatArray:
        return y if self._as_they_are else super().transform_losses(y)

    def make_scorer(self) -> Scorer:
        if self.sources and self._process is None:
            values = {choice: self._surprise(self.sources, choice) for choice in (False, True)}
            self._as_they_are = min(values, key=lambda choice: values[choice])
        return super().make_scorer()

    def _surprise(self, sources: Sources, as_they_are: bool) -> float:
        """Minus log posterior density of the earlier losses themselves, up to a constant.

        The model's density is that of transformed losses; the derivatives of the transform, here
        by differences, make it that of the losses.
        """
        self._as_they_are = as_they_are
        observed = self._collect_observations(sources)
        prior = stack_task_priors(self.priors(), observed.g, len(observed.counts))
        x = fit_hyperparameters(observed, self.priors(), None, steps=MAX_ITERATIONS).x
        S = compiled.squared_differences(observed.X, observed.kernel.groups, observed.g)
        of_transformed, _ = negative_log_posterior(observed, S, x, prior)

        y = sources.losses
        step = 1e-4
        slopes = (self.transform_losses(y + step) - self.transform_losses(y - step)) / (2.0 * step)
        spread = self.transform_losses(y).std() or 1.0
        log_jacobian = float(np.log(slopes / spread).sum())
        return of_transformed - log_jacobian


VARIANTS: dict[str, type[OrderedGP]] = {
    "whole": OrderedGP,
    "no scales": NoScales,
    "no levels": NoLevels,
    "no drift": NoDrift,
    "no novelty": NoNovelty,
    "no order": NoOrder,
    "a quarter of the candidates": FewCandidates,
    "5 tasks": Nearest5,
    "8 tasks": Nearest8,
    "15 tasks": Nearest15,
    "none near": NoneNear,
    "bests first": BestsFirst,
    "anywhere from trial 2": AnywhereFromTrial2,
    "losses as they are": AsTheyAre,
    "losses clipped": Clipped,
    "transform chosen": ChosenTransform,
}


def split_benchmarks() -> dict[str, list[str]]:
    """The benchmarks that parts were chosen on, and the others."""
    chosen_on = []
    others = []
    for suite_name in SUITES:
        names = sorted(hbo.suite(suite_name))
        chosen_on += names[::2]
        others += names[1::2]
    return {"chosen on": chosen_on, "others": others}


def format_ranks(results: hbo.Results) -> str:
    """A table of mean ranks after some trials, each family of benchmarks counting once."""
    boards = []
    for trial in TRIALS:
        board = results.leaderboard(trial)
        boards.append(board[board["benchmark"] == ALL].set_index("method"))

    headers = [str(trial) for trial in TRIALS]
    lines = [f"| | {' | '.join(headers)} |", "|---|" + "--:|" * len(TRIALS)]
    for name in boards[-1].index:
        cells = [format_rank(*board.loc[name, list(RANK)]) for board in boards]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def format_rank(rank: float, low: float, high: float) -> str:
    """A mean rank with its interval, if it has one."""
    has_interval = low < high
    return f"{rank:.2f} ({low:.2f} to {high:.2f})" if has_interval else f"{rank:.2f}"


def main(options: argparse.Namespace) -> None:
    """Run all variants, and print tables of their ranks."""
    methods = []
    for name in options.variant or VARIANTS:
        variant = VARIANTS[name]
        spec = hbo.MethodSpec(name.replace(" ", "-"), variant, str(variant.__doc__), "this page")
        methods.append(spec)
    for half, benchmarks in split_benchmarks().items():
        results = hbo.run(
            benchmarks=benchmarks,
            methods=methods,
            seeds=range(options.seeds),
            protocol=hbo.Ordered(tasks=options.tasks),
            folder=options.output,
        )
        print(f"\n{half}: {len(benchmarks)} benchmarks, {options.seeds} seeds\n")
        print(format_ranks(results))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder of the runs")
    parser.add_argument("--seeds", type=int, default=2, metavar="S", help="seeds")
    parser.add_argument("--tasks", type=int, metavar="N", help="only the first tasks")
    parser.add_argument("--variant", action="append", choices=VARIANTS, help="only some of them")
    main(parser.parse_args())
