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
from hpobench_ordered._typing import Config
from hpobench_ordered.benchmarks.retrain import RETRAINING, STREAMS
from hpobench_ordered.cli import app
from hpobench_ordered.data.local import LOCAL_VARIABLE
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
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
RIDGE_CLASS = "sklearn.linear_model:Ridge"
TREES_CLASS = "sklearn.ensemble:ExtraTreesRegressor"

# Trainings are given their seed as text.
SEED_0, SEED_1 = "0", "1"


@pytest.fixture(scope="module")
def prices_path(tmp_path_factory):
    """Path of a CSV file with dates, prices, and inputs that tell something about the prices.

    There are two rows a day for half a year, shuffled, and some inputs z are missing. The price
    grows with x, from month to month more.
    """
    rng = np.random.default_rng(1)
    dates = pd.date_range("2024-01-01", "2024-06-30", freq="12h")
    x, z = rng.normal(size=(len(dates), 2)).T
    has_no_z = rng.random(len(dates)) < 0.02
    noise = rng.normal(size=len(dates))
    slope = dates.month.to_numpy() / 3
    frame = pd.DataFrame(
        {
            "date": dates.strftime("%Y-%m-%d %H:%M"),
            "x": x,
            "z": np.where(has_no_z, np.nan, z),
            "kind": np.where(z > 0, "up", "down"),
            "price": 100 + 10 * (slope * x + noise),
        }
    )
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
    path: str = RIDGE_CLASS,
    seed: int = 0,
    **fixed: Any,
) -> RetrainTrainer:
    """Make a trainer, by default of ridge regressions on three months, that stops at a failure.

    With a longest window of three, April to June of the six months are predicted.
    """
    model = Model.from_path(path, fixed=fixed, seed=seed)
    metric = Metric(PredictionKind.REGRESSION, "neg_mean_absolute_error")
    return RetrainTrainer(stream, model, metric, longest_window=longest_window, failures=failures)


# -- streams ---------------------------------------------------------------------------------------


def test_rows_are_cut_by_the_calendar(prices_path):
    """Each month is a period, with two rows a day; the last day of the file has one."""
    stream = read_prices(prices_path, every="month")

    assert stream.names == tuple(f"2024-{month:02d}" for month in range(1, MONTHS + 1))
    rows_of_periods = np.diff(stream.starts)
    assert rows_of_periods.tolist() == [62, 58, 62, 60, 62, 59]


def test_rows_are_in_the_order_of_time(prices_path):
    """The file is shuffled; a stream sorts its rows by date."""
    stream = read_prices(prices_path)

    table = pd.read_csv(prices_path).sort_values("date")
    assert stream.data.target.tolist() == table["price"].tolist()


def test_times_are_no_feature(prices_path):
    """Of the columns the date and the target, the price, are left out."""
    data = read_prices(prices_path).data

    assert data.numbers.shape[1] == len(["x", "z"])
    assert data.categories.shape[1] == len(["kind"])


def test_rows_are_cut_by_their_number(prices_path):
    """Each 100 of the 363 rows are a period, and the rest one more; periods are numbered."""
    stream = read_prices(prices_path, every="100")

    rows_of_periods = np.diff(stream.starts)
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
def test_other_streams_are_refused(prices_path, options, error, message):
    """An option that does not fit the file is refused; all its dates are of one year."""
    with pytest.raises(error, match=message):
        read_stream(prices_path, **{"target": "price", "time": "date", "every": "month", **options})


def test_too_long_window_is_refused(prices_path):
    """After a window of five of the six months there would be only one to predict."""
    with pytest.raises(ExperimentError, match=r"6 periods; .* on 1 to 4 of them, but got 5"):
        make_trainer(read_prices(prices_path), longest_window=5)


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
def test_values_are_scikit_learns(prices_path, window, half_life):
    """A month's value is the error of a model that was trained on the window of months before.

    With a half-life, an older month weighs less. The first month to predict is April.
    """
    config = {"alpha": 5.0, "window": window}
    if half_life is not None:
        config["half_life"] = half_life

    values = make_trainer(read_prices(prices_path))(config, SEED_0)["values"]

    table = pd.read_csv(prices_path).sort_values("date")
    month = pd.to_datetime(table["date"]).dt.month
    expected = []
    for now in range(4, MONTHS + 1):
        past = table[(month >= now - window) & (month < now)]
        present = table[month == now]
        age = now - 1 - month[past.index]  # of the last month 0
        weights = None if half_life is None else 0.5 ** (age / half_life)
        expected.append(compute_ridge_error(past, present, weights, alpha=5.0))
    assert values == pytest.approx(expected, rel=1e-9)


def test_seed_decides_values(prices_path):
    """A trainer's second argument is the seed, as text; it decides what random trees predict."""
    trainer = make_trainer(read_prices(prices_path), path=TREES_CLASS, n_estimators=3)

    values = trainer({"max_depth": 4}, SEED_0)["values"]

    assert trainer({"max_depth": 4}, SEED_0)["values"] == values
    assert trainer({"max_depth": 4}, SEED_1)["values"] != values


def test_failure_stops_the_training(prices_path):
    """A ridge regression refuses a negative alpha; April is the first month to predict."""
    trainer = make_trainer(read_prices(prices_path))

    with pytest.raises(TrainingError, match="failed on the rows before 2024-04:"):
        trainer({"alpha": -1.0}, SEED_0)


def test_failure_may_count_as_worst(prices_path):
    """A ridge regression refuses a negative alpha, so none of three months has a value."""
    trainer = make_trainer(read_prices(prices_path), failures=Failures.WORST)

    outcome = trainer({"alpha": -1.0}, SEED_0)

    assert outcome["values"] == [None, None, None]
    assert "alpha" in outcome["failure"]


# -- benchmarks of users' own ----------------------------------------------------------------------


@pytest.fixture
def own_benchmarks(tmp_path, monkeypatch):
    """An empty folder of the user's own benchmarks."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    return tmp_path


def call_retrain(prices_path: Path, *options: str) -> Result:
    """Run the command that generates the benchmark `prices`, of ridge regressions on months."""
    words = [
        "generate",
        "retrain",
        "--model",
        RIDGE_CLASS,
        "--data",
        str(prices_path),
        "--time",
        "date",
    ]
    words += ["--every", "month", "--name", "prices", *options]
    return CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.fixture
def options_of_ridge(own_benchmarks):
    """Options of the command for twelve configurations of alpha and of a window of 1 to 3."""
    space = hbo.SearchSpace([hbo.Parameter.number("alpha", 1e-3, 1e3, log=True)])
    space_path = own_benchmarks / "space.json"
    space_path.write_text(json.dumps(space.to_json()))
    value_of_option = {
        "--window": "1-3",
        "--space": str(space_path),
        "--configs": "12",
        "--metric": "neg_mean_absolute_error",
        "--time-format": "%Y-%m-%d %H:%M",
        "--workers": "1",
    }
    options = []
    for option, value in value_of_option.items():
        options += [option, value]
    return options


@pytest.mark.slow
@pytest.mark.usefixtures("own_benchmarks")
def test_one_command_makes_a_benchmark(prices_path, options_of_ridge):
    """After the command, the benchmark can be loaded by its name and passes the public checks."""
    result = call_retrain(prices_path, *options_of_ridge)

    assert result.exit_code == 0, result.output
    check_benchmark("prices")
    benchmark = hbo.load("prices")
    assert benchmark.space.names == ("alpha", "window")
    # With a window of up to three months, April is the first to predict.
    assert [task.name for task in benchmark.tasks] == ["2024-04", "2024-05", "2024-06"]
    # The context is the number of the period, from 0.
    assert dict(benchmark.tasks[0].context) == {"period": 3.0}


@pytest.mark.slow
def test_command_writes_card(prices_path, own_benchmarks, options_of_ridge):
    """The card has the command, and how well it does to copy the best of the period before.

    That is told as a share of the regret of a random configuration.
    """
    call_retrain(prices_path, *options_of_ridge)

    card = json.loads((own_benchmarks / "prices" / "card.json").read_text())
    assert card["comparisons"]["copying"]["median_share"] >= 0
    assert "--time date --time-format '%Y-%m-%d %H:%M' --every month" in card["command"]


@pytest.mark.slow
def test_command_writes_table(prices_path, own_benchmarks, options_of_ridge):
    """The table has twelve configurations on each of three tasks."""
    call_retrain(prices_path, *options_of_ridge)

    path = own_benchmarks / "prices-evaluations.parquet"
    table = read_raw(path, benchmark="prices", space=hbo.load("prices").space)
    assert [len(raw) for raw in table.tasks.values()] == [12, 12, 12]


@pytest.mark.slow
def test_continuing_gives_the_same_artifact(prices_path, own_benchmarks, options_of_ridge):
    """Every second stored training is lost and done again; the others are kept."""
    call_retrain(prices_path, *options_of_ridge)
    artifact = own_benchmarks / "prices"
    content = {path.name: path.read_bytes() for path in artifact.iterdir()}
    trainings = sorted((own_benchmarks / "prices-evaluations").rglob("*.json"))
    for path in trainings[::2]:
        path.unlink()
    kept_training = trainings[1]
    os.utime(kept_training, ns=(1, 1))  # to see whether it is written again

    result = call_retrain(prices_path, *options_of_ridge, "--replace")

    assert result.exit_code == 0, result.output
    assert {path.name: path.read_bytes() for path in artifact.iterdir()} == content
    assert kept_training.stat().st_mtime_ns == 1


def test_impossible_window_is_a_usage_error(prices_path):
    """A range such as 3-1 does not ascend."""
    result = call_retrain(prices_path, "--window", "3-1")

    exit_code_of_usage_errors = 2
    assert result.exit_code == exit_code_of_usage_errors
    assert "number or range such as 3 or 1-6, but got '3-1'" in result.output


def test_too_long_window_starts_nothing(prices_path, own_benchmarks):
    """Windows of up to nine periods are asked for, of a stream of six."""
    spec = Retrain(
        name="p",
        model=RIDGE_CLASS,
        data=str(prices_path),
        time="date",
        every="month",
        window=(1, 9),
    )

    with pytest.raises(ExperimentError, match="got 9"):
        generate_retrain(spec)

    assert list(own_benchmarks.iterdir()) == []


def test_public_stream_needs_its_file(tmp_path):
    """Benchmarks of the package are generated from files that it does not have."""
    generator_of_name = {generator.name: generator for generator in retrain.GENERATORS}
    generator = generator_of_name["retrain-electricity-linear"]

    with pytest.raises(ExperimentError, match=r"needs a folder with electricity\.parquet"):
        generator.generate(tmp_path / generator.name)


# -- figures on the card ---------------------------------------------------------------------------


@given(seed=st.integers(0, 99))
def test_correlation_by_lag_is_scipys(seed):
    """The figure for a lag is the mean rank correlation of losses on tasks so far apart.

    Lags of 1, 2, 5 and 10 are computed, as far as there are tasks: of four tasks, 1 and 2.
    """
    losses_of_tasks = np.random.default_rng(seed).normal(size=(4, 8))

    correlations = figures.compute_correlation_by_lag(losses_of_tasks.T)

    assert list(correlations) == [1, 2]
    pairs_two_apart = [(0, 2), (1, 3)]
    expected = []
    for i, j in pairs_two_apart:
        expected.append(spearmanr(losses_of_tasks[i], losses_of_tasks[j]).statistic)
    assert correlations[2] == pytest.approx(np.mean(expected))


def draw_repeated_losses(noise_share: float) -> np.ndarray:
    """Draw losses, (seeds, configurations, tasks): of three seeds, 400 configurations, five tasks.

    Their variance is 1, of which the share `noise_share` differs between seeds.
    """
    rng = np.random.default_rng(0)
    means = rng.normal(size=(400, 5)) * np.sqrt(1 - noise_share)
    noise = rng.normal(size=(3, 400, 5)) * np.sqrt(noise_share)
    return means + noise


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
def test_noise_share_is_estimated(share):
    """The share of the variance that differs between seeds is found again."""
    losses = draw_repeated_losses(share)

    assert figures.compute_noise_share(losses) == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
def test_means_over_seeds_have_less_noise(share):
    """`averaged` asks for the share of noise in means over two seeds."""
    losses = draw_repeated_losses(share)

    share_in_means = figures.compute_noise_share(losses, averaged=2)

    # The mean of two halves the variance of noise; the rest of the variance, 1, stays.
    variance_of_noise = share / 2
    variance = 1 - share + variance_of_noise
    assert share_in_means == pytest.approx(variance_of_noise / variance, abs=0.05)


def test_agreement_of_seeds_is_scipys():
    """Seeds agree as far as they rank eleven configurations alike, here on one task.

    That is computed among all configurations, and among the better half, five of eleven: those
    that are better by the one seed, and those by the other, are averaged.
    """
    losses_of_seeds = np.random.default_rng(0).normal(size=(2, 11))
    first, second = losses_of_seeds

    agreement, agreement_in_better_half = figures.compute_agreement(losses_of_seeds[:, :, None])

    assert agreement == pytest.approx(spearmanr(first, second).statistic)
    in_halves = []
    for better_half in (np.argsort(first)[:5], np.argsort(second)[:5]):
        in_halves.append(spearmanr(first[better_half], second[better_half]).statistic)
    assert agreement_in_better_half == pytest.approx(np.mean(in_halves))


@pytest.mark.parametrize(("averaged", "share"), [(1, 0.5), (2, 0.25)])
def test_configurations_within_noise_are_counted(averaged, share):
    """Counted is the share of configurations that noise may keep from being the best.

    Their loss is at most two standard deviations of noise above the best. Here two seeds differ by
    0.2, so the standard deviation is 0.14, and the limit 1.28; for means over two seeds it is
    0.1, and the limit 1.2.
    """
    losses = np.array([[1.0], [1.27], [1.29], [2.0]])
    losses_of_seeds = np.stack([losses - 0.1, losses + 0.1])
    # Of the worse half, noise does not count, however large.
    losses_of_seeds[0, 3] -= 9
    losses_of_seeds[1, 3] += 9

    shares = figures.compute_shares_within_noise(losses, losses_of_seeds, averaged=averaged)

    assert shares.tolist() == [share]


# -- means over seeds, and recorded evaluations ----------------------------------------------------


@pytest.fixture
def averaged_plan(prices_path):
    """A plan of twelve configurations of trees, each trained with the seeds 4, 5 and 6."""
    trainer = make_trainer(read_prices(prices_path), path=TREES_CLASS, seed=4, n_estimators=2)
    space = hbo.SearchSpace([hbo.Parameter.number("max_depth", 1, 9, integer=True)])
    return RetrainPlan(trainer, space, configurations=12, seed=4, averaged=3)


@pytest.fixture
def averaged_artifact(averaged_plan, tmp_path):
    """Folder of the benchmark of `averaged_plan`, whose values are means over three seeds."""
    benchmark = define_benchmark(
        name="mean",
        summary="",
        space=averaged_plan.space,
        objective=STREAMS["bike_sharing"].objective,
        tasks=averaged_plan.trainer.contexts,
        source="here",
        licence="CC0",
    )
    return retrain._train_and_write(
        averaged_plan,
        benchmark,
        request=Request(folder=tmp_path / "mean", seed=4),
        words=("retrain",),
        coding=space_coding(averaged_plan.space),
    )


@pytest.mark.slow
def test_values_may_be_means_over_seeds(averaged_plan, averaged_artifact):
    """Stored are mean and standard deviation over the seeds 4, 5 and 6.

    Here they are computed again for the first configuration.
    """
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
    """The card tells the seeds, and how far other seeds would give other values."""
    card = json.loads((averaged_artifact / "card.json").read_text())

    assert any("trained 3 times, with seeds 4, 5, 6," in limit for limit in card["limits"])
    assert "of that of means of 3" in card["comparisons"]["other seeds"]["explanation"]


@pytest.mark.slow
def test_card_has_figures_of_forest(averaged_artifact):
    """Forests have hardly any effect of the seed, so some figures are computed on them, too."""
    card = json.loads((averaged_artifact / "card.json").read_text())

    assert card["comparisons"]["copying"]["median_share_on_forest"] >= 0
    rank_correlations_in_better_half = [task["upper_half"] for task in card["figures"]]
    assert all(-1 <= correlation <= 1 for correlation in rank_correlations_in_better_half)


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
    rng_of_benchmark = np.random.default_rng([7, *retraining.name.encode()])
    for row in rng_of_benchmark.choice(len(plan.values), 2, replace=False).tolist():
        task = int(rng_of_benchmark.integers(len(benchmark.tasks)))
        evaluations = recorded[task]

        value = train_with_all_seeds(plan, configs[row], period=plan.trainer.tasks[task])

        np.testing.assert_array_equal(evaluations.values[row], plan.values[row])
        loss = benchmark.objective.loss(value)
        assert evaluations.losses[row] == pytest.approx(loss, rel=1e-6)


def train_with_all_seeds(plan: RetrainPlan, config: Config, *, period: int) -> float:
    """Train for a period with each seed of a plan; return the mean of the values."""
    values = []
    for seed in range(plan.averaged):
        value, _seconds = plan.trainer.train(config, period, seed=seed)
        values.append(value)
    return float(np.mean(values))
