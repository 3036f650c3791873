"""MNIST as the paper's authors split it (OTHPO paper, section 4 and appendix B).

A task's training set is the first s images of one fixed shuffle; the last 14 000 validate.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered.data.identity import hash_arrays
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.generation._openml.client import openml_client

OPENML_DATA_SET = 554  # mnist_784, version 1
POOL_SIZE = 56_000
SMALLEST_TRAINING_SET = 56
SHUFFLE_SEED = 1

_UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile, zlib.error)


@dataclass(frozen=True)
class MnistSplit:
    """Training pool (N, p) and validation set (M, p), float32, standardised by the pool.

    The pool is in the order in which training sets grow; from `smallest` images on they hold all
    classes, 0..9. `digest` is the SHA-256 of the images and classes in this order.
    """

    smallest: int
    pool: NDArray[np.float32]
    pool_labels: NDArray[np.int64]
    validation: NDArray[np.float32]
    validation_labels: NDArray[np.int64]
    digest: str


def load_mnist(path: Path | None = None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Load the images, (n, pixels), and their classes, (n,), of MNIST in OpenML's order.

    Args:
        path: A local npz file; default: OpenML's data set, which is downloaded.

    Raises:
        ArtifactError: The arrays have other shapes, or pixels are not whole numbers 0..255.
    """
    images, classes = _download() if path is None else _read_npz(path)
    if images.ndim != 2 or classes.shape != images.shape[:1]:
        raise ArtifactError(
            f"MNIST must be (n, pixels) and (n,), but got {images.shape} and {classes.shape}"
        )
    is_pixel = (images >= 0) & (images <= 255) & (images % 1 == 0)
    if not is_pixel.all():  # for example scaled to 0..1
        raise ArtifactError("the pixels must be whole numbers 0..255, but are not")
    return images.astype(np.uint8), classes.astype(np.int64)


def split_images(
    data: NDArray[np.uint8],
    target: NDArray[np.int64],
    *,
    pool_size: int = POOL_SIZE,
    smallest: int = SMALLEST_TRAINING_SET,
) -> MnistSplit:
    """Shuffle images and split them into a training pool and validation images, as the authors did.

    Features are standardised by the pool's means and standard deviations; a pixel that never
    changes is only centred.

    Args:
        data: Pixels of the images, (n, p).
        target: Their classes, (n,).
        pool_size: Number of images in the pool, the first of the shuffle; the others validate.
        smallest: Size of the smallest training set, which must have all classes.

    Raises:
        ValueError: The sizes do not fit the images.
    """
    n_classes = len(np.unique(target))
    if not n_classes <= smallest <= pool_size < len(data):
        raise ValueError(
            f"{n_classes} classes <= smallest training set ({smallest}) <= pool ({pool_size}) "
            f"< images ({len(data)}) does not hold"
        )
    order = _shuffle_until_all_classes(target, smallest)
    data = data[order]
    labels = target[order]

    mean = data[:pool_size].mean(axis=0)
    deviation = data[:pool_size].std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    features = ((data - mean) / scale).astype(np.float32)  # the precision of XGBoost

    return MnistSplit(
        smallest=smallest,
        pool=features[:pool_size],
        pool_labels=labels[:pool_size],
        validation=features[pool_size:],
        validation_labels=labels[pool_size:],
        digest=hash_arrays(data, labels.astype("<i8")),
    )


def _shuffle_until_all_classes(target: NDArray[np.int64], smallest: int) -> NDArray[np.int64]:
    """Shuffle images again and again, until the first `smallest` ones have all classes.

    The shuffles come from NumPy's legacy generator under the authors' seed, because the published
    evaluations depend on them.

    Returns:
        The order of the images, as indices, (n,).
    """
    n_classes = len(np.unique(target))
    rng = np.random.RandomState(SHUFFLE_SEED)
    order = np.arange(len(target))
    rng.shuffle(order)
    while len(np.unique(target[order[:smallest]])) < n_classes:
        rng.shuffle(order)
    return order


def _read_npz(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read images and classes from a local file; raise an `ArtifactError` if it has none."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return arrays["data"], arrays["target"]
    except _UNREADABLE as error:
        raise ArtifactError(
            f"{path} is not an npz file with the arrays 'data' and 'target': {error}"
        ) from error


def _download() -> tuple[NDArray[Any], NDArray[Any]]:
    """Download images and classes from OpenML; raise a `DownloadError` if that fails."""
    advice = "Give a local npz file with the arrays 'data' and 'target' instead."
    with openml_client("MNIST", advice=advice) as openml:
        mnist = openml.datasets.get_dataset(OPENML_DATA_SET)
        data, target, _, _ = mnist.get_data(target=mnist.default_target_attribute)
    return np.asarray(data), np.asarray(target)
