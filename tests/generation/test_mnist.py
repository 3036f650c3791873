import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.errors import ArtifactError, DownloadError, MissingExtraError
from hpobench_ordered.generation import _mnist as mnist

IMAGES = {"data": np.ones((30, 4), np.uint8), "target": np.ones(30)}


class TestLoading:
    def test_reads_an_npz_file(self, tmp_path):
        labels = np.array([1, 0, 9], np.uint8)
        np.savez(tmp_path / "x.npz", data=np.ones((3, 4), np.uint8), target=labels)
        data, target = mnist.load_mnist(tmp_path / "x.npz")
        assert (data.dtype, data.shape, target.dtype) == (np.uint8, (3, 4), np.int64)
        assert target.tolist() == [1, 0, 9]

    @pytest.mark.parametrize(
        ("arrays", "kept", "message"),
        [
            (None, None, r"x\.npz is not an npz file"),
            ({"x": np.ones(3)}, None, "'data' and 'target'"),
            ({"data": np.array([{}]), "target": np.ones(1)}, None, "'data' and 'target'"),
            ({"data": np.ones((3, 2)), "target": np.ones(2)}, None, r"got \(3, 2\) and \(2,\)"),
            *((IMAGES, kept, "'data' and 'target'") for kept in (0, 100, 500)),
            *((IMAGES | {"data": np.full((30, 4), n)}, None, r"0\.\.255") for n in (0.5, 256, -1)),
        ],
    )
    def test_refuses_other_files(self, tmp_path, arrays, kept, message):
        file = tmp_path / "x.npz"
        if arrays is not None:
            np.savez(file, **arrays, allow_pickle=True)
            file.write_bytes(file.read_bytes()[:kept])
        with pytest.raises(ArtifactError, match=message):
            mnist.load_mnist(file)

    def test_asks_openml(self, monkeypatch):
        frame = pd.DataFrame({"pixel1": [0, 255], "pixel2": [3, 4]})
        found = (frame, pd.Series(["7", "1"], dtype="category"), [False] * 2, list(frame))
        dataset = SimpleNamespace(default_target_attribute="class", get_data=lambda target: found)
        openml = SimpleNamespace(
            datasets=SimpleNamespace(get_dataset={554: dataset}.__getitem__),
            exceptions=SimpleNamespace(PyOpenMLError=type("PyOpenMLError", (Exception,), {})),
        )
        monkeypatch.setitem(sys.modules, "openml", openml)
        data, target = mnist.load_mnist()
        assert (data.tolist(), target.tolist()) == ([[0, 3], [255, 4]], [7, 1])
        openml.datasets.get_dataset = Mock(side_effect=ConnectionError("no network"))
        with pytest.raises(DownloadError, match=r"no network.*local npz"):
            mnist.load_mnist()
        monkeypatch.setitem(sys.modules, "openml", None)
        with pytest.raises(MissingExtraError, match=r"\[train\]"):
            mnist.load_mnist()


class TestSplit:
    def test_shuffles_a_list_until_the_first_labels_hold_all_classes(self, images):
        data, target = images
        smallest = 12  # so small that one shuffle is not enough
        rng, order = np.random.RandomState(1), list(range(400))
        rng.shuffle(order)
        assert len(set(target[order[:smallest]])) < 10
        while len(set(target[order[:smallest]])) < 10:
            rng.shuffle(order)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        split = mnist.split(data, target, pool_size=300, smallest=smallest)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        np.testing.assert_array_equal(split.pool_labels, target[order[:300]])
        np.testing.assert_array_equal(split.validation_labels, target[order[300:]])

    def test_standardises_by_the_pool(self, small):
        assert small.pool.dtype == np.float32
        np.testing.assert_allclose(small.pool.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(small.pool[:, 1:].std(axis=0), 1, atol=1e-5)
        assert not small.pool[:, 0].any()
        assert abs(small.validation[:, 1:].mean(axis=0)).max() > 0.01

    def test_digest_tells_data_apart(self, images, small):
        data, target = images
        other = data.copy()
        for same in (True, False):
            again = mnist.split(other, target, pool_size=300, smallest=20)
            assert (again.digest == small.digest) is same
            other[5, 5] ^= 1

    @pytest.mark.parametrize(("pool", "smallest"), [(400, 20), (300, 9), (10, 20)])
    def test_impossible_sizes_are_refused(self, images, pool, smallest):
        with pytest.raises(ValueError, match="does not hold"):
            mnist.split(*images, pool_size=pool, smallest=smallest)
