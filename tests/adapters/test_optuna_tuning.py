"""Studies that methods drive: as the optimiser does, at once, and stopped and taken up again."""

import math
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext
from pathlib import Path

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from tuning_support import METHODS, make_task_and_history, make_tuner, options_of, tune

import hpobench_ordered as hbo
from hpobench_ordered.adapters import OptunaSampler
from hpobench_ordered.adapters._optuna_space import suggest_config
from hpobench_ordered.errors import (
    EvaluationsError,
    ExperimentError,
    HistoryWarning,
    UnknownNameError,
)
from hpobench_ordered.testing.toy import conditional_space, numeric_space

optuna.logging.set_verbosity(optuna.logging.ERROR)


def sampler(method="bo", *, space=None, direction=hbo.Direction.MINIMIZE, **options):
    task, history = make_task_and_history(space, direction)
    options = options_of(method, task, history, options)
    return OptunaSampler(method, space=task.space, **options), task


def study_of(method="bo", *, storage=None, direction=hbo.Direction.MINIMIZE, **options):
    made_sampler, task = sampler(method, direction=direction, **options)
    settings = {"storage": storage, "direction": direction.value, "load_if_exists": True}
    return optuna.create_study(study_name="tuning", sampler=made_sampler, **settings), task


def objective(task):
    return lambda trial: task.evaluate(suggest_config(trial, task.space))


def configs(study, states=None):
    """What was evaluated, with the constants of the conditional space."""
    return [t.params | {"fixed": "always"} for t in study.get_trials(states=states)]


def repeated(study, objective, sampler, n=1):
    """Go on with another sampler, which is told what happened."""
    study.sampler = sampler
    study.optimize(objective, n_trials=n)
    return sampler._replay.optimiser.trials


@pytest.mark.parametrize(
    "direction",
    [hbo.Direction.MAXIMIZE, pytest.param(hbo.Direction.MINIMIZE, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("method", METHODS)
def test_a_study_has_the_suggestions_of_the_optimiser(method, direction):
    study, task = study_of(method, direction=direction, seed=5)
    study.optimize(objective(task), n_trials=12)
    tuner, _ = make_tuner(method, direction=direction, seed=5)
    assert configs(study) == tune(tuner, task)
    assert study.best_value == tuner.best.value


def test_default_method_uses_the_history():
    task, history = make_task_and_history()
    settings = {"space": task.space, "history": history}
    assert hbo.optimiser(direction="minimize", **settings).settings["method"] == "ordered-gp"
    assert OptunaSampler(**settings)._spec.name == "ordered-gp"


def test_suggestions_in_flight_equal_the_optimisers():
    study, task = study_of()
    tuner, _ = make_tuner()
    for batch in range(3):
        trials = [study.ask() for _ in range(4)]
        asked = [suggest_config(trial, task.space) for trial in trials]
        assert asked == [tuner.ask() for _ in range(4)], batch
        for i in (3, 0, 2, 1):
            study.tell(trials[i], task.evaluate(asked[i]))
            tuner.tell(asked[i], task.evaluate(asked[i]))


def test_trials_at_the_same_time():
    """Two objectives wait for each other, so that two trials are in flight."""
    study, task = study_of()
    both, told = threading.Barrier(2), []

    def waiting(trial: optuna.Trial) -> float:
        config = suggest_config(trial, task.space)
        both.wait(timeout=60)
        told.append(config)
        return task.evaluate(config)

    study.optimize(waiting, n_trials=12, n_jobs=2)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 12
    assert len({tuple(c.items()) for c in told}) == 12
    assert {t.value for t in study.trials} == {task.evaluate(c) for c in told}
    live, resumed = study.sampler, sampler()[0]
    assert following(study, task, resumed) == following(study, task, live)


def following(study, task, chosen, n=3):
    """What a sampler suggests next; the study is left as it was."""
    copy = optuna.create_study(direction=study.direction, study_name=study.study_name)
    for trial in study.get_trials(deepcopy=True):
        copy.add_trial(trial)
    copy.sampler = chosen
    return [suggest_config(copy.ask(), task.space) for _ in range(n)]


@pytest.mark.parametrize("method", METHODS)
def test_new_sampler_resumes_a_study(method):
    undisturbed, task = study_of(method)
    undisturbed.optimize(objective(task), n_trials=9)
    study, _ = study_of(method)
    for trials in (1, 4, 2, 2):
        repeated(study, objective(task), sampler(method)[0], trials)
    assert configs(study) == configs(undisturbed)


def test_a_pickled_study_goes_on():
    study, task = study_of()
    study.optimize(objective(task), n_trials=5)
    copy = pickle.loads(pickle.dumps(study))
    for each in (study, copy):
        each.optimize(objective(task), n_trials=3)
    assert configs(copy) == configs(study)


STEPS = ["ask", "ask", "tell", "tell", "fail", "prune", "enqueue", "partly", "add"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the objective does not suggest")  # where no trial was finished
@given(steps=st.lists(st.sampled_from(STEPS), max_size=15), data=st.data())
def test_any_events_are_replayed(steps, data):
    """After any events in a study, a new sampler suggests what the old one does."""
    study, task = study_of(shared=True)
    running = []

    def ask() -> None:
        trial = study.ask()
        suggest_config(trial, task.space)
        running.append(trial)

    for step in steps:
        if step == "ask":
            ask()
        elif step == "enqueue":
            study.enqueue_trial({"kind": "c", "level": 10, "n": 7})
            ask()
        elif step == "partly":
            study.enqueue_trial({"kind": "c"})
            ask()
        elif step == "add":
            names = {"kind": "a", "level": 1, "n": 3, "x": 0.5}
            space = {p: CategoricalDistribution([v]) for p, v in names.items()}
            study.add_trial(optuna.trial.create_trial(params=names, distributions=space, value=0.1))
        elif running:
            trial = running.pop(data.draw(st.integers(0, len(running) - 1)))
            if step == "tell":
                study.tell(trial, task.evaluate(trial.params))
            elif step == "fail":
                study.tell(trial, state=TrialState.FAIL)
            else:
                trial.report(0.3, step=1)
                study.tell(trial, state=TrialState.PRUNED)
    live, resumed = study.sampler, sampler(shared=True)[0]
    ask()  # what others added is told by now
    study.sampler = resumed
    ask()
    live._replay.catch_up(study)  # with what the other one asked for
    one, other = live._replay.optimiser, resumed._replay.optimiser
    assert list(map(repr, one.trials)) == list(map(repr, other.trials))  # NaN is not equal to NaN
    states = [tuner._method.rng.bit_generator.state for tuner in (one, other)]
    assert states[0] == states[1]


FOLDERS = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
SCRIPT = """
import os, signal, sys
sys.path[:0] = {folders!r}
from test_optuna_tuning import *
study, task = study_of("simple-ordered", storage={storage!r})
def killed(trial):
    value = objective(task)(trial)
    if trial.number == {kill}:
        os.kill(os.getpid(), signal.SIGKILL)
    return value
finished = len(study.get_trials(states=[TrialState.COMPLETE]))
study.optimize(killed, n_trials=9 - finished)
"""


@pytest.mark.slow
def test_killed_processes_go_on(tmp_path):
    undisturbed, task = study_of("simple-ordered")
    undisturbed.optimize(objective(task), n_trials=9)
    storage = f"sqlite:///{tmp_path}/tuning.db"
    for kill in (0, 4, 9, -1):
        script = SCRIPT.format(folders=FOLDERS, storage=storage, kill=kill)
        done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
        assert done.returncode == (-signal.SIGKILL if kill >= 0 else 0), done.stderr
    study = optuna.load_study(study_name="tuning", storage=storage)
    trials = study.get_trials(states=[TrialState.COMPLETE])
    assert configs(study, [TrialState.COMPLETE]) == configs(undisturbed)
    assert [t.value for t in trials] == [t.value for t in undisturbed.trials]
    assert len(study.trials) == 12  # three were interrupted


def test_what_was_interrupted_comes_first():
    study, task = study_of()
    trials = [study.ask() for _ in range(4)]
    asked = [suggest_config(trial, task.space) for trial in trials]
    study.tell(trials[1], 0.5)
    study.sampler = sampler()[0]
    study.tell(trials[3], 0.25)  # this one was not: somebody still had it
    again = [suggest_config(study.ask(), task.space) for _ in range(3)]
    assert again[:2] == [asked[0], asked[2]]
    assert again[2] not in asked


@pytest.mark.slow
def test_shared_study_has_no_duplicates(tmp_path):
    storage = f"sqlite:///{tmp_path}/tuning.db"
    workers = [study_of("simple-ordered", storage=storage, shared=True)[0] for _ in range(3)]
    task = make_task_and_history()[0]
    found = []
    for _ in range(4):
        trials = [(study, study.ask()) for study in workers]
        found += [suggest_config(trial, task.space) for _, trial in trials]
        for study, trial in trials:
            study.tell(trial, task.evaluate(trial.params))
    assert len({tuple(c.items()) for c in found}) == 12
    history = make_task_and_history()[1]
    best = [t.space.configs(t.values[[t.losses.argmin()]])[0] for t in reversed(history)]
    assert found[:2] == best  # no configuration of the history is lost


def test_waiting_trials_keep_their_suggestions():
    study, task = study_of(shared=True)
    waiting = study.ask()  # another process is about to ask for it
    tuner, _ = make_tuner()
    first, second = tuner.ask(), tuner.ask()
    assert suggest_config(study.ask(), task.space) == second
    assert suggest_config(waiting, task.space) == first


def test_unused_suggestion_comes_next():
    study, task = study_of(shared=True)
    waiting = study.ask()
    tuner, _ = make_tuner()
    first, second = tuner.ask(), tuner.ask()
    assert suggest_config(study.ask(), task.space) == second
    study.tell(waiting, state=TrialState.FAIL)
    assert suggest_config(study.ask(), task.space) == first


SHARING = """
import sys, time
sys.path[:0] = {folders!r}
from test_optuna_tuning import *
study, task = study_of("simple-ordered", storage={storage!r}, shared=True)
def slow(trial):
    value = objective(task)(trial)
    time.sleep(0.3)
    return value
study.optimize(slow, n_trials=10)
"""


@pytest.mark.slow
def test_simultaneous_processes_seldom_suggest_duplicates(tmp_path):
    """Two processes that ask at the same moment may not see each other's trial yet.

    Without running trials as pending ones, a quarter of all suggestions were duplicates.
    """
    storage = f"sqlite:///{tmp_path}/tuning.db"
    study_of("simple-ordered", storage=storage, shared=True)
    script = SHARING.format(folders=FOLDERS, storage=storage)
    workers = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    study = optuna.load_study(study_name="tuning", storage=storage)
    assert len({tuple(sorted(config.items())) for config in configs(study)}) >= 28


def test_conditional_trials_are_told_again():
    """Optuna's distributions know no conditions: the objective has them."""
    space = {"kind": CategoricalDistribution(["a", "b"]), "x": FloatDistribution(0, 1)}

    def conditional(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return trial.suggest_float("x", 0, 1) if kind == "a" else 0.5

    study = optuna.create_study(sampler=OptunaSampler("bo", space=space))
    study.optimize(conditional, n_trials=12)
    assert len({len(t.params) for t in study.trials}) == 2
    live = study.sampler._replay.optimiser.trials
    assert repeated(study, conditional, OptunaSampler("bo", space=space))[:12] == live
    # The trials of another sampler: what it did not need is told with its default.
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(conditional, n_trials=12)
    told = repeated(study, conditional, OptunaSampler("bo", space=space))[:12]
    assert [t.value for t in told] == [t.value for t in study.trials[:12]]
    assert [t.config for t in told] == [{"x": 0.5} | t.params for t in study.trials[:12]]


def test_other_trials_cost_no_suggestion():
    study, task = study_of("bo", seed=1)
    study.optimize(objective(task), n_trials=3)
    study.enqueue_trial({"kind": "a", "level": 10, "n": 7, "x": 0.5})
    repeated(study, objective(task), sampler("bo", seed=2)[0], 3)
    tuner, _ = make_tuner("bo", seed=2)
    for trial in study.trials[:4]:
        tuner.tell(trial.params, trial.value)
    assert configs(study)[4:] == tune(tuner, task, trials=2)


def test_random_parameters_are_the_same_again():
    def more(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0, 1) + trial.suggest_float("more", 0, trial.number + 1)

    whole = optuna.create_study(sampler=OptunaSampler("random-search"))
    whole.optimize(more, n_trials=6)
    parts = optuna.create_study(sampler=OptunaSampler("random-search"))
    for _ in range(3):
        parts.optimize(more, n_trials=2)
        parts.sampler = OptunaSampler("random-search")
    assert configs(whole) == configs(parts)


def monthly(month: int):
    """An objective whose best rate and depth move from month to month."""

    def loss(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 1e-4, 1, log=True)
        depth = trial.suggest_int("depth", 1, 9, step=2)
        kind = trial.suggest_categorical("kind", ["tree", "line"])
        slope = trial.suggest_float("slope", 0, 1) if kind == "line" else 0.5
        return (math.log10(rate) + 2 + month / 9) ** 2 + (depth - 5) ** 2 / 9 + slope

    return loss


def studies():
    done = []
    for month in range(3):
        random = optuna.samplers.RandomSampler(seed=month)
        study = optuna.create_study(study_name=f"month {month}", sampler=random)
        study.optimize(monthly(month), n_trials=15)
        done.append(study)
    return done


@pytest.mark.parametrize("method", METHODS)
def test_sampler_from_studies_equals_the_optimiser(method):
    before = studies()
    history = hbo.history_from_studies(before)
    looks = hbo.adapters.as_method_spec(method).uses_history
    warned = pytest.warns(HistoryWarning, match="does not use the history")
    with nullcontext() if looks else warned:
        sampler = OptunaSampler.from_studies(method, before, seed=2)
    settings = {"space": history[-1].space, "direction": "minimize", "seed": 2}
    tuner = hbo.optimiser(method, **settings, history=history if looks else ())
    study = optuna.create_study(sampler=sampler)
    study.optimize(monthly(3), n_trials=8)
    for trial in study.trials:
        assert trial.params == tuner.ask()
        tuner.tell(trial.params, trial.value)


def test_from_studies_passes_settings_on():
    before = studies()
    options = {
        "space": {"rate": (1e-6, 1, "log"), "more": (0.0, 1)},
        "context": {"size": 3.0},
        "contexts": {f"month {m}": {"size": float(m)} for m in range(3)},
        "budget": 7,
    }
    with pytest.warns(HistoryWarning, match="another search space"):
        sampler = OptunaSampler.from_studies("simple-ordered", before, **options)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("rate", 1e-6, 1) + t.suggest_float("more", 0, 1), 1)
    settings = sampler._replay.optimiser.settings
    assert (settings["context"], settings["budget"]) == ({"size": 3.0}, 7)
    assert set(study.trials[0].params) == {"rate", "more"}
    before[0].tell(before[0].ask(before[0].trials[0].distributions), math.inf)
    with pytest.warns(HistoryWarning, match="1 of 46 evaluations are left out"):
        OptunaSampler.from_studies("simple-ordered", before, drop_invalid=True)


def test_other_range_is_warned_of_once():
    def other(trial: optuna.Trial) -> float:
        trial.suggest_int("depth", 1, 99, step=2)
        return monthly(3)(trial)

    def warned(objective) -> list[str]:
        study = optuna.create_study(sampler=OptunaSampler.from_studies("simple-ordered", studies()))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            study.optimize(objective, n_trials=2)
        return [str(w.message) for w in caught if w.category is HistoryWarning]

    assert warned(monthly(3)) == []
    (warning,) = warned(other)
    assert all(words in warning for words in ("'depth'", "high=99", "space="))


@pytest.mark.parametrize("is_new", [False, True])
def test_what_was_suggested_to_a_misspelt_objective_has_not_failed(is_new):
    """The best configuration of the history is not lost by a slip."""
    undisturbed, task = study_of("simple-ordered")
    undisturbed.optimize(objective(task), n_trials=6)
    study, _ = study_of("simple-ordered")
    study.optimize(objective(task), n_trials=2)

    def misspelt(trial: optuna.Trial) -> float:
        suggest_config(trial, task.space)
        return trial.suggest_float("xs", 0, 1)

    def narrower(trial: optuna.Trial) -> float:
        trial.suggest_categorical("level", [1, 10, 100])
        return trial.suggest_int("n", 60, 70)

    for wrong, error in ((misspelt, UnknownNameError), (narrower, ExperimentError)):
        with pytest.raises(error):
            study.optimize(wrong, n_trials=1)
    if is_new:
        study.sampler = sampler("simple-ordered")[0]
    study.optimize(objective(task), n_trials=4)
    assert configs(study, [TrialState.COMPLETE]) == configs(undisturbed)
    # and so it is for ever
    live, resumed = study.sampler, sampler("simple-ordered")[0]
    assert following(study, task, live) == following(study, task, resumed)


def test_other_names_ranges_values_and_directions_are_errors():
    space = {"rate": FloatDistribution(0, 1), "n": IntDistribution(1, 9)}
    study = optuna.create_study(sampler=OptunaSampler("random-search", space=space))
    for suggest, error, said in (
        (lambda t: t.suggest_float("rat", 0, 1), UnknownNameError, "'rat'; did you mean 'rate'"),
        (lambda t: t.suggest_float("rate", 2, 3), ExperimentError, r"from Float.*high=3.0, lo"),
        (lambda t: t.suggest_categorical("n", "ab"), ExperimentError, "suggests 'n' from Categ"),
    ):
        with pytest.raises(error, match=said):
            study.optimize(suggest, n_trials=1)
    chosen, task = sampler("simple-ordered")
    study = optuna.create_study(direction="maximize", sampler=chosen)
    with pytest.raises(EvaluationsError, match="objective is to minimize"):
        study.optimize(objective(task), n_trials=1)


def test_infinite_values_have_failed_and_what_does_not_fit_is_left_out():
    study, task = study_of(space=numeric_space())
    study.optimize(lambda t: suggest_config(t, numeric_space()) and math.inf, n_trials=1)
    assert math.isnan(study.sampler._replay.optimiser.trials[0].value)
    narrow = {"x": FloatDistribution(-90, 90), "y": FloatDistribution(1e-4, 1)}
    for x in (9.0, 1.0):
        given = {"params": {"x": x, "y": 0.5}, "distributions": narrow}
        study.add_trial(optuna.trial.create_trial(**given, value=1.0))
    with pytest.warns(HistoryWarning, match="trial 1 is left out: x must be .* got 9.0"):
        study.optimize(objective(task), n_trials=1)
    assert [t.config["x"] for t in study.sampler._replay.optimiser.trials[1:-1]] == [1.0]


def test_what_is_inactive_or_constant_may_be_suggested():
    task = make_task_and_history(conditional_space())[0]

    def everything(trial: optuna.Trial) -> float:
        config = {
            "kind": trial.suggest_categorical("kind", ["a", "b", "c"]),
            "level": trial.suggest_categorical("level", [1, 10, 100]),
            "n": trial.suggest_int("n", 1, 50, log=True),
            "x": trial.suggest_float("x", 0, 1),
            "fixed": trial.suggest_categorical("fixed", ["always", "never"]),
        }
        assert config["fixed"] == "always"
        return task.evaluate(config)

    study, _ = study_of()
    study.optimize(everything, n_trials=12)
    tuner, _ = make_tuner()
    asked = tune(tuner, task)
    assert any("x" not in config for config in asked)
    for trial, config in zip(study.trials, asked, strict=True):
        assert trial.params | config == trial.params


def test_steps_and_types_are_the_objectives():
    space = {
        "step": FloatDistribution(0.0, 1.0, step=0.1),
        "even": IntDistribution(2, 8, step=2),
        "rate": FloatDistribution(1e-3, 1.0, log=True),
    }
    study = optuna.create_study(sampler=OptunaSampler("random-search", space=space))
    other = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for one in [study] * 20 + [other] * 20:
        trial = one.ask(space)
        assert isinstance(trial.params["even"], int)
        one.tell(trial, sum(trial.params.values()))
    assert len(study.sampler._replay.optimiser.trials) == 20
    other.sampler = OptunaSampler("random-search", space=space)
    other.ask(space)
    assert len(other.sampler._replay.optimiser.trials) == 21
