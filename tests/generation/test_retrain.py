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

# A stream is cut into periods, here months; the model of a period is trained on those before, as
# many as the window says.
MONTHS = 6
RIDGE = "sklearn.linear_model:Ridge"
TREES = "sklearn.ensemble:ExtraTreesRegressor"


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    """The path of a CSV file: two rows a day for half a year, shuffled, some numbers missing.

    The price grows with x, from month to month more.
    """
    rng = np.random.default_rng(1)
    dates = pd.date_range("2024-01-01", "2024-06-30", freq="12h")
    x, z = rng.normal(size=(len(dates), 2)).T
    slope = dates.month.to_numpy() / 3
    frame = pd.DataFrame({"date": dates.strftime("%Y-%m-%d %H:%M"), "x": x})
    frame["z"] = np.where(rng.random(len(dates)) < 0.02, np.nan, z)
    frame["kind"] = np.where(z > 0, "up", "down")
    frame["price"] = 100 + 10 * (slope * x + rng.normal(size=len(dates)))
    path = tmp_path_factory.mktemp("stream") / "prices.csv"
    frame.sample(frac=1, random_state=0).to_csv(path, index=False)
    return path


def read_prices(path: Path, every: str = "month") -> Stream:
    """The stream of the file, cut by month, or by so many rows."""
    return read_stream(path, target="price", time="date", every=every)


def make_trainer(
    stream: Stream,
    *,
    longest_window: int = 3,
    failures: Failures = Failures.STOP,
    path: str = RIDGE,
    seed: int = 0,
    **fixed: Any,
) -> RetrainTrainer:
    """By default, a trainer of ridge regressions on up to three months, which stops at a failure.

    With a window of three, April to June of the six months are predicted.
    """
    model = Model.from_path(path, fixed=fixed, seed=seed)
    metric = Metric(PredictionKind.REGRESSION, "neg_mean_absolute_error")
    return RetrainTrainer(stream, model, metric, longest_window=longest_window, failures=failures)


# -- streams ---------------------------------------------------------------------------------------


def test_rows_are_cut_by_the_calendar(prices):
    stream = read_prices(prices, every="month")

    assert stream.names == tuple(f"2024-{month:02d}" for month in range(1, MONTHS + 1))
    rows_of_periods = np.diff(stream.starts)
    # Two rows a day; the last day has one.
    assert rows_of_periods.tolist() == [62, 58, 62, 60, 62, 59]


def test_rows_are_in_the_order_of_time(prices):
    stream = read_prices(prices)

    table = pd.read_csv(prices).sort_values("date")
    assert stream.data.target.tolist() == table["price"].tolist()


def test_times_are_no_feature(prices):
    data = read_prices(prices).data

    # Two numbers and one category are left.
    assert data.numbers.shape[1] == 2
    assert data.categories.shape[1] == 1


def test_rows_are_cut_by_their_number(prices):
    stream = read_prices(prices, every="100")

    rows_of_periods = np.diff(stream.starts)
    # Of 363 rows.
    assert rows_of_periods.tolist() == [100, 100, 100, 63]
    assert stream.names == ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"every": "months"}, UnknownNameError, "did you mean 'month'"),
        ({"time": "dates"}, UnknownNameError, "did you mean 'date'"),
        ({"time": "kind"}, ArtifactError, "cannot be read as dates"),
        ({"every": "year"}, ExperimentError, r"all rows of .* are of one year"),
    ],
)
def test_other_streams_are_refused(prices, options, error, message):
    """All dates of the file are in the first half of 2024."""
    with pytest.raises(error, match=message):
        read_stream(prices, **{"target": "price", "time": "date", "every": "month", **options})


def test_too_long_window_is_refused(prices):
    # After five of six months there would be only one to predict.
    with pytest.raises(ExperimentError, match=r"6 periods; .* on 1 to 4 of them, but got 5"):
        make_trainer(read_prices(prices), longest_window=5)


# -- training --------------------------------------------------------------------------------------


def compute_ridge_error(
    past: pd.DataFrame, present: pd.DataFrame, weights: pd.Series | None, alpha: float
) -> float:
    """Mean absolute error on the present of a ridge regression on the past, by scikit-learn alone.

    Missing numbers are replaced by the past's median; inputs and prices are standardised.
    """
    median = past["z"].median()

    def make_inputs(rows: pd.DataFrame) -> np.ndarray:
        return np.column_stack([rows["x"], rows["z"].fillna(median), rows["kind"] == "up"])

    input_scaler = StandardScaler().fit(make_inputs(past))
    output_scaler = StandardScaler().fit(past[["price"]])
    model = Ridge(alpha=alpha)
    model.fit(
        input_scaler.transform(make_inputs(past)),
        output_scaler.transform(past[["price"]]),
        sample_weight=weights,
    )
    scaled_prediction = model.predict(input_scaler.transform(make_inputs(present))).reshape(-1, 1)
    prediction = output_scaler.inverse_transform(scaled_prediction)
    return float(mean_absolute_error(present["price"], prediction))


@pytest.mark.parametrize("half_life", [None, 0.7])
@pytest.mark.parametrize("window", [1, 3])
def test_values_are_scikit_learns(prices, window, half_life):
    """Error of each month from April on, after training on the months of the window before.

    With a half-life, an older month weighs less.
    """
    config = {"alpha": 5.0, "window": window}
    if half_life is not None:
        config["half_life"] = half_life

    values = make_trainer(read_prices(prices))(config, "0")["values"]

    table = pd.read_csv(prices).sort_values("date")
    month = pd.to_datetime(table["date"]).dt.month
    expected = []
    for now in range(4, MONTHS + 1):
        past = table[(month >= now - window) & (month < now)]
        present = table[month == now]
        age = now - 1 - month[past.index]  # of the last month 0
        weights = None if half_life is None else 0.5 ** (age / half_life)
        expected.append(compute_ridge_error(past, present, weights, alpha=5.0))
    assert values == pytest.approx(expected, rel=1e-9)


def test_place_of_job_is_the_seed(prices):
    """Trainings run as jobs at a place; here the place, a number as text, is the seed."""
    trainer = make_trainer(read_prices(prices), path=TREES, n_estimators=3)

    values = trainer({"max_depth": 4}, "0")["values"]

    assert trainer({"max_depth": 4}, "0")["values"] == values
    assert trainer({"max_depth": 4}, "1")["values"] != values


def test_failure_stops_the_training(prices):
    """A ridge regression refuses a negative alpha; April is the first month to predict."""
    trainer = make_trainer(read_prices(prices))

    with pytest.raises(TrainingError, match="failed on the rows before 2024-04:"):
        trainer({"alpha": -1.0}, "0")


def test_failure_may_count_as_worst(prices):
    """A ridge regression refuses a negative alpha, so none of three months has a value."""
    trainer = make_trainer(read_prices(prices), failures=Failures.WORST)

    outcome = trainer({"alpha": -1.0}, "0")

    assert outcome["values"] == [None, None, None]
    assert "alpha" in outcome["failure"]


# -- benchmarks of users' own ----------------------------------------------------------------------


@pytest.fixture
def own_benchmarks(tmp_path, monkeypatch):
    """An empty folder of the user's own benchmarks."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    return tmp_path


def call_retrain(prices: Path, *options: str) -> Result:
    """Run the command that generates the benchmark `prices`, of ridge regressions on months."""
    words = ["generate", "retrain", "--model", RIDGE, "--data", str(prices), "--time", "date"]
    words += ["--every", "month", "--name", "prices", *options]
    return CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.fixture
def options(own_benchmarks):
    """Options of a benchmark of twelve configurations of alpha and window."""
    space = hbo.SearchSpace([hbo.Parameter.number("alpha", 1e-3, 1e3, log=True)])
    (own_benchmarks / "space.json").write_text(json.dumps(space.to_json()))
    return (
        *("--window", "1-3", "--space", str(own_benchmarks / "space.json"), "--configs", "12"),
        *("--metric", "neg_mean_absolute_error", "--time-format", "%Y-%m-%d %H:%M"),
        *("--workers", "1"),
    )


@pytest.mark.slow
@pytest.mark.usefixtures("own_benchmarks")
def test_one_command_makes_a_benchmark(prices, options):
    result = call_retrain(prices, *options)

    assert result.exit_code == 0, result.output
    benchmark = hbo.load("prices")
    assert [task.name for task in benchmark.tasks] == ["2024-04", "2024-05", "2024-06"]
    # Periods count from 0; three come before the first to predict.
    assert dict(benchmark.tasks[0].context) == {"period": 3.0}
    assert benchmark.space.names == ("alpha", "window")
    check_benchmark("prices")


@pytest.mark.slow
def test_command_writes_card(prices, own_benchmarks, options):
    call_retrain(prices, *options)

    card = json.loads((own_benchmarks / "prices" / "card.json").read_text())
    assert card["comparisons"]["copying"]["median_share"] >= 0
    assert "--time date --time-format '%Y-%m-%d %H:%M' --every month" in card["command"]


@pytest.mark.slow
def test_command_writes_table(prices, own_benchmarks, options):
    """Of twelve configurations on each of three tasks."""
    call_retrain(prices, *options)

    path = own_benchmarks / "prices-evaluations.parquet"
    table = read_raw(path, benchmark="prices", space=hbo.load("prices").space)
    assert [len(raw) for raw in table.tasks.values()] == [12, 12, 12]


@pytest.mark.slow
def test_continuing_gives_the_same_artifact(prices, own_benchmarks, options):
    """Every second stored training is lost; the others are not trained again."""
    call_retrain(prices, *options)
    artifact = own_benchmarks / "prices"
    content = {path.name: path.read_bytes() for path in artifact.iterdir()}
    trainings = sorted((own_benchmarks / "prices-evaluations").rglob("*.json"))
    for path in trainings[::2]:
        path.unlink()
    kept_training = trainings[1]
    os.utime(kept_training, ns=(1, 1))  # a time to tell it by

    result = call_retrain(prices, *options, "--replace")

    assert result.exit_code == 0, result.output
    assert {path.name: path.read_bytes() for path in artifact.iterdir()} == content
    assert kept_training.stat().st_mtime_ns == 1


def test_impossible_window_is_a_usage_error(prices):
    # A range must ascend.
    result = call_retrain(prices, "--window", "3-1")

    assert result.exit_code == 2  # of usage errors
    assert "number or range such as 3 or 1-6, but got '3-1'" in result.output


def test_too_long_window_starts_nothing(prices, own_benchmarks):
    """Windows of up to nine periods, of a stream of six."""
    spec = Retrain(
        name="p", model=RIDGE, data=str(prices), time="date", every="month", window=(1, 9)
    )

    with pytest.raises(ExperimentError, match="got 9"):
        generate_retrain(spec)

    assert list(own_benchmarks.iterdir()) == []


def test_public_stream_needs_its_file(tmp_path):
    # The first generator is that of the stream of electricity.
    generator = retrain.GENERATORS[0]

    with pytest.raises(ExperimentError, match=r"needs a folder with electricity\.parquet"):
        generator.generate(tmp_path / generator.name)


# -- figures on the card ---------------------------------------------------------------------------


@given(seed=st.integers(0, 99))
def test_correlation_by_lag_is_scipys(seed):
    """The mean rank correlation of losses, (configurations, tasks), of tasks so far apart."""
    losses = np.random.default_rng(seed).normal(size=(8, 4))

    correlations = figures.compute_correlation_by_lag(losses)

    # Of the lags that are computed, 1, 2, 5 and 10, four tasks have these.
    assert list(correlations) == [1, 2]
    # Tasks 0 and 2, and tasks 1 and 3.
    first_pair = spearmanr(losses[:, 0], losses[:, 2]).statistic
    second_pair = spearmanr(losses[:, 1], losses[:, 3]).statistic
    assert correlations[2] == pytest.approx((first_pair + second_pair) / 2)


def draw_repeated_losses(noise_share: float) -> np.ndarray:
    """Random losses, (seeds, configurations, tasks), of whose variance, 1, a share is noise."""
    rng = np.random.default_rng(0)
    # Three seeds, 400 configurations and five tasks.
    means = rng.normal(size=(400, 5)) * np.sqrt(1 - noise_share)
    noise = rng.normal(size=(3, 400, 5)) * np.sqrt(noise_share)
    return means + noise


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
def test_noise_share_is_estimated(share):
    """Noise is what differs between seeds."""
    losses = draw_repeated_losses(share)

    assert figures.compute_noise_share(losses) == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
def test_means_over_seeds_have_less_noise(share):
    losses = draw_repeated_losses(share)

    share_in_means = figures.compute_noise_share(losses, averaged=2)

    # The mean of two halves the variance of noise, so that of all becomes 1 - share / 2.
    expected = (share / 2) / (1 - share / 2)
    assert share_in_means == pytest.approx(expected, abs=0.05)


def test_agreement_of_seeds_is_scipys():
    """Rank correlation of losses with two seeds, of eleven configurations on one task."""
    repeated = np.random.default_rng(0).normal(size=(2, 11, 1))
    first, second = repeated[:, :, 0]

    agreement, agreement_in_better_half = figures.compute_agreement(repeated)

    assert agreement == pytest.approx(spearmanr(first, second).statistic)
    # The better half, five of eleven, by the one seed, then by the other.
    in_halves = []
    for half in (np.argsort(first)[:5], np.argsort(second)[:5]):
        in_halves.append(spearmanr(first[half], second[half]).statistic)
    assert agreement_in_better_half == pytest.approx(np.mean(in_halves))


@pytest.mark.parametrize(("averaged", "share"), [(1, 0.5), (2, 0.25)])
def test_configurations_within_noise_are_counted(averaged, share):
    """Share of configurations whose loss is within two standard deviations of noise of the best.

    Two seeds 0.2 apart have a standard deviation of 0.1 times the root of 2: 0.14. Twice that
    includes the first two of four configurations; for means of two seeds, the best alone.
    """
    smooth = np.array([[1.0], [1.27], [1.29], [2.0]])
    repeated = np.stack([smooth - 0.1, smooth + 0.1])
    repeated[:, 3] += [[-9], [9]]  # the noise of the worse half does not count

    shares = figures.compute_shares_within_noise(smooth, repeated, averaged=averaged)

    assert shares.tolist() == [share]


# -- means over seeds, and recorded evaluations ----------------------------------------------------


@pytest.fixture
def averaged_plan(prices):
    """A plan of twelve configurations of trees, each trained with the seeds 4, 5 and 6."""
    trainer = make_trainer(read_prices(prices), path=TREES, seed=4, n_estimators=2)
    space = hbo.SearchSpace([hbo.Parameter.number("max_depth", 1, 9, integer=True)])
    return RetrainPlan(trainer, space, configurations=12, seed=4, averaged=3)


@pytest.fixture
def averaged_artifact(averaged_plan, tmp_path):
    """The folder of a benchmark of this plan, whose values are means over three seeds."""
    benchmark = define_benchmark(
        "mean",
        "",
        averaged_plan.space,
        STREAMS["bike_sharing"].objective,
        averaged_plan.trainer.contexts,
        source="here",
        licence="CC0",
    )
    request = Request(folder=tmp_path / "mean", seed=4)
    coding = space_coding(averaged_plan.space)
    return retrain._train_and_write(averaged_plan, benchmark, request, ("retrain",), coding)


@pytest.mark.slow
def test_values_may_be_means_over_seeds(averaged_plan, averaged_artifact):
    """Mean and standard deviation over the seeds 4, 5 and 6; here of the first configuration."""
    first_config = averaged_plan.space.configs(averaged_plan.values)[0]

    with np.load(averaged_artifact / "evaluations.npz") as stored:
        arrays = dict(stored)

    np.testing.assert_array_equal(arrays["values"][0], averaged_plan.values[0])
    values_of_seeds = []
    for seed in (4, 5, 6):
        values_of_seeds.append(averaged_plan.trainer(first_config, str(seed))["values"])
    for task, values in enumerate(np.transpose(values_of_seeds)):
        assert arrays[f"{task}/objective"][0] == pytest.approx(values.mean())
        assert arrays[f"{task}/spread"][0] == pytest.approx(values.std(ddof=1))


@pytest.mark.slow
def test_card_tells_of_several_seeds(averaged_artifact):
    card = json.loads((averaged_artifact / "card.json").read_text())

    assert any("trained 3 times, with seeds 4, 5, 6," in limit for limit in card["limits"])
    assert "of that of means of 3" in card["comparisons"]["other seeds"]["explanation"]
    assert card["comparisons"]["copying"]["median_share_on_forest"] >= 0
    # Rank correlation among the better half.
    assert all(-1 <= task["upper_half"] <= 1 for task in card["figures"])


@pytest.mark.slow
@pytest.mark.parametrize("retraining", RETRAINING, ids=lambda retraining: retraining.name)
def test_recorded_evaluations_can_be_repeated(retraining, shared):
    """Two random evaluations of each packaged benchmark are trained again."""
    if retraining.learner == "xgboost":
        pytest.importorskip("xgboost")
    plan = retrain.make_plan(retraining, shared / "data" / "streams")
    benchmark = hbo.load(retraining.name)
    assert benchmark.recorded is not None
    recorded = benchmark.recorded()
    configs = plan.space.configs(plan.values)
    # Different ones for each benchmark.
    rng = np.random.default_rng([7, *retraining.name.encode()])
    for row in rng.choice(len(plan.values), 2, replace=False).tolist():
        task = int(rng.integers(len(benchmark.tasks)))
        period = plan.trainer.tasks[task]

        values = []
        for seed in range(plan.averaged):
            value, _ = plan.trainer.train(configs[row], period, seed=seed)
            values.append(value)

        np.testing.assert_array_equal(recorded[task].values[row], plan.values[row])
        expected = benchmark.objective.loss(float(np.mean(values)))
        assert recorded[task].losses[row] == pytest.approx(expected, rel=1e-6)
