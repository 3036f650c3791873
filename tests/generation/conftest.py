import numpy as np
import pytest

from hpobench_ordered.generation import _mnist as mnist


@pytest.fixture(scope="module")
def images():
    """Ten noisy patterns of 6 x 6 pixels, the first pixel always 0."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 10, 400)
    patterns = rng.integers(0, 200, (10, 36))
    data = patterns[target] + rng.integers(0, 56, (400, 36))
    data[:, 0] = 0
    return data.astype(np.uint8), target


@pytest.fixture(scope="module")
def small(images):
    """The patterns split into a pool of 300 for training, and 100 for validation."""
    return mnist.split_images(*images, pool_size=300, smallest=20)


@pytest.fixture(scope="session")
def xgboost():
    return pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")
