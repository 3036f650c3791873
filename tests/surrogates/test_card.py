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
        better = losses < np.sort(losses)[20]
        expected = spearmanr(truth[better, k], predicted[better, k]).statistic
        assert found[k] == pytest.approx(expected)


def test_names_and_shapes_must_fit():
    constant = np.full((5, 1), 2.0)
    assert [*r_squared(constant, constant), *r_squared(constant, constant + 1)] == [1, -np.inf]
    assert np.isnan(rank_correlation(constant, constant)).all()
    truth = np.random.default_rng(0).random((20, 2))
    computed = measure_quality(truth, truth, names=["a", "b"], direction=Direction.MINIMIZE)
    one = pytest.approx(1)
    assert computed == (TaskQuality("a", 1, one, 1, one), TaskQuality("b", 1, one, 1, one))
    with pytest.raises(ValueError, match="argument 2"):
        measure_quality(truth, truth, names=["a"], direction=Direction.MINIMIZE)
    with pytest.raises(ValueError, match="shape"):
        measure_quality(truth, truth[1:], names=["a", "b"], direction=Direction.MINIMIZE)


CARD = card_of(
    evaluations=200,
    figures=(TaskQuality("a", 0.9, 0.8, 0.7), TaskQuality("b", 0.7, 1.0, 0.9)),
    versions={"numpy": "2"},
    comparisons={"training": {"sizes": [1, 2]}},
)


def test_cards_survive_json_and_are_described():
    card = replace(CARD, size=1_500_000)
    text = card.describe()
    parts = ("forest", "1.50 MB", "200", "nowhere", "R2 0.700 (mean 0.800)", "A toy.", "numpy 2")
    assert all(part in text for part in parts)
    assert "better half" not in text  # of an artifact made before it was computed
    known = replace(CARD, figures=tuple(replace(f, upper_half=0.5) for f in CARD.figures))
    assert "Spearman in the better half 0.500 (mean 0.500)" in known.describe()
    versions = versions_of("numpy", "no-such-package")
    assert versions["numpy"] == np.__version__ and "python" in versions
    assert versions["no-such-package"] == "not installed"
    assert Card.from_json(json.loads(json.dumps(known.to_json()))) == known
    assert Card.from_json(json.loads(json.dumps(card.to_json()))) == card
    measure_quality = (TaskQuality("a", -math.inf, math.nan, 0.0),)  # which JSON has not
    card = replace(CARD, figures=measure_quality, comparisons={"x": {"r2": [math.nan]}})
    text = json.dumps(card.to_json(), allow_nan=False)
    (read,) = Card.from_json(json.loads(text)).figures
    assert read.r2 == -math.inf and math.isnan(read.spearman)


@pytest.mark.parametrize(
    "change",
    [
        {"surrogate": "ORACLE"},
        {"figures": [{"name": "a"}]},
        {"figures": [{"name": "a", "r2": "high", "spearman": 1, "top_decile": 1}]},
        {"figures": 5},
        {"x": 1},
    ],
)
def test_malformed_cards_are_refused(change):
    with pytest.raises(ArtifactError, match="not a quality card"):
        Card.from_json({**CARD.to_json(), **change})
    with pytest.raises(ArtifactError, match="not a quality card"):
        Card.from_json({})
