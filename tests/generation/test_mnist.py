"""MNIST: read from a file or OpenML, shuffled, split and standardised."""

import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.errors import ArtifactError, DownloadError, MissingExtraError
from hpobench_ordered.generation import _mnist as mnist

# Arrays of 30 images of four pixels, and their classes.
IMAGES = {"data": np.ones((30, 4), np.uint8), "target": np.ones(30)}


class TestLoading:
    def test_npz_file_is_read(self, tmp_path):
        labels = np.array([1, 0, 9], np.uint8)
        np.savez(tmp_path / "x.npz", data=np.ones((3, 4), np.uint8), target=labels)

        data, target = mnist.load_mnist(tmp_path / "x.npz")

        assert (data.dtype, data.shape) == (np.uint8, (3, 4))
        assert target.dtype == np.int64
        assert target.tolist() == [1, 0, 9]

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            # Other names, objects, different lengths, and pixels that are no bytes.
            ({"x": np.ones(3)}, "'data' and 'target'"),
            ({"data": np.array([{}]), "target": np.ones(1)}, "'data' and 'target'"),
            ({"data": np.ones((3, 2)), "target": np.ones(2)}, r"got \(3, 2\) and \(2,\)"),
            (IMAGES | {"data": np.full((30, 4), 0.5)}, r"0\.\.255"),
            (IMAGES | {"data": np.full((30, 4), 256)}, r"0\.\.255"),
            (IMAGES | {"data": np.full((30, 4), -1)}, r"0\.\.255"),
        ],
    )
    def test_other_arrays_are_refused(self, tmp_path, arrays, message):
        """Arrays of other names, types or lengths, and pixels that are not from 0 to 255."""
        file = tmp_path / "x.npz"
        np.savez(file, **arrays, allow_pickle=True)

        with pytest.raises(ArtifactError, match=message):
            mnist.load_mnist(file)

    @pytest.mark.parametrize("bytes_left", [0, 100, 500])
    def test_cut_file_is_refused(self, tmp_path, bytes_left):
        file = tmp_path / "x.npz"
        np.savez(file, **IMAGES)
        # Only the first bytes are left.
        file.write_bytes(file.read_bytes()[:bytes_left])

        with pytest.raises(ArtifactError, match="'data' and 'target'"):
            mnist.load_mnist(file)

    def test_missing_file_is_refused(self, tmp_path):
        with pytest.raises(ArtifactError, match=r"x\.npz is not an npz file"):
            mnist.load_mnist(tmp_path / "x.npz")

    @pytest.fixture
    def openml(self, monkeypatch):
        """A stub of OpenML's client, which has MNIST only: data set 554, here two images of two
        pixels.
        """
        pixels = pd.DataFrame({"pixel1": [0, 255], "pixel2": [3, 4]})
        labels = pd.Series(["7", "1"], dtype="category")
        is_nominal = [False, False]
        answer = (pixels, labels, is_nominal, list(pixels))
        dataset = SimpleNamespace(default_target_attribute="class", get_data=lambda target: answer)
        stub = SimpleNamespace(
            datasets=SimpleNamespace(get_dataset={554: dataset}.__getitem__),
            exceptions=SimpleNamespace(PyOpenMLError=type("PyOpenMLError", (Exception,), {})),
        )
        monkeypatch.setitem(sys.modules, "openml", stub)
        return stub

    @pytest.mark.usefixtures("openml")
    def test_openml_is_asked_without_file(self):
        data, target = mnist.load_mnist()

        # Two images of two pixels, of the stub.
        assert data.tolist() == [[0, 3], [255, 4]]
        assert target.tolist() == [7, 1]

    def test_failed_download_names_the_alternative(self, openml):
        openml.datasets.get_dataset = Mock(side_effect=ConnectionError("no network"))

        with pytest.raises(DownloadError, match=r"no network.*local npz"):
            mnist.load_mnist()

    def test_missing_client_names_the_extra(self, monkeypatch):
        # Makes the import fail.
        monkeypatch.setitem(sys.modules, "openml", None)

        with pytest.raises(MissingExtraError, match=r"\[train\]"):
            mnist.load_mnist()


class TestSplit:
    def test_images_are_shuffled_until_classes_are_complete(self, images):
        """Until the smallest training set, the first images, has all ten classes."""
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
        """NumPy's global random state, which others may use."""
        state_before = np.random.get_state()[1].copy()  # noqa: NPY002

        mnist.split_images(*images, pool_size=300, smallest=12)

        np.testing.assert_array_equal(np.random.get_state()[1], state_before)  # noqa: NPY002

    def test_pool_is_standardised(self, small):
        assert small.pool.dtype == np.float32
        # Up to the rounding errors of float32.
        np.testing.assert_allclose(small.pool.mean(axis=0), 0, atol=1e-5)
        # The first pixel is constant, so it has no deviation.
        np.testing.assert_allclose(small.pool[:, 1:].std(axis=0), 1, atol=1e-5)

    def test_constant_pixel_is_centred(self, small):
        # The first pixel is the same in all images.
        first_pixel = small.pool[:, 0]

        assert not first_pixel.any()

    def test_validation_images_do_not_count(self, small):
        """They are standardised by means of the pool, so theirs are not exactly 0."""
        means = small.validation[:, 1:].mean(axis=0)

        assert np.abs(means).max() > 0.01

    def test_same_data_have_same_digest(self, images, small):
        # As the fixture `small` is split.
        again = mnist.split_images(*images, pool_size=300, smallest=20)

        assert again.digest == small.digest

    def test_changed_pixel_changes_digest(self, images, small):
        data, target = images
        changed = data.copy()
        # One bit of one pixel.
        changed[5, 5] ^= 1

        split = mnist.split_images(changed, target, pool_size=300, smallest=20)

        assert split.digest != small.digest

    @pytest.mark.parametrize(("pool_size", "smallest"), [(400, 20), (300, 9), (10, 20)])
    def test_impossible_sizes_are_refused(self, images, pool_size, smallest):
        """Of 400 images of ten classes: none left for validation, fewer than classes, a pool below
        the smallest size.
        """
        with pytest.raises(ValueError, match="does not hold"):
            mnist.split_images(*images, pool_size=pool_size, smallest=smallest)
