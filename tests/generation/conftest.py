"""Small images for tests of training on MNIST, and XGBoost if it is installed."""

import numpy as np
import pytest

from hpobench_ordered.generation import _mnist as mnist


@pytest.fixture(scope="module")
def images():
    """400 images of 6 x 6 pixels, and their classes: ten patterns with noise.

    The first pixel is 0 in all images: standardising it must not divide by its deviation.
    """
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 10, 400)
    # Patterns below 200 plus noise below 56 fit into a byte.
    patterns = rng.integers(0, 200, (10, 36))
    noise = rng.integers(0, 56, (400, 36))
    pixels = patterns[classes] + noise
    pixels[:, 0] = 0
    return pixels.astype(np.uint8), classes


@pytest.fixture(scope="module")
def image_split(images):
    """The 400 images split into a pool of 300 for training and 100 for validation.

    Training sets are the first images of the pool, at least 20.
    """
    return mnist.split_images(*images, pool_size=300, smallest=20)


@pytest.fixture(scope="session")
def xgboost():
    """The package XGBoost; without it, tests that use it are skipped."""
    return pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")
