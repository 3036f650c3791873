import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import r2_score
from toy_artifacts import card_of

from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates.card import (
    Card,
    TaskQuality,
    measure_quality,
    r_squared,
    rank_correlation,
    top_decile_overlap,
    upper_half_correlation,
    versions_of,
)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_figures_equal_reference_implementations(seed, tied):
    """R2 of scikit-learn and rank correlation of scipy, with and without ties."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(60, 3))
    predicted = truth + 0.3 * rng.normal(size=(60, 3))
    if tied:
        truth, predicted = np.round(truth), np.round(predicted)
    for k in range(3):
        expected = r2_score(truth[:, k], predicted[:, k])
        assert r_squared(truth, predicted)[k] == pytest.approx(expected)
        expected = spearmanr(truth[:, k], predicted[:, k]).statistic
        assert rank_correlation(truth, predicted)[k] == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 100), st.sampled_from(Direction))
def test_top_decile_overlap_equals_sets(seed, n, direction):
    rng = np.random.default_rng(seed)
    truth, predicted = rng.random((n, 2)), rng.random((n, 2))
    k = max(1, n // 10)
    for column in range(2):
        # Rows of the best tenth, by the true and by the predicted values.
        best = [
            set(sorted(range(n), key=lambda i: direction.sign * values[i, column])[:k])
            for values in (truth, predicted)
        ]
        share = len(best[0] & best[1]) / k
        assert top_decile_overlap(truth, predicted, direction=direction)[column] == share


@given(st.integers(0, 2**32 - 1), st.sampled_from(Direction))
def test_the_upper_half_is_ranked_as_by_scipy(seed, direction):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(41, 2))
    predicted = truth + rng.normal(size=(41, 2))
    found = upper_half_correlation(truth, predicted, direction=direction)
    for k in range(2):
        losses = direction.sign * truth[:, k]
        # Of 41 losses, the 20 below the median.
        better = losses < np.sort(losses)[20]
        expected = spearmanr(truth[better, k], predicted[better, k]).statistic
        assert found[k] == pytest.approx(expected)


CONSTANT = np.full((5, 1), 2.0)


@pytest.mark.parametrize(("predicted", "r2"), [(CONSTANT, 1), (CONSTANT + 1, -np.inf)])
def test_r_squared_of_constant_truth(predicted, r2):
    """1 if the prediction is exact, minus infinity otherwise."""
    assert r_squared(CONSTANT, predicted).tolist() == [r2]


def test_rank_correlation_of_constants_is_nan():
    assert np.isnan(rank_correlation(CONSTANT, CONSTANT)).all()


def test_exact_predictions_have_best_quality():
    truth = np.random.default_rng(0).random((20, 2))
    quality = measure_quality(truth, truth, names=["a", "b"], direction=Direction.MINIMIZE)
    assert [task.name for task in quality] == ["a", "b"]
    for task in quality:
        figures = (task.r2, task.spearman, task.top_decile, task.upper_half)
        assert figures == pytest.approx((1, 1, 1, 1))


@pytest.mark.parametrize(
    ("names", "n_predicted", "message"), [(["a"], 20, "argument 2"), (["a", "b"], 19, "shape")]
)
def test_names_and_predictions_must_fit(names, n_predicted, message):
    """There are two tasks and 20 evaluations."""
    truth = np.zeros((20, 2))
    with pytest.raises(ValueError, match=message):
        measure_quality(truth, truth[:n_predicted], names=names, direction=Direction.MINIMIZE)


CARD = card_of(
    evaluations=200,
    figures=(TaskQuality("a", 0.9, 0.8, 0.7), TaskQuality("b", 0.7, 1.0, 0.9)),
    versions={"numpy": "2"},
    comparisons={"training": {"sizes": [1, 2]}},
)


WITH_UPPER_HALF = replace(
    CARD, figures=tuple(replace(quality, upper_half=0.5) for quality in CARD.figures)
)


@pytest.mark.parametrize(
    "part", ["forest", "1.50 MB", "200", "nowhere", "R2 0.700 (mean 0.800)", "A toy.", "numpy 2"]
)
def test_description_holds_every_fact(part):
    assert part in replace(CARD, size=1_500_000).describe()


def test_description_leaves_out_what_old_cards_lack():
    """Older cards have no rank correlation in the better half."""
    assert "better half" not in CARD.describe()
    assert "Spearman in the better half 0.500 (mean 0.500)" in WITH_UPPER_HALF.describe()


@pytest.mark.parametrize("card", [CARD, WITH_UPPER_HALF])
def test_card_round_trips_through_json(card):
    assert Card.from_json(json.loads(json.dumps(card.to_json()))) == card


def test_numbers_that_json_lacks_round_trip():
    card = replace(
        CARD,
        figures=(TaskQuality("a", -math.inf, math.nan, 0.0),),
        comparisons={"x": {"r2": [math.nan]}},
    )
    # Raises an error if an infinity or NaN is left.
    text = json.dumps(card.to_json(), allow_nan=False)
    (quality,) = Card.from_json(json.loads(text)).figures
    assert quality.r2 == -math.inf
    assert math.isnan(quality.spearman)


def test_versions_name_missing_packages():
    versions = versions_of("numpy", "no-such-package")
    assert versions["numpy"] == np.__version__
    assert versions["no-such-package"] == "not installed"
    assert "python" in versions


@pytest.mark.parametrize(
    "change",
    [
        {"surrogate": "ORACLE"},
        {"figures": [{"name": "a"}]},
        {"figures": [{"name": "a", "r2": "high", "spearman": 1, "top_decile": 1}]},
        {"figures": 5},
        {"x": 1},
        {"size": "large"},
        {"seed": "zero"},
        {"versions": {"numpy": 2}},
        {"comparisons": {"training": 5}},
    ],
)
def test_malformed_card_is_refused(change):
    with pytest.raises(ArtifactError, match="not a quality card"):
        Card.from_json({**CARD.to_json(), **change})


def test_empty_card_is_refused():
    with pytest.raises(ArtifactError, match="not a quality card"):
        Card.from_json({})
