"""MNIST: read from a file or OpenML, shuffled, split and standardised."""

import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.errors import ArtifactError, DownloadError, MissingExtraError
from hpobench_ordered.generation import _mnist as mnist

# Arrays of 30 images of four pixels, and their classes.
VALID_ARRAYS = {"data": np.ones((30, 4), np.uint8), "target": np.ones(30)}


class TestLoading:
    def test_npz_file_is_read(self, tmp_path):
        """A file of three images, of four pixels each, and their labels."""
        labels = np.array([1, 0, 9], np.uint8)
        np.savez(tmp_path / "x.npz", data=np.ones((3, 4), np.uint8), target=labels)

        data, target = mnist.load_mnist(tmp_path / "x.npz")

        assert (data.dtype, data.shape) == (np.uint8, (3, 4))
        assert target.dtype == np.int64
        assert target.tolist() == [1, 0, 9]

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            # Other names, and an array of objects
            ({"x": np.ones(3)}, "'data' and 'target'"),
            ({"data": np.array([{}]), "target": np.ones(1)}, "'data' and 'target'"),
            # Three images and two labels
            ({"data": np.ones((3, 2)), "target": np.ones(2)}, r"got \(3, 2\) and \(2,\)"),
            # Pixels that are no bytes
            (VALID_ARRAYS | {"data": np.full((30, 4), 0.5)}, r"0\.\.255"),
            (VALID_ARRAYS | {"data": np.full((30, 4), 256)}, r"0\.\.255"),
            (VALID_ARRAYS | {"data": np.full((30, 4), -1)}, r"0\.\.255"),
        ],
    )
    def test_other_arrays_are_refused(self, tmp_path, arrays, message):
        """A file must have bytes as pixels, in `data`, and as many labels, in `target`."""
        file = tmp_path / "x.npz"
        np.savez(file, **arrays, allow_pickle=True)

        with pytest.raises(ArtifactError, match=message):
            mnist.load_mnist(file)

    @pytest.mark.parametrize("bytes_left", [0, 100, 500])
    def test_cut_file_is_refused(self, tmp_path, bytes_left):
        """Only the first bytes of a file are left, as after a download that broke off."""
        file = tmp_path / "x.npz"
        np.savez(file, **VALID_ARRAYS)
        file.write_bytes(file.read_bytes()[:bytes_left])

        with pytest.raises(ArtifactError, match="'data' and 'target'"):
            mnist.load_mnist(file)

    def test_missing_file_is_refused(self, tmp_path):
        with pytest.raises(ArtifactError, match=r"x\.npz is not an npz file"):
            mnist.load_mnist(tmp_path / "x.npz")

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

    def test_failed_download_names_the_alternative(self, openml):
        """The error tells the cause, and that a local file can be used instead."""
        openml.datasets.get_dataset = Mock(side_effect=ConnectionError("no network"))

        with pytest.raises(DownloadError, match=r"no network.*local npz"):
            mnist.load_mnist()

    def test_missing_client_names_the_extra(self, monkeypatch):
        """The error names the extra of this package with which OpenML's client is installed."""
        # Makes the import fail.
        monkeypatch.setitem(sys.modules, "openml", None)

        with pytest.raises(MissingExtraError, match=r"\[train\]"):
            mnist.load_mnist()


class TestSplit:
    def test_images_are_shuffled_until_classes_are_complete(self, images):
        """The smallest training set, the first images of the pool, must have all ten classes."""
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

    def test_splitting_keeps_global_state(self, images):
        """Images are shuffled without NumPy's global random state, which others may use."""
        state_before = np.random.get_state()[1].copy()  # noqa: NPY002

        mnist.split_images(*images, pool_size=300, smallest=12)

        np.testing.assert_array_equal(np.random.get_state()[1], state_before)  # noqa: NPY002

    def test_pool_is_standardised(self, image_split):
        """Pixels have mean 0 and deviation 1, up to rounding, except for the constant first one."""
        assert image_split.pool.dtype == np.float32
        np.testing.assert_allclose(image_split.pool.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(image_split.pool[:, 1:].std(axis=0), 1, atol=1e-5)

    def test_constant_pixel_is_centred(self, image_split):
        # The first pixel is the same in all images.
        first_pixel = image_split.pool[:, 0]

        assert not first_pixel.any()

    def test_validation_images_do_not_count(self, image_split):
        """Pixels are standardised by the mean and deviation of the pool alone.

        So the means of validation images are near 0, but not exactly.
        """
        means = image_split.validation[:, 1:].mean(axis=0)

        assert np.abs(means).max() > 0.01

    def test_same_data_have_same_digest(self, images, image_split):
        """Images split again as the fixture was."""
        again = mnist.split_images(*images, pool_size=300, smallest=20)

        assert again.digest == image_split.digest

    def test_changed_pixel_changes_digest(self, images, image_split):
        """The digest of a split tells other images apart, even by a single bit."""
        data, target = images
        changed = data.copy()
        # One bit of one pixel.
        changed[5, 5] ^= 1

        split = mnist.split_images(changed, target, pool_size=300, smallest=20)

        assert split.digest != image_split.digest

    @pytest.mark.parametrize(
        ("pool_size", "smallest"),
        [
            pytest.param(400, 20, id="none left for validation"),
            pytest.param(300, 9, id="fewer images than classes"),
            pytest.param(10, 20, id="pool below the smallest training set"),
        ],
    )
    def test_impossible_sizes_are_refused(self, images, pool_size, smallest):
        """Of the 400 images of ten classes, each of these sizes leaves too few for something."""
        with pytest.raises(ValueError, match="does not hold"):
            mnist.split_images(*images, pool_size=pool_size, smallest=smallest)
