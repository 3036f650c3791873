"""Quality cards, which say how well a surrogate predicts: measures, text, and storage."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import r2_score
from toy_artifacts import make_card

from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates.card import (
    Card,
    TaskQuality,
    find_versions,
    r_squared,
    rank_correlation,
    top_decile_overlap,
    upper_half_correlation,
)


def draw_truth_and_predictions(seed: int, *, has_ties: bool) -> tuple[np.ndarray, np.ndarray]:
    """True values of 60 configurations for three outputs, (60, 3), and predictions near them.

    With ties they are whole numbers, many of which are equal.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(60, 3))
    predicted = truth + 0.3 * rng.normal(size=(60, 3))
    if has_ties:
        return np.round(truth), np.round(predicted)
    return truth, predicted


def apply_to_outputs(
    measure: Callable[[np.ndarray, np.ndarray], float], truth: np.ndarray, predicted: np.ndarray
) -> list[float]:
    """Apply a measure of one output, such as scikit-learn's, to each of several, the columns."""
    return [measure(*columns) for columns in zip(truth.T, predicted.T, strict=True)]


def compute_spearman(truth: np.ndarray, predicted: np.ndarray) -> float:
    return spearmanr(truth, predicted).statistic


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_r_squared_is_scikit_learns(seed, has_ties):
    """R2 of each output is scikit-learn's, also where many values are equal."""
    truth, predicted = draw_truth_and_predictions(seed, has_ties=has_ties)

    r2 = r_squared(truth, predicted)

    assert r2 == pytest.approx(apply_to_outputs(r2_score, truth, predicted))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_rank_correlation_is_scipys(seed, has_ties):
    """The rank correlation of each output is SciPy's, also where many values are equal."""
    truth, predicted = draw_truth_and_predictions(seed, has_ties=has_ties)

    correlations = rank_correlation(truth, predicted)

    assert correlations == pytest.approx(apply_to_outputs(compute_spearman, truth, predicted))


def find_best_rows(values: np.ndarray, number: int, direction: Direction) -> set[int]:
    """Rows of the best values: the smallest when minimising, the largest when maximising."""
    losses = direction.sign * values
    rows_from_best = sorted(range(len(losses)), key=lambda row: losses[row])
    return set(rows_from_best[:number])


@given(st.integers(0, 2**32 - 1), st.integers(1, 100), st.sampled_from(Direction))
def test_top_decile_overlap_is_share_of_best(seed, n, direction):
    """The share of the truly best tenth that is also in the predicted best tenth."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 2))
    predicted = rng.random((n, 2))

    overlaps = top_decile_overlap(truth, predicted, direction=direction)

    size_of_tenth = max(1, n // 10)  # at least one configuration
    for output in range(2):
        truly_best = find_best_rows(truth[:, output], size_of_tenth, direction)
        predicted_best = find_best_rows(predicted[:, output], size_of_tenth, direction)
        assert overlaps[output] == len(truly_best & predicted_best) / size_of_tenth


@given(st.integers(0, 2**32 - 1), st.sampled_from(Direction))
def test_upper_half_correlation_is_scipys(seed, direction):
    """Spearman's correlation among the better half: of 41 values, the 20 better than the median."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(41, 2))
    predicted = truth + rng.normal(size=(41, 2))

    correlations = upper_half_correlation(truth, predicted, direction=direction)

    losses = direction.sign * truth
    is_better = losses < np.median(losses, axis=0)
    for output in range(2):
        rows = is_better[:, output]
        expected = compute_spearman(truth[rows, output], predicted[rows, output])
        assert correlations[output] == pytest.approx(expected)


FIVE_EQUAL_VALUES = np.full((5, 1), 2.0)
"""Five equal values of one output."""


@pytest.mark.parametrize(
    ("predicted", "r2"), [(FIVE_EQUAL_VALUES, 1), (FIVE_EQUAL_VALUES + 1, -np.inf)]
)
def test_r_squared_of_constant_truth(predicted, r2):
    """It is 1 if the prediction of equal values is exact, minus infinity otherwise."""
    assert r_squared(FIVE_EQUAL_VALUES, predicted).tolist() == [r2]


def test_rank_correlation_of_constants_is_nan():
    assert np.isnan(rank_correlation(FIVE_EQUAL_VALUES, FIVE_EQUAL_VALUES)).all()


OLD_CARD = make_card(
    evaluations=200,
    figures=(
        TaskQuality("a", r2=0.9, spearman=0.8, top_decile=0.7),
        TaskQuality("b", r2=0.7, spearman=1.0, top_decile=0.9),
    ),
    versions={"numpy": "2"},
    comparisons={"training": {"sizes": [1, 2]}},
)
"""A card of two tasks from when there was no rank correlation in the better half yet."""
NEW_CARD = replace(
    OLD_CARD, figures=tuple(replace(quality, upper_half=0.5) for quality in OLD_CARD.figures)
)


@pytest.mark.parametrize(
    "part", ["forest", "1.50 MB", "200", "nowhere", "R2 0.700 (mean 0.800)", "A toy.", "numpy 2"]
)
def test_description_holds_every_fact(part):
    """Facts are surrogate, size, evaluations, source, worst and mean quality, limits, versions."""
    card = replace(OLD_CARD, size=1_500_000)

    assert part in card.describe()


def test_description_leaves_out_missing_measure():
    """Old cards have no rank correlation in the better half."""
    assert "better half" not in OLD_CARD.describe()


@pytest.mark.parametrize("card", [OLD_CARD, NEW_CARD])
def test_card_round_trips_through_json(card):
    assert Card.from_json(json.loads(json.dumps(card.to_json()))) == card


def test_numbers_that_json_lacks_round_trip():
    """A measure may be infinite or NaN, which is no number of JSON."""
    quality = TaskQuality("a", r2=-math.inf, spearman=math.nan, top_decile=0.0)
    card = replace(OLD_CARD, figures=(quality,), comparisons={"x": {"r2": [math.nan]}})

    # It is an error if an infinity or NaN is left.
    text = json.dumps(card.to_json(), allow_nan=False)
    (copy,) = Card.from_json(json.loads(text)).figures

    assert copy.r2 == -math.inf
    assert math.isnan(copy.spearman)


def test_versions_name_missing_packages():
    """Versions are of Python, and of packages that are asked for."""
    versions = find_versions("numpy", "no-such-package")

    assert versions["numpy"] == np.__version__
    assert versions["no-such-package"] == "not installed"
    assert "python" in versions


@pytest.mark.parametrize(
    "change",
    [
        {"surrogate": "ORACLE"},  # no such type
        {"figures": [{"name": "a"}]},  # without measures
        {"size": "large"},
    ],
)
def test_malformed_card_is_refused(change):
    """A valid card is refused once one of its entries is wrong."""
    content = OLD_CARD.to_json() | change

    with pytest.raises(ArtifactError, match="not a quality card"):
        Card.from_json(content)
