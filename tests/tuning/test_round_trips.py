"""What one function or command writes, every other one reads, on spaces of all kinds."""

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import optuna
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered import Direction, Evaluations, Parameter, SearchSpace
from hpobench_ordered.cli import app
from hpobench_ordered.errors import HistoryWarning
from hpobench_ordered.space import Compare, Comparison
from hpobench_ordered.space.optuna_space import suggest_config
from hpobench_ordered.testing.toy import toy_benchmark
from hpobench_ordered.tuning import OptunaSampler, history_from_results

optuna.logging.set_verbosity(optuna.logging.ERROR)

CHOICES = [
    (None, "a", "b"),
    ("a", None),
    (True, False),
    (None, True, False),
    (0.1, 3, "sqrt"),
    ("(64, 64)", "(128,)"),
]
STEPS = [(10, 20, 30), (0.1, 0.2, 0.30000000000000004)]


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """A space of a float, an integer, steps and choices, two of them perhaps conditional."""
    parameters = [
        Parameter.choice("choice", draw(st.sampled_from(CHOICES))),
        Parameter.number("rate", 1e-5, 0.3, log=draw(st.booleans())),
        Parameter.number("depth", 1, 50, integer=True, log=draw(st.booleans())),
        Parameter.choice("step", draw(st.sampled_from(STEPS)), ordered=True),
        Parameter.choice("other", draw(st.sampled_from(CHOICES))),
    ]
    conditions = {}
    for name in draw(st.sets(st.sampled_from(["rate", "other"]))):
        code = float(draw(st.integers(0, len(parameters[0].choices) - 1)))
        conditions[name] = Compare(0, Comparison.EQUAL, (code,))
    constants = draw(st.sampled_from([{}, {"trees": 100}, {"weight": None}]))
    return SearchSpace(parameters, conditions=conditions, constants=constants)


@st.composite
def histories(draw: st.DrawFn) -> list[Evaluations]:
    """Two tasks of different configurations each, of which some failed."""
    space = draw(spaces())
    direction = draw(st.sampled_from(Direction))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    history = []
    for task in ("May", "June"):
        drawn = space.decode(space.sample_unit(rng, 6))
        first_row_of = {row.tobytes(): row for row in drawn}
        values = np.array(list(first_row_of.values()))
        objective = np.where(rng.random(len(values)) < 0.3, np.nan, rng.normal(size=len(values)))
        objective[0] = 0.5
        evaluations = Evaluations(task, {}, values, objective, space=space, direction=direction)
        history.append(evaluations)
    return history


def assert_equal(read: tuple[Evaluations, ...], history: list[Evaluations]) -> None:
    """Check that two histories have the same tasks, configurations, values and failures."""
    assert [evaluations.task for evaluations in read] == ["May", "June"]
    for evaluations, expected in zip(read, history, strict=True):
        assert evaluations.is_on(expected.space)
        assert evaluations.direction is expected.direction
        np.testing.assert_array_equal(evaluations.values, expected.values)
        np.testing.assert_array_equal(evaluations.objective, expected.objective)


@given(histories())
def test_frames_are_read_again(history):
    space, direction = history[0].space, history[0].direction
    frames = [evaluations.frame() for evaluations in history]
    assert_equal(hbo.read_history(frames, space, direction=direction), history)


@given(history=histories())
def test_csv_is_read_again(tmp_path_factory, history):
    space, direction = history[0].space, history[0].direction
    folder = tmp_path_factory.mktemp("csv")
    paths = []
    for evaluations in history:
        paths.append(folder / f"{evaluations.task}.csv.gz")
        evaluations.frame().to_csv(paths[-1], index=False)
    assert_equal(hbo.read_history(paths, space, direction=direction), history)


@given(histories())
def test_recorded_history_is_read_again(history):
    """The space is recorded, too, with its conditions, steps and order."""
    storage = optuna.storages.InMemoryStorage()
    hbo.record_history(history, storage)
    assert_equal(hbo.read_history(storage), history)
    assert_equal(hbo.read_history(storage, history[0].space), history)


@pytest.mark.filterwarnings("ignore:random-search does not use the history")
@given(histories())
def test_trials_of_an_optimiser_are_read_again(history):
    """As the table that it gives, and as the study that it records."""
    space, direction = history[0].space, history[0].direction
    storage = optuna.storages.InMemoryStorage()
    frames = []
    for evaluations in history:
        tuner = hbo.optimiser(
            "random-search",
            space=space,
            direction=direction,
            history=storage,
            task=evaluations.task,
        )
        configs = space.configs(evaluations.values)
        for config, value in zip(configs, evaluations.objective.tolist(), strict=True):
            tuner.tell(config, value)
        frames.append(tuner.frame().assign(task=evaluations.task))
    assert_equal(hbo.read_history(frames, space, direction=direction), history)
    assert_equal(hbo.read_history(storage), history)


@given(spaces())
def test_study_of_a_sampler_is_read_again(space):
    """The objective suggests what is active, and the method suggests it."""
    sampler = OptunaSampler("random-search", space=space)
    study = optuna.create_study(study_name="May", sampler=sampler)
    told = {}

    def objective(trial: optuna.Trial) -> float:
        config = suggest_config(trial, space)
        told[space.row(config).tobytes()] = value = float(trial.number)
        return value

    study.optimize(objective, n_trials=4)

    (may,) = hbo.read_history(study, space)
    if len(told) == 4:  # else equal configurations are merged
        assert {row.tobytes() for row in may.values} == set(told)


def test_choices_that_are_objects_survive_a_storage(tmp_path):
    """SQLite returns lists for tuples; a sampler gives the objective the tuple."""
    storage = f"sqlite:///{tmp_path}/old.db"
    with warnings.catch_warnings(action="ignore"):  # Optuna warns of tuples
        layers = optuna.distributions.CategoricalDistribution([(64, 64), (128,)])
        distributions = {"layers": layers}
        may = optuna.create_study(study_name="May", storage=storage)
        for value in (1.0, 0.0):
            trial = may.ask(distributions)
            may.tell(trial, value if trial.params["layers"] == (64, 64) else 2.0)

        history = hbo.read_history(storage)
        sampler = OptunaSampler("simple-ordered", space=distributions, history=history)
        first = optuna.create_study(sampler=sampler).ask(distributions)

    assert history[0].best["layers"] in ("(64, 64)", "(128,)")
    assert first.params["layers"] in [(64, 64), (128,)]


def test_suggestions_are_read_as_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    description = {"weight": [None, "balanced"], "rate": [0.1, 1.0, "log"]}
    Path("space.json").write_text(json.dumps(description))
    words = "suggest --space space.json --direction minimize --method random-search --trials 4"
    words += " --output next.csv"
    assert CliRunner().invoke(app, words.split()).exit_code == 0

    rows = list(csv.DictReader(Path("next.csv").read_text().splitlines()))
    with Path("this.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["weight", "rate", "objective"])
        writer.writeheader()
        writer.writerows({**row, "objective": 1.0} for row in rows)

    result = CliRunner().invoke(app, [*words.split(), "--results", "this.csv"])
    assert result.exit_code == 0, result.output
    assert {row["weight"] for row in rows} <= {"", "balanced"}


def test_results_of_a_run_are_read_again(tmp_path):
    """On a space with None, from the store and from its exported trials."""
    space = SearchSpace([Parameter.choice("weight", (None, "a")), Parameter.number("x", 0, 1)])
    benchmark = toy_benchmark(space, tasks=2)
    folder = tmp_path / "results"
    results = hbo.run(
        benchmarks=[benchmark], methods=["random-search"], seeds=[0], folder=folder, workers=0
    )

    history = history_from_results(results, method="random-search", seed=0, benchmark=benchmark)

    words = ["export", str(folder), "--output", str(tmp_path / "trials.csv")]
    assert CliRunner().invoke(app, words).exit_code == 0
    with pytest.warns(HistoryWarning) as caught:
        read = hbo.read_history(
            tmp_path / "trials.csv",
            space,
            objective="value",
            task="task_name",
            direction=benchmark.objective.direction,
        )
    assert "'config.weight' as 'weight'" in str(caught[0].message)
    for evaluations, of_store in zip(read, history, strict=True):
        np.testing.assert_array_equal(evaluations.values, of_store.values)
        assert (evaluations.values[:, 0] == 0).any()  # None
