"""The folders that tests of the documentation work in."""

from pathlib import Path

import pytest

from hpobench_ordered.data.local import LOCAL_VARIABLE


@pytest.fixture(scope="session")
def root():
    """The folder of the README."""
    return Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """An empty folder to work in, without benchmarks of the user's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path / "own"))
    return tmp_path


@pytest.fixture
def builders(root, monkeypatch):
    """Lets the modules that make the pages be imported."""
    monkeypatch.syspath_prepend(str(root / "docs" / "_build"))
