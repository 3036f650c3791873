"""Benchmarks of retraining: training rows of a period, figures on the card, the artifact."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error
from sklearn.preprocessing import StandardScaler
from sklearn.tree import ExtraTreeRegressor

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.benchmarks.retrain import RETRAINING
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation import retrain
from hpobench_ordered.generation._retrain import figures
from hpobench_ordered.generation._retrain.learners import Learner
from hpobench_ordered.generation._retrain.plan import RetrainPlan
from hpobench_ordered.generation._retrain.streams import Stream
from hpobench_ordered.generation._retrain.training import RetrainTrainer
from hpobench_ordered.testing import check_benchmark

# A stream is cut into periods, here months; the model of a period is trained on those before, as
# many as the window says.
MONTHS = 6
GENERATOR_OF_NAME = {generator.name: generator for generator in retrain.GENERATORS}

# Trainings are given their seed as text.
SEED_0, SEED_1 = "0", "1"


@pytest.fixture(scope="module")
def prices():
    """A table of inputs that tell something about prices, the last column, and of dates.

    There are two rows a day for half a year, and some inputs z are missing. The price grows with
    x, from month to month more.
    """
    rng = np.random.default_rng(1)
    dates = pd.date_range("2024-01-01", "2024-06-30", freq="12h")
    x, z = rng.normal(size=(len(dates), 2)).T
    has_no_z = rng.random(len(dates)) < 0.02
    noise = rng.normal(size=len(dates))
    slope = dates.month.to_numpy() / 3
    return pd.DataFrame(
        {
            "date": dates,
            "x": x,
            "z": np.where(has_no_z, np.nan, z),
            "kind": np.where(z > 0, "up", "down"),
            "price": 100 + 10 * (slope * x + noise),
        }
    )


@pytest.fixture(scope="module")
def stream(prices):
    """The table as a stream of months; dates are no feature."""
    months = prices["date"].dt.to_period("M").astype(str).to_numpy()
    return Stream.from_frame(prices.drop(columns="date"), months)


class RidgeRegressor(Ridge):
    """A ridge regression, named as learners are."""


class TreeRegressor(ExtraTreeRegressor):
    """A tree that draws its splits at random."""


def make_trainer(stream: Stream, name: str = "Ridge") -> RetrainTrainer:
    """Make a trainer of one of the models above, on up to three months.

    April to June of the six months are predicted.
    """
    learner = Learner(module=__name__, package="scikit-learn", name=name, parameters=())
    return RetrainTrainer(stream, learner, is_regression=True, longest_window=3)


# -- streams ---------------------------------------------------------------------------------------


def test_rows_are_cut_into_periods(stream):
    """Each month is a period, with two rows a day; the last day has one."""
    assert stream.names == tuple(f"2024-{month:02d}" for month in range(1, MONTHS + 1))
    rows_of_periods = np.diff(stream.starts)
    assert rows_of_periods.tolist() == [62, 58, 62, 60, 62, 59]


def test_last_column_is_the_target(stream, prices):
    """The numbers x and z and the category are features."""
    assert stream.rows.target.tolist() == prices["price"].tolist()
    np.testing.assert_array_equal(stream.rows.numbers, prices[["x", "z"]])
    codes_by_name = {"down": 0, "up": 1}
    assert stream.rows.categories[:, 0].tolist() == prices["kind"].map(codes_by_name).tolist()


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
def test_values_are_scikit_learns(stream, prices, window, half_life):
    """A month's value is the error of a model that was trained on the window of months before.

    With a half-life, an older month weighs less. The first month to predict is April.
    """
    config = {"alpha": 5.0, "window": window}
    if half_life is not None:
        config["half_life"] = half_life

    values = make_trainer(stream)(config, SEED_0)["values"]

    month = prices["date"].dt.month
    expected = []
    for now in range(4, MONTHS + 1):
        past = prices[(month >= now - window) & (month < now)]
        present = prices[month == now]
        age = now - 1 - month[past.index]  # of the last month 0
        weights = None if half_life is None else 0.5 ** (age / half_life)
        expected.append(compute_ridge_error(past, present, weights, alpha=5.0))
    assert values == pytest.approx(expected, rel=1e-9)


def test_seed_decides_values(stream):
    """A trainer's second argument is the seed, as text; it decides how a random tree splits."""
    trainer = make_trainer(stream, "Tree")

    values = trainer({"max_depth": 4}, SEED_0)["values"]

    assert trainer({"max_depth": 4}, SEED_0)["values"] == values
    assert trainer({"max_depth": 4}, SEED_1)["values"] != values


# -- figures on the card ---------------------------------------------------------------------------


def test_correlation_by_lag_is_scipys():
    """The figure for a lag is the mean rank correlation of losses on tasks so far apart.

    Lags of 1, 2, 5 and 10 are computed, as far as there are tasks: of four tasks, 1 and 2.
    """
    losses_of_tasks = np.random.default_rng(0).normal(size=(4, 8))

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


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_noise_share_is_estimated(share):
    """The share of the variance that differs between seeds is found again."""
    losses = draw_repeated_losses(share)

    assert figures.compute_noise_share(losses) == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 0.5])
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


# -- artifacts -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def artifact(shared, tmp_path_factory):
    """The artifact of ten configurations of a linear model on the bicycles of every month.

    Its values are means over three seeds.
    """
    name = "retrain-bike-sharing-linear"
    folder = tmp_path_factory.mktemp("retrain") / name
    streams = shared / "data" / "streams"
    return GENERATOR_OF_NAME[name].generate(folder, local=streams, configurations=10)


@pytest.mark.slow
def test_artifact_is_a_benchmark(artifact):
    check_benchmark(hbo.load(artifact))


@pytest.mark.slow
def test_values_are_means_over_seeds(artifact, shared):
    """Stored are mean and standard deviation over three seeds, here of the first configuration."""
    (benchmark,) = [each for each in RETRAINING if each.name == artifact.name]
    plan = retrain.make_plan(benchmark, shared / "data" / "streams", configurations=10)
    first_config = plan.space.configs(plan.values)[0]

    with np.load(artifact / "evaluations.npz") as stored:
        arrays = dict(stored)

    np.testing.assert_array_equal(arrays["values"][0], plan.values[0])
    values = [plan.trainer.train(first_config, plan.trainer.tasks[0], seed=k) for k in range(3)]
    assert arrays["0/objective"][0] == pytest.approx(np.mean(values))
    assert arrays["0/spread"][0] == pytest.approx(np.std(values, ddof=1))


@pytest.mark.slow
def test_card_compares_seeds_and_forest(artifact):
    """The card tells the seeds, how much they matter, and how well it does to copy."""
    card = json.loads((artifact / "card.json").read_text())

    assert any("trained 3 times, with seeds 0, 1, 2," in limit for limit in card["limits"])
    assert "of that of means of 3" in card["comparisons"]["other seeds"]["explanation"]
    assert card["comparisons"]["copying"]["median_share_on_forest"] >= 0
    assert card["command"] == (
        "hpobench-ordered generate retrain-bike-sharing-linear --from STREAMS --seed 0 --configs 10"
    )


@pytest.mark.slow
def test_continuing_gives_the_same_artifact(artifact, shared):
    """Two of the stored trainings are lost and done again; the others are kept."""
    content = {path.name: path.read_bytes() for path in artifact.iterdir()}
    folder_of_trainings = artifact.with_name(f"{artifact.name}-trainings")
    trainings = sorted(folder_of_trainings.rglob("*.json"))
    for path in (trainings[0], trainings[2]):
        path.unlink()
    os.utime(trainings[1], ns=(1, 1))  # to see whether it is written again

    streams = shared / "data" / "streams"
    GENERATOR_OF_NAME[artifact.name].generate(artifact, local=streams, configurations=10)

    assert {path.name: path.read_bytes() for path in artifact.iterdir()} == content
    assert trainings[1].stat().st_mtime_ns == 1


def test_stream_needs_its_file(tmp_path):
    """Benchmarks are generated from files that the package does not have."""
    generator = GENERATOR_OF_NAME["retrain-electricity-linear"]

    with pytest.raises(ExperimentError, match=r"needs a folder with electricity\.parquet"):
        generator.generate(tmp_path / generator.name)


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
        values.append(plan.trainer.train(config, period, seed=seed))
    return float(np.mean(values))
