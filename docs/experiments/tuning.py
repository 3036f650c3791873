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
    A   ways of tuning, see `WAYS`
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import optuna
from rich.progress import track

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.bootstrap import mean_intervals
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.benchmarks.retrain import RETRAINING
from hpobench_ordered.generation._retrain.training import RetrainTrainer
from hpobench_ordered.generation.retrain import make_plan
from hpobench_ordered.space import Kind
from hpobench_ordered.tuning import OptunaSampler

BENCHMARK = "retrain-electricity-xgboost"
EARLIER, OLD_TRIALS, NEW_TRIALS = 6, 25, 15
SHOWN = (1, 5, 15)
COLD = "TPE"
ENQUEUED = "TPE, old bests first"
WITH_HISTORY = ("ordered-gp", "simple-ordered", "cts", "transfer-tpe-best-first")
WAYS = (COLD, ENQUEUED, "bo", *WITH_HISTORY)

COMPLETE = (optuna.trial.TrialState.COMPLETE,)

MakeSampler = Callable[[], optuna.samplers.BaseSampler]


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
        month = months[place]
        earlier = [self.tune_earlier(other) for other in months[place - EARLIER : place]]
        old_bests = [study.best_params for study in reversed(earlier)]
        values_of_ways = []
        for way in WAYS:
            study = self.tune(
                f"{month} {way} {number}",
                month,
                partial(self.make_sampler, way, earlier, seed=number),
                NEW_TRIALS,
                first=old_bests if way == ENQUEUED else [],
            )
            values = [trial.value for trial in study.get_trials(deepcopy=False)]
            values_of_ways.append(np.array(values))
        return values_of_ways

    def make_sampler(
        self, way: str, earlier: Sequence[optuna.Study], *, seed: int
    ) -> optuna.samplers.BaseSampler:
        """Make the sampler of one of `WAYS`."""
        if way in (COLD, ENQUEUED):
            return optuna.samplers.TPESampler(seed=seed)
        if way in WITH_HISTORY:
            return OptunaSampler.from_studies(way, earlier, seed=seed, budget=NEW_TRIALS)
        return OptunaSampler(way, space=self.space, seed=seed, budget=NEW_TRIALS)

    def tune_earlier(self, month: int) -> optuna.Study:
        """Tune a month as an earlier one."""
        make_sampler = partial(optuna.samplers.TPESampler, seed=month)
        return self.tune(f"{month} earlier", month, make_sampler, OLD_TRIALS)

    def tune(
        self,
        name: str,
        month: int,
        make_sampler: MakeSampler,
        trials: int,
        first: Sequence[dict[str, object]] = (),
    ) -> optuna.Study:
        """Tune a month; a study that is finished is read, an interrupted one starts anew.

        Args:
            name: Name of the study.
            month: The month.
            make_sampler: Makes the sampler.
            trials: Number of trials.
            first: Hyperparameters that are tried first.
        """
        finished = self.find_finished(name, trials)
        if finished is not None:
            return finished
        study = optuna.create_study(
            study_name=name, storage=self.storage, sampler=make_sampler(), direction="maximize"
        )
        for params in first:
            study.enqueue_trial(params)
        study.optimize(lambda trial: self.auc(trial, month), n_trials=trials)
        return study

    def find_finished(self, name: str, trials: int) -> optuna.Study | None:
        """Find a study with all its trials in the storage; one with fewer is deleted."""
        try:
            study = optuna.load_study(study_name=name, storage=self.storage)
        except KeyError:
            return None
        if len(study.get_trials(deepcopy=False, states=COMPLETE)) == trials:
            return study
        optuna.delete_study(study_name=name, storage=self.storage)
        return None

    def auc(self, trial: optuna.Trial, month: int) -> float:
        """Train on the months before one, and measure on it."""
        config = {}
        for p in self.space.parameters:  # all of them numbers
            if p.kind is Kind.INTEGER:
                config[p.name] = trial.suggest_int(p.name, int(p.lower), int(p.upper), log=p.log)
            else:
                config[p.name] = trial.suggest_float(p.name, p.lower, p.upper, log=p.log)
        return self.trainer.train(config, month, seed=0)


def format_tables(values: FloatArray) -> str:
    """Two tables: means of the best AUC, and of the gain over TPE without history.

    Args:
        values: AUC of all trials, shape (R, A, 15), with A = len(WAYS).
    """
    best = np.maximum.accumulate(values, axis=2)[:, :, [trial - 1 for trial in SHOWN]]
    errors = two_standard_errors(np.moveaxis(best, 1, 0)) / 2
    gain = mean_intervals(best - best[:, [WAYS.index(COLD)]], rng=np.random.default_rng(0))
    header = "".join(f" after {trial} |" for trial in SHOWN)
    rule = "|---|" + "---:|" * len(SHOWN)
    lines = [f"Best AUC, mean and standard error of {len(values)} months:", ""]
    lines += [f"| tuned by |{header}", rule]
    for a, way in enumerate(WAYS):
        means_and_errors = zip(best.mean(axis=0)[a], errors[a], strict=True)
        cells = [f" {mean:.4f} ± {error:.4f} |" for mean, error in means_and_errors]
        lines.append(f"| {way} |{''.join(cells)}")
    lines += ["", f"Gain over {COLD} on the same months, mean and its interval of 95 %:", ""]
    lines += [f"| tuned by |{header}", rule]
    for a, way in enumerate(WAYS):
        if way != COLD:
            intervals = zip(gain.mean[a], gain.lower[a], gain.upper[a], strict=True)
            cells = [f" {mean:+.4f} ({low:+.4f} to {up:+.4f}) |" for mean, low, up in intervals]
            lines.append(f"| {way} |{''.join(cells)}")
    return "\n".join(lines)


def main() -> None:
    """Run what is not finished, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=Path, required=True, help="folder of the streams")
    parser.add_argument("--output", type=Path, default=Path("tuning-experiment"))
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    experiment = Experiment(options.streams, options.output)
    numbers = track(range(options.repetitions), description="months")
    print(format_tables(np.array([experiment.repetition(number) for number in numbers])))


if __name__ == "__main__":
    main()
