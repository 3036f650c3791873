"""Recorded tuning, on random spaces: it continues as if never stopped, and is read as told."""

import zlib
from unittest.mock import patch

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

import hpobench_ordered as hbo
from hpobench_ordered import Direction, Evaluations, Method, Parameter, SearchSpace
from hpobench_ordered.errors import EvaluationsError, HistoryWarning, StoreError
from hpobench_ordered.space import Compare, Comparison
from hpobench_ordered.tuning import optimiser as optimiser_module
from hpobench_ordered.tuning.optimiser import Optimiser

optuna.logging.set_verbosity(optuna.logging.ERROR)

CHOICES = [
    ("a", "b"),
    (True, "a", 2, 0.5),
    (None, False, 1),
    ("1", 1),
    ("True", True, "None", None),
]
"""Choices of categoricals, some of which are written or compare alike."""


@st.composite
def numbers(draw: st.DrawFn, name: str) -> Parameter:
    """A float or an integer of few values, so that configurations are drawn repeatedly."""
    lower = draw(st.integers(1, 9))
    upper = lower + draw(st.integers(1, 3))
    is_integer = draw(st.booleans())
    return Parameter.number(name, lower, upper, log=draw(st.booleans()), integer=is_integer)


def categoricals(name: str) -> st.SearchStrategy[Parameter]:
    return st.sampled_from([Parameter.choice(name, choices) for choices in CHOICES])


def ordinals(name: str) -> st.SearchStrategy[Parameter]:
    return st.just(Parameter.choice(name, (0.1, 1, 10), ordered=True))


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """A categorical and up to two others, the last one perhaps under a condition."""
    parameters = [draw(categoricals("p0"))]
    for position in range(1, draw(st.integers(1, 3))):
        name = f"p{position}"
        parameters.append(draw(st.one_of(numbers(name), categoricals(name), ordinals(name))))
    conditions = {}
    if len(parameters) > 1 and draw(st.booleans()):
        is_first_choice = Compare(0, Comparison.EQUAL, (0.0,))
        conditions[parameters[-1].name] = is_first_choice
    return SearchSpace(parameters, conditions=conditions)


ASK, TELL, FAIL, TELL_UNASKED, STOP = "ask", "tell", "fail", "tell unasked", "stop"
EVENTS = st.lists(
    # ASK twice, so that more is asked than told.
    st.sampled_from([ASK, ASK, TELL, FAIL, TELL_UNASKED, STOP]),
    min_size=4,
    max_size=16,
)


def let_happen(tuner: Optimiser, event: str, number: int) -> None:
    """Ask, or tell the value of something: its number modulo 3, so that some values are equal."""
    value = float(number % 3)
    if event == TELL_UNASKED:
        tuner.tell(tuner.space.sample(np.random.default_rng(number)), value)
    elif event == ASK or not tuner.pending:
        tuner.ask()
    else:
        config = tuner.pending[number % len(tuner.pending)]
        tuner.tell(config, None if event == FAIL else value)


class DependingOnOrder(Method):
    """Draws suggestions that depend on all that it was asked and told before, in order."""

    def ask(self):
        return self.space.sample(self.rng)

    def tell(self, config, loss):
        seed_of_result = zlib.crc32(repr((config, loss)).encode())
        self.rng = np.random.default_rng([seed_of_result, self.rng.integers(2**31)])


@pytest.mark.filterwarnings("ignore:.* suggests configurations again")
# The version of a user's method is a hash of many files, which takes long to compute.
@patch.object(optimiser_module, "method_version", new=lambda spec: "1")
@pytest.mark.parametrize("method", ["random-search", DependingOnOrder])
@given(space=spaces(), events=EVENTS, seed=st.integers(0, 99))
def test_stopped_tuning_continues_as_undisturbed(method, space, events, seed):
    """At each stop the optimiser is made again; one that is not recorded never stops."""
    options = {"space": space, "direction": "minimize", "seed": seed}
    record = {"history": InMemoryStorage(), "task": "May"}
    undisturbed = hbo.optimiser(method, **options)
    recorded = hbo.optimiser(method, **options, **record)

    for number, event in enumerate(events):
        if event == STOP:
            recorded = hbo.optimiser(method, **options, **record)
        else:
            let_happen(undisturbed, event, number)
            let_happen(recorded, event, number)

    restored = hbo.optimiser(method, **options, **record)
    # As text, for NaN is not equal to itself, and True is equal to 1.
    assert repr(recorded.trials) == repr(undisturbed.trials)
    assert repr(restored.trials) == repr(undisturbed.trials)
    assert restored.pending == undisturbed.pending
    assert repr(restored.ask()) == repr(undisturbed.ask())


def make_evaluations(**options) -> Evaluations:
    """Make a task of two evaluations."""
    space = SearchSpace([Parameter.number("x", 0, 1)])
    defaults = {"task": "May", "context": {}, "space": space, "direction": Direction.MINIMIZE}
    values = np.array([[0.25], [0.75]])
    return Evaluations(values=values, objective=np.array([1.0, 2.0]), **(defaults | options))


def make_tuner_of_may(storage: InMemoryStorage) -> Optimiser:
    space = {"x": (0.0, 1.0)}
    return hbo.optimiser(
        "random-search", space=space, direction="minimize", history=storage, task="May"
    )


def test_history_is_recorded_once():
    storage = InMemoryStorage()
    hbo.record_history([make_evaluations()], storage)
    with pytest.raises(StoreError, match=r"task 'May' in .* has trials already"):
        hbo.record_history([make_evaluations()], storage)
    (may,) = hbo.read_history(storage)
    assert len(may) == 2


def test_recorded_history_is_not_continued():
    """A recorded history cannot be continued as a task of an optimiser.

    Its evaluations are known, but not how they were suggested.
    """
    storage = InMemoryStorage()
    may = make_evaluations()
    hbo.record_history([may], storage)
    with pytest.raises(StoreError, match="was written by `record_history`"):
        hbo.optimiser("bo", space=may.space, direction="minimize", history=storage, task="May")


def test_suggestions_in_flight_are_not_read():
    """Suggestions without a result are not read as history; a warning tells how many there are."""
    storage = InMemoryStorage()
    tuner = make_tuner_of_may(storage)
    tuner.tell(tuner.ask(), 1.0)
    tuner.ask()
    with pytest.warns(HistoryWarning, match="1 evaluation not finished, and left out"):
        (may,) = hbo.read_history(storage)
    assert len(may) == 1


def test_trials_are_those_of_a_study():
    """Recorded trials are those of a study: other programs can read their states and values."""
    storage = InMemoryStorage()
    tuner = make_tuner_of_may(storage)
    tuner.tell(tuner.ask(), 1.0)
    tuner.tell(tuner.ask(), None)
    tuner.ask()
    tuner.tell({"x": 0.5}, 2.0)

    trials = optuna.load_study(study_name="May", storage=storage).trials

    assert [trial.params for trial in trials] == [trial.config for trial in tuner.trials]
    assert [trial.value for trial in trials] == [1.0, None, None, 2.0]
    complete, failed, running = TrialState.COMPLETE, TrialState.FAIL, TrialState.RUNNING
    assert [trial.state for trial in trials] == [complete, failed, running, complete]


SMALL = SearchSpace([Parameter.number("x", 0, 1)])


def tune(storage, task: str, values=(), *, space=SMALL, method="random-search", **options):
    """Make an optimiser that is recorded, and tell it configurations with their own x as value."""
    tuner = hbo.optimiser(
        method, space=space, direction="minimize", history=storage, task=task, **options
    )
    for x in values:
        tuner.tell({"x": x}, x)
    return tuner


@pytest.mark.filterwarnings("ignore:random-search does not use the history")
def test_earlier_task_may_go_on_when_a_later_one_was_begun():
    """What is evaluated in May after June was begun does not change the history of June."""
    storage = optuna.storages.InMemoryStorage()
    tune(storage, "May", [0.1, 0.2])
    tune(storage, "June", [0.3])
    tune(storage, "May", [0.4])
    assert len(tune(storage, "June", [0.5]).trials) == 2


@pytest.mark.filterwarnings("ignore:random-search does not use the history")
def test_context_is_recorded():
    """The context of a task is recorded by an optimiser, and by `record_history`."""
    storage = optuna.storages.InMemoryStorage()
    values = np.array([[0.1], [0.2]])
    may = Evaluations(
        "May", {"rows": 10.0}, values, np.zeros(2), space=SMALL, direction=hbo.Direction.MINIMIZE
    )
    hbo.record_history([may], storage)
    tune(storage, "June", [0.3, 0.4], context={"rows": 20})
    contexts = [evaluations.context for evaluations in hbo.read_history(storage)]
    assert contexts == [{"rows": 10}, {"rows": 20}]


def test_earlier_task_may_be_out_of_range():
    """Nothing of it can be used, which is said."""
    storage = optuna.storages.InMemoryStorage()
    tune(storage, "May", [0.8, 0.9])
    narrower = SearchSpace([Parameter.number("x", 0, 0.5)])
    with pytest.warns(HistoryWarning, match="2 of 2 evaluations are left out"):
        tuner = tune(storage, "June", space=narrower)
    assert tuner.settings["history"] == []


def test_interrupted_suggestion_ends_the_record(monkeypatch):
    """The method cannot be led through it again; a new optimiser goes on."""
    storage = optuna.storages.InMemoryStorage()
    tuner = tune(storage, "May", [0.1])

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(tuner._method, "ask", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tuner.ask()
    with pytest.raises(StoreError, match="make the optimiser again"):
        tuner.tell({"x": 0.2}, 0.2)
    assert len(tune(storage, "May", [0.2]).trials) == 2


URL_WITH_PASSWORD = "postgresql+nodriver://me:secret@localhost/tuning"


@pytest.mark.parametrize(
    "use", [lambda: tune(URL_WITH_PASSWORD, "May"), lambda: hbo.read_history(URL_WITH_PASSWORD)]
)
def test_password_is_not_in_messages(use):
    with pytest.raises((StoreError, EvaluationsError), match=r"me:\*\*\*@localhost") as caught:
        use()
    assert "secret" not in str(caught.value)
