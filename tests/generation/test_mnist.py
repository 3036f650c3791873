"""MNIST: read from a file or OpenML, shuffled, split and standardised."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.generation import _mnist as mnist

# Arrays of 30 images of four pixels, and their classes.
VALID_ARRAYS = {"data": np.ones((30, 4), np.uint8), "target": np.ones(30)}


class TestLoading:
    def test_npz_file_is_read(self, tmp_path):
        """Pixels are read as bytes, labels as integers; here three images of four pixels."""
        labels = np.array([1, 0, 9], np.uint8)
        np.savez(tmp_path / "x.npz", data=np.ones((3, 4), np.uint8), target=labels)

        data, target = mnist.load_mnist(tmp_path / "x.npz")

        assert (data.dtype, data.shape) == (np.uint8, (3, 4))
        assert target.dtype == np.int64
        assert target.tolist() == [1, 0, 9]

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            # Other names
            ({"x": np.ones(3)}, "'data' and 'target'"),
            # Three images and two labels
            ({"data": np.ones((3, 2)), "target": np.ones(2)}, r"got \(3, 2\) and \(2,\)"),
            # Pixels that were scaled
            (VALID_ARRAYS | {"data": np.full((30, 4), 0.5)}, r"0\.\.255"),
        ],
    )
    def test_other_arrays_are_refused(self, tmp_path, arrays, message):
        """A file must have bytes as pixels, in `data`, and as many labels, in `target`."""
        file = tmp_path / "x.npz"
        np.savez(file, **arrays, allow_pickle=True)

        with pytest.raises(ArtifactError, match=message):
            mnist.load_mnist(file)

    @pytest.fixture
    def openml(self, monkeypatch):
        """A stub of OpenML's client, which has MNIST only: here two images of two pixels."""
        pixels = pd.DataFrame({"pixel1": [0, 255], "pixel2": [3, 4]})
        labels = pd.Series(["7", "1"], dtype="category")
        is_nominal = [False, False]
        answer = (pixels, labels, is_nominal, list(pixels))
        mnist_data = SimpleNamespace(
            default_target_attribute="class", get_data=lambda target: answer
        )

        def get_dataset(number: int) -> Any:
            assert number == 554  # MNIST's on OpenML
            return mnist_data

        class OpenMLError(Exception):
            """Stands for the base class of the client's errors."""

        stub = SimpleNamespace(
            config=SimpleNamespace(set_retry_policy=lambda policy, attempts: None),
            datasets=SimpleNamespace(get_dataset=get_dataset),
            exceptions=SimpleNamespace(PyOpenMLError=OpenMLError),
        )
        monkeypatch.setitem(sys.modules, "openml", stub)
        return stub

    @pytest.mark.usefixtures("openml")
    def test_openml_is_asked_without_file(self):
        """Without a file, the images come from OpenML; the stub has two images of two pixels."""
        data, target = mnist.load_mnist()

        assert data.tolist() == [[0, 3], [255, 4]]
        assert target.tolist() == [7, 1]


class TestSplit:
    def test_images_are_shuffled_until_classes_are_complete(self, images):
        """Images are shuffled again until the first `smallest` of them have all ten classes.

        The first images of the pool are the smallest training set.
        """
        data, target = images
        smallest = 12  # so small that one shuffle is not enough
        rng = np.random.RandomState(1)  # the authors' seed
        order = list(range(400))
        rng.shuffle(order)
        assert len(set(target[order[:smallest]])) < 10
        while len(set(target[order[:smallest]])) < 10:
            rng.shuffle(order)

        split = mnist.split_images(data, target, pool_size=300, smallest=smallest)

        np.testing.assert_array_equal(split.pool_labels, target[order[:300]])
        np.testing.assert_array_equal(split.validation_labels, target[order[300:]])

    def test_pool_is_standardised(self, image_split):
        """Pixels have mean 0 and deviation 1, up to rounding, except for the constant first one."""
        assert image_split.pool.dtype == np.float32
        np.testing.assert_allclose(image_split.pool.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(image_split.pool[:, 1:].std(axis=0), 1, atol=1e-5)
        assert not image_split.pool[:, 0].any()

    def test_digest_is_of_the_images(self, images, image_split):
        """The digest is the same for the same images, and another if a single bit differs."""
        data, target = images
        changed = data.copy()
        changed[5, 5] ^= 1

        again = mnist.split_images(data, target, pool_size=300, smallest=20)
        split = mnist.split_images(changed, target, pool_size=300, smallest=20)

        assert again.digest == image_split.digest
        assert split.digest != image_split.digest

    def test_too_few_images_are_refused(self, images):
        """A pool of all 400 images is refused, as none would be left for validation."""
        with pytest.raises(ValueError, match="does not hold"):
            mnist.split_images(*images, pool_size=400, smallest=20)
