"""Where no method is named: the one that learns from the history, the same everywhere."""

import numpy as np
import optuna
from optuna.trial import Trial

import hpobench_ordered as hbo
from hpobench_ordered.adapters import OptunaSampler
from hpobench_ordered.adapters.optimiser import METHOD
from hpobench_ordered.experiment.runner import optimise
from hpobench_ordered.protocols.base import Assignment
from hpobench_ordered.registry import method_spec

TRIALS = 9


def test_the_same_suggestions_by_optimiser_sampler_and_run():
    bench = hbo.load("newsvendor")
    task = bench.tasks[3]
    history = tuple(bench.evaluations(i, rng=np.random.default_rng(i), n=15) for i in range(3))
    settings = {"space": bench.space, "history": history, "context": task.context, "seed": 3}

    tuner = hbo.optimiser(direction="maximize", budget=TRIALS, **settings)
    asked = []
    for _ in range(TRIALS):
        asked.append(tuner.ask())
        tuner.tell(asked[-1], task.evaluate(asked[-1]))

    def profit(trial: Trial) -> float:
        sizes = {p.name: (int(p.lower), int(p.upper)) for p in bench.space.parameters}
        return task.evaluate({name: trial.suggest_int(name, *size) for name, size in sizes.items()})

    study = optuna.create_study(
        direction="maximize", sampler=OptunaSampler(budget=TRIALS, **settings)
    )
    study.optimize(profit, n_trials=TRIALS)
    assert [trial.params for trial in study.trials] == asked

    spec = method_spec(METHOD)
    run = optimise(Assignment(spec, task, history, TRIALS), np.random.default_rng(3))
    assert bench.space.configs(run.values) == asked
