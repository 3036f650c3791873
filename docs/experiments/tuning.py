"""Gain from earlier studies: a model that is trained, and tuned again every month.

Gradient boosting is trained on the electricity stream, month by month. Six months are tuned with
Optuna's TPE, 25 trials each, and the studies kept; the month after them is tuned with 15 trials, by
each of `WAYS`. That is repeated on other months, with other seeds.

    python docs/experiments/tuning.py --streams shared/data/streams --output tuning-experiment

The folder of streams holds electricity.parquet. XGBoost, scikit-learn and Optuna are needed (pip
install '.[train,optuna]'). All studies are in OUTPUT/tuning.db: what is finished there is not done
again, and a month is tuned once however many repetitions have it as an earlier one. 20 repetitions
are about 2500 trainings of a twentieth of a second.

Notation:
    R   repetitions
    v   best AUC of a repetition after so many trials, (R,)
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import optuna
from rich.progress import track

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.adapters import OptunaSampler
from hpobench_ordered.analysis.bootstrap import mean_intervals
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.benchmarks.retrain import RETRAINING
from hpobench_ordered.generation._retrain.training import RetrainTrainer
from hpobench_ordered.generation.retrain import make_plan

BENCHMARK = "retrain-electricity-xgboost"
EARLIER, OLD_TRIALS, NEW_TRIALS = 6, 25, 15
SHOWN = (1, 5, 15)
COLD = "TPE"
ENQUEUED = "TPE, old bests first"
WITH_HISTORY = ("ordered-gp", "simple-ordered", "cts", "transfer-tpe-best-first")
WAYS = (COLD, ENQUEUED, "bo", *WITH_HISTORY)

COMPLETE = (optuna.trial.TrialState.COMPLETE,)

Make = Callable[[], optuna.samplers.BaseSampler]


class Experiment:
    """The studies of all months.

    Args:
        streams: Folder of the streams.
        output: Folder of the studies.
    """

    def __init__(self, streams: Path, output: Path) -> None:
        benchmark = next(one for one in RETRAINING if one.name == BENCHMARK)
        plan = make_plan(benchmark, streams, configurations=10, seed=0)
        self.trainer: RetrainTrainer = plan.trainer
        self.space: hbo.SearchSpace = plan.space
        output.mkdir(parents=True, exist_ok=True)
        self.storage = optuna.storages.RDBStorage(f"sqlite:///{output / 'tuning.db'}")

    def repetition(self, number: int) -> list[FloatArray]:
        """AUC of the trials of each way, (15,) each, of one month and seed."""
        months = list(self.trainer.tasks)
        place = EARLIER + number % (len(months) - EARLIER)
        earlier = [self.earlier(month) for month in months[place - EARLIER : place]]
        samplers: dict[str, Make] = {
            COLD: lambda: optuna.samplers.TPESampler(seed=number),
            ENQUEUED: lambda: optuna.samplers.TPESampler(seed=number),
            "bo": lambda: OptunaSampler("bo", space=self.space, seed=number, budget=NEW_TRIALS),
        } | {name: _with_history(name, earlier, number) for name in WITH_HISTORY}
        values = []
        for way in WAYS:
            first = [study.best_params for study in reversed(earlier)] if way == ENQUEUED else []
            name = f"{months[place]} {way} {number}"
            study = self.study(name, months[place], samplers[way], NEW_TRIALS, first)
            values.append(np.array([trial.value for trial in study.get_trials(deepcopy=False)]))
        return values

    def earlier(self, month: int) -> optuna.Study:
        """The study of a month, as an earlier one."""
        make = lambda: optuna.samplers.TPESampler(seed=month)  # noqa: E731
        return self.study(f"{month} earlier", month, make, OLD_TRIALS)

    def study(
        self,
        name: str,
        month: int,
        make: Make,
        trials: int,
        first: Sequence[dict[str, object]] = (),
    ) -> optuna.Study:
        """A study, from the storage where it is finished; one that was interrupted starts anew."""
        try:
            known = optuna.load_study(study_name=name, storage=self.storage)
            if len(known.get_trials(deepcopy=False, states=COMPLETE)) == trials:
                return known
            optuna.delete_study(study_name=name, storage=self.storage)
        except KeyError:
            pass
        study = optuna.create_study(
            study_name=name, storage=self.storage, sampler=make(), direction="maximize"
        )
        for params in first:
            study.enqueue_trial(params)
        study.optimize(lambda trial: self.auc(trial, month), n_trials=trials)
        return study

    def auc(self, trial: optuna.Trial, month: int) -> float:
        """Train on the months before one, and measure on it."""
        config = {}
        for p in self.space.parameters:  # all of them numbers
            if p.kind is hbo.Kind.INTEGER:
                low, high = int(p.lower), int(p.upper)
                config[p.name] = trial.suggest_int(p.name, low, high, log=p.log)
            else:
                config[p.name] = trial.suggest_float(p.name, p.lower, p.upper, log=p.log)
        value, _ = self.trainer.train(config, month, seed=0)
        return value


def _with_history(method: str, earlier: Sequence[optuna.Study], seed: int) -> Make:
    return lambda: OptunaSampler.from_studies(method, earlier, seed=seed, budget=NEW_TRIALS)


def tables(values: FloatArray) -> str:
    """Means of the best AUC, and of the gain over cold TPE, of the AUC of all trials (R, A, 15)."""
    best = np.maximum.accumulate(values, axis=2)[:, :, [trial - 1 for trial in SHOWN]]
    errors = two_standard_errors(np.moveaxis(best, 1, 0)) / 2
    gain = mean_intervals(best - best[:, [WAYS.index(COLD)]], rng=np.random.default_rng(0))
    header = "".join(f" after {trial} |" for trial in SHOWN)
    rule = "|---|" + "---:|" * len(SHOWN)
    lines = [f"Best AUC, mean and standard error of {len(values)} months:", ""]
    lines += [f"| tuned by |{header}", rule]
    for a, way in enumerate(WAYS):
        cells = zip(best.mean(axis=0)[a], errors[a], strict=True)
        lines.append(f"| {way} |" + "".join(f" {m:.4f} ± {e:.4f} |" for m, e in cells))
    lines += ["", f"Gain over {COLD} on the same months, mean and its interval of 95 %:", ""]
    lines += [f"| tuned by |{header}", rule]
    for a, way in enumerate(WAYS):
        if way != COLD:
            cells3 = zip(gain.mean[a], gain.lower[a], gain.upper[a], strict=True)
            text = "".join(f" {m:+.4f} ({low:+.4f} to {up:+.4f}) |" for m, low, up in cells3)
            lines.append(f"| {way} |{text}")
    return "\n".join(lines)


def main() -> None:
    """Run what is not finished, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=Path, required=True, help="folder of the streams")
    parser.add_argument("--output", type=Path, default=Path("tuning-experiment"))
    parser.add_argument("--repetitions", type=int, default=20)
    asked = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    experiment = Experiment(asked.streams, asked.output)
    numbers = track(range(asked.repetitions), description="months")
    print(tables(np.array([experiment.repetition(number) for number in numbers])))


if __name__ == "__main__":
    main()
