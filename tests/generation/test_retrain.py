"""Benchmarks of retraining: streams, what a period's model is trained on, and the artifact."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error
from sklearn.preprocessing import StandardScaler

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.retrain import RETRAINING, STREAMS
from hpobench_ordered.cli import app
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
from hpobench_ordered.files.local import LOCAL_VARIABLE
from hpobench_ordered.generation import retrain
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.split import PredictionKind
from hpobench_ordered.generation._custom.training import Failures, Metric, TrainingError
from hpobench_ordered.generation._custom.writing import define_benchmark
from hpobench_ordered.generation._raw import read_raw
from hpobench_ordered.generation._retrain import figures
from hpobench_ordered.generation._retrain.plan import RetrainPlan
from hpobench_ordered.generation._retrain.streams import Stream, read_stream
from hpobench_ordered.generation._retrain.training import RetrainTrainer
from hpobench_ordered.generation.base import Request
from hpobench_ordered.generation.retrain import Retrain, generate_retrain
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.testing import check_benchmark

MONTHS = 6
RIDGE, TREES = "sklearn.linear_model:Ridge", "sklearn.ensemble:ExtraTreesRegressor"


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    """Half a year of days whose slope drifts, shuffled, with a missing number."""
    rng = np.random.default_rng(1)
    dates = pd.date_range("2024-01-01", "2024-06-30", freq="12h")
    x = rng.normal(size=(len(dates), 2))
    slope = dates.month.to_numpy() / 3
    frame = pd.DataFrame({"date": dates.strftime("%Y-%m-%d %H:%M"), "x": x[:, 0]})
    frame["z"] = np.where(rng.random(len(dates)) < 0.02, np.nan, x[:, 1])
    frame["kind"] = np.where(x[:, 1] > 0, "up", "down")
    frame["price"] = 100 + 10 * (slope * x[:, 0] + rng.normal(size=len(dates)))
    path = tmp_path_factory.mktemp("stream") / "prices.csv"
    frame.sample(frac=1, random_state=0).to_csv(path, index=False)
    return path


def _stream(path: Path, every: str = "month") -> Stream:
    return read_stream(path, target="price", time="date", every=every)


def _trainer(
    stream: Stream,
    *,
    longest: int = 3,
    failures: Failures = Failures.STOP,
    path: str = RIDGE,
    seed: int = 0,
    **fixed: Any,
) -> RetrainTrainer:
    model = Model.from_path(path, fixed=fixed, seed=seed)
    metric = Metric(PredictionKind.REGRESSION, "neg_mean_absolute_error")
    return RetrainTrainer(stream, model, metric, longest_window=longest, failures=failures)


def test_rows_are_sorted_and_cut_by_the_calendar(prices):
    stream = _stream(prices)
    assert stream.names == tuple(f"2024-{month:02d}" for month in range(1, MONTHS + 1))
    assert np.diff(stream.starts).tolist() == [62, 58, 62, 60, 62, 59]
    table = pd.read_csv(prices).sort_values("date")
    assert stream.data.target.tolist() == table["price"].tolist()
    assert stream.data.numbers.shape[1] == 2  # the times are no feature
    stream = _stream(prices, "100")
    assert np.diff(stream.starts).tolist() == [100, 100, 100, 63]
    assert stream.names == ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"every": "months"}, UnknownNameError, "did you mean 'month'"),
        ({"time": "dates"}, UnknownNameError, "did you mean 'date'"),
        ({"time": "kind"}, ArtifactError, "cannot be read as dates"),
        ({"every": "year"}, ExperimentError, r"all rows of .* are of one year"),
        ({"longest": 5}, ExperimentError, r"6 periods; .* on 1 to 4 of them, but got 5"),
    ],
)
def test_what_is_no_stream_is_refused(prices, options, error, message):
    longest = options.pop("longest", 1)
    options = {"target": "price", "time": "date", "every": "month"} | options
    with pytest.raises(error, match=message):
        _trainer(read_stream(prices, **options), longest=longest)


@pytest.mark.parametrize("half_life", [None, 0.7])
@pytest.mark.parametrize("window", [1, 3])
def test_a_value_is_that_of_scikit_learn_itself(prices, window, half_life):
    """Every period again, with pandas and scikit-learn alone."""
    config = {"alpha": 5.0, "window": window} | ({"half_life": half_life} if half_life else {})
    values = _trainer(_stream(prices))(config, "0")["values"]
    table = pd.read_csv(prices).sort_values("date")
    month = pd.to_datetime(table["date"]).dt.month
    expected = []
    for now in range(4, MONTHS + 1):
        past, present = table[(month >= now - window) & (month < now)], table[month == now]
        median = past["z"].median()
        x, x_now = (
            np.column_stack([part["x"], part["z"].fillna(median), part["kind"] == "up"])
            for part in (past, present)
        )
        inputs, outputs = StandardScaler().fit(x), StandardScaler().fit(past[["price"]])
        age = now - 1 - month[past.index]
        weights = None if half_life is None else 0.5 ** (age / half_life)
        model = Ridge(alpha=5.0).fit(
            inputs.transform(x), outputs.transform(past[["price"]]), sample_weight=weights
        )
        predicted = model.predict(inputs.transform(x_now)).reshape(-1, 1)
        back = outputs.inverse_transform(predicted)
        expected.append(mean_absolute_error(present["price"], back))
    assert values == pytest.approx(expected, rel=1e-9)


def test_the_place_of_a_job_is_the_seed_of_the_model(prices):
    trainer = _trainer(_stream(prices), path=TREES, n_estimators=3)
    first, again, other = (trainer({"max_depth": 4}, seed)["values"] for seed in ("0", "0", "1"))
    assert first == again != other


def test_failures_stop_everything_or_count_as_worst(prices):
    stream, config = _stream(prices), {"alpha": -1.0}
    with pytest.raises(TrainingError, match="failed on the rows before 2024-04:"):
        _trainer(stream)(config, "0")
    outcome = _trainer(stream, failures=Failures.WORST)(config, "0")
    assert outcome["values"] == [None, None, None]
    assert "alpha" in outcome["failure"]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The folder of the user's own benchmarks."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    return tmp_path


def _command(prices: Path, *options: str) -> Result:
    words = ["generate", "retrain", "--model", RIDGE, "--data", str(prices), "--time", "date"]
    words += ["--every", "month", "--name", "prices", *options]
    return CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.mark.slow
def test_a_stream_of_ones_own_becomes_a_benchmark_in_one_command(prices, mine):
    """Trained, killed half way and continued, or all at once: the same artifact."""
    space = hbo.SearchSpace([hbo.Parameter.number("alpha", 1e-3, 1e3, log=True)])
    (mine / "space.json").write_text(json.dumps(space.to_json()))
    words = ["--window", "1-3", "--space", str(mine / "space.json"), "--configs", "12"]
    words += ["--metric", "neg_mean_absolute_error", "--time-format", "%Y-%m-%d %H:%M"]
    ran = _command(prices, *words, "--workers", "1")
    assert ran.exit_code == 0, ran.output
    benchmark = hbo.load("prices")
    assert [task.name for task in benchmark.tasks] == ["2024-04", "2024-05", "2024-06"]
    assert dict(benchmark.tasks[0].context) == {"period": 3.0}
    assert benchmark.space.names == ("alpha", "window")
    check_benchmark("prices")
    card = json.loads((mine / "prices" / "card.json").read_text())
    assert card["comparisons"]["copying"]["median_share"] >= 0
    assert "--time date --time-format '%Y-%m-%d %H:%M' --every month" in card["command"]
    before = {path.name: path.read_bytes() for path in (mine / "prices").iterdir()}
    trained = sorted((mine / "prices-evaluations").rglob("*.json"))
    for path in trained[::2]:
        path.unlink()
    os.utime(trained[1], ns=(1, 1))
    ran = _command(prices, *words, "--workers", "1", "--replace")
    assert ran.exit_code == 0, ran.output
    assert trained[1].stat().st_mtime_ns == 1  # not trained again
    assert {path.name: path.read_bytes() for path in (mine / "prices").iterdir()} == before
    table = read_raw(mine / "prices-evaluations.parquet", benchmark="prices", space=benchmark.space)
    assert [len(raw) for raw in table.tasks.values()] == [12, 12, 12]


def test_impossible_requests_are_refused(prices, mine):
    ran = _command(prices, "--window", "3-1")
    assert ran.exit_code == 2
    assert "number or range such as 3 or 1-6, but got '3-1'" in ran.output
    options = {"name": "p", "model": RIDGE, "data": str(prices), "time": "date", "every": "month"}
    with pytest.raises(ExperimentError, match="got 9"):
        generate_retrain(Retrain(window=(1, 9), **options))
    generator = retrain.GENERATORS[0]
    with pytest.raises(ExperimentError, match=r"needs a folder with electricity\.parquet"):
        generator.generate(mine / generator.name)


@given(seed=st.integers(0, 99))
def test_rank_correlation_by_lag_is_scipys(seed):
    losses = np.random.default_rng(seed).normal(size=(8, 4))
    found = figures.compute_correlation_by_lag(losses)
    assert list(found) == [1, 2]
    by_hand = [spearmanr(losses[:, t], losses[:, t + 2]).statistic for t in range(2)]
    assert found[2] == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
def test_the_share_of_the_seeds_in_the_variance_is_found(share):
    rng = np.random.default_rng(0)
    means = rng.normal(size=(400, 5)) * np.sqrt(1 - share)
    repeated = means + rng.normal(size=(3, 400, 5)) * np.sqrt(share)
    assert figures.compute_noise_share(repeated) == pytest.approx(share, abs=0.05)
    of_means = (share / 2) / (1 - share / 2)  # means over seeds have less of it
    assert figures.compute_noise_share(repeated, averaged=2) == pytest.approx(of_means, abs=0.05)


def test_how_alike_two_seeds_rank_is_scipys():
    one, other = repeated = np.random.default_rng(0).normal(size=(2, 11, 1))
    everywhere, better = figures.compute_agreement(repeated)
    assert everywhere == pytest.approx(spearmanr(one, other).statistic)
    halves = [np.argsort(seed[:, 0])[:5] for seed in repeated]
    by_hand = [spearmanr(one[half], other[half]).statistic for half in halves]
    assert better == pytest.approx(np.mean(by_hand))


def test_what_lies_within_the_noise_of_the_best_is_counted():
    """Two seeds 0.2 apart have a standard deviation of 0.1 times the root of 2."""
    smooth = np.array([[1.0], [1.27], [1.29], [2.0]])
    repeated = np.stack([smooth - 0.1, smooth + 0.1])
    repeated[:, 3] += [[-9], [9]]  # the worse half says nothing of the noise near the best
    assert figures.compute_shares_within_noise(smooth, repeated).tolist() == [0.5]
    assert figures.compute_shares_within_noise(smooth, repeated, averaged=2).tolist() == [0.25]


@pytest.mark.slow
def test_a_value_may_be_the_mean_over_seeds(prices, tmp_path):
    trainer = _trainer(_stream(prices), path=TREES, seed=4, n_estimators=2)
    space = hbo.SearchSpace([hbo.Parameter.number("max_depth", 1, 9, integer=True)])
    plan = RetrainPlan(trainer, space, configurations=12, seed=4, averaged=3)
    objective = STREAMS["bike_sharing"].objective
    defined = define_benchmark(
        "mean", "", space, objective, trainer.contexts, source="here", licence="CC0"
    )
    request = Request(folder=tmp_path / "mean", seed=4)
    folder = retrain._train_and_write(plan, defined, request, ("retrain",), space_coding(space))
    (config, *_), (row, *_) = plan.space.configs(plan.values), plan.values
    trained = [plan.trainer(config, str(seed))["values"] for seed in (4, 5, 6)]
    with np.load(folder / "evaluations.npz") as stored:
        np.testing.assert_array_equal(stored["values"][0], row)
        for task, values in enumerate(np.transpose(trained)):
            assert stored[f"{task}/objective"][0] == pytest.approx(values.mean())
            assert stored[f"{task}/spread"][0] == pytest.approx(values.std(ddof=1))
    card = json.loads((folder / "card.json").read_text())
    assert any("trained 3 times, with seeds 4, 5, 6," in limit for limit in card["limits"])
    assert "of that of means of 3" in card["comparisons"]["other seeds"]["explanation"]
    assert card["comparisons"]["copying"]["median_share_on_forest"] >= 0
    assert all(-1 <= task["upper_half"] <= 1 for task in card["figures"])


@pytest.mark.slow
@pytest.mark.parametrize("retraining", RETRAINING, ids=lambda retraining: retraining.name)
def test_recorded_evaluations_are_trained_again_with_the_same_result(retraining, shared):
    """Two random ones of each of the thirteen benchmarks."""
    if retraining.learner == "xgboost":
        pytest.importorskip("xgboost")
    plan = retrain.make_plan(retraining, shared / "data" / "streams")
    loaded = hbo.load(retraining.name)
    assert loaded.recorded is not None
    recorded = loaded.recorded()
    rng = np.random.default_rng([7, *retraining.name.encode()])
    for row in rng.choice(len(plan.values), 2, replace=False).tolist():
        task = int(rng.integers(len(loaded.tasks)))
        config = plan.space.configs(plan.values)[row]
        values = [
            plan.trainer.train(config, plan.trainer.tasks[task], seed=seed)[0]
            for seed in range(plan.averaged)
        ]
        np.testing.assert_array_equal(recorded[task].values[row], plan.values[row])
        loss = loaded.objective.loss(float(np.mean(values)))
        assert recorded[task].losses[row] == pytest.approx(loss, rel=1e-6)
