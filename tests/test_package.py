"""The wheel: everything is in it, and it works away from the checkout."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).absolute().parents[1]
LINKED = ("methods", "generation", "artifacts")
"""Folders of the checkout to which links in the package lead."""

MAX_BYTES_OF_ARTIFACTS = 60e6
MAX_BYTES_OF_BENCHMARK = 1e6
LARGER_ARTIFACTS = {
    "openml-svm": "a forest for each of 14 data sets",
    "openml-xgboost": "a forest for each of 14 data sets",
    "reference": "results of all methods, no benchmark",
    "xgboost-mnist": "three surrogates of 28 tasks",
    "yahpo-aknn-41138": "the second largest forest of nearest neighbours' evaluations, just above",
    "yahpo-aknn-4538": "the largest forest of nearest neighbours' evaluations, just above",
    "yahpo-ranger-40978": "one of the two largest forests, 20 tasks in 8 dimensions",
    "yahpo-ranger-4154": "one of the two largest forests, 20 tasks in 8 dimensions",
}
"""Folders above the limit of a benchmark, each with the reason."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The file of the package as it is published, built from a copy of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # building in the checkout would leave files, and find old ones
    ignored = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "results")
    shutil.copytree(ROOT, source, symlinks=True, ignore=ignored)
    command = ["pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]

    result = subprocess.run(
        [sys.executable, "-m", *command], check=False, capture_output=True, text=True
    )

    assert result.returncode == 0, result.stderr
    (wheel_file,) = folder.glob("*.whl")
    return wheel_file


def list_files_of_checkout() -> set[str]:
    """Files of the package, the linked folders included, under their names in the package."""
    folders = [ROOT / "hpobench_ordered", *(ROOT / name for name in LINKED)]
    files = set()
    for folder in folders:
        for path in folder.rglob("*"):
            relative = path.relative_to(ROOT)
            if path.is_file() and "__pycache__" not in path.parts:
                if relative.parts[0] in LINKED:
                    relative = Path("hpobench_ordered") / relative
                files.add(relative.as_posix())
    return files


@pytest.mark.slow
def test_wheel_holds_every_module_and_artifact(wheel):
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert files == list_files_of_checkout()


@pytest.mark.slow
def test_wheel_stays_within_the_limit(wheel):
    assert wheel.stat().st_size <= MAX_BYTES_OF_ARTIFACTS


SCRIPT_OF_USER = """
import sys

dependencies, site = sys.argv[1:]
sys.path.append(dependencies)

import numpy as np
import hpobench_ordered as hbo

assert hbo.__file__.startswith(site), hbo.__file__
for name in hbo.list_benchmarks(ready=True):
    task = hbo.load(name).tasks[-1]
    config = task.space.sample(np.random.default_rng(0))
    assert task.evaluate(config) == task.evaluate_many([config])[0]
hbo.run(benchmarks=["newsvendor"], methods=["bo"], seeds=[0])
"""
"""Evaluates one configuration on every benchmark, and runs one method."""


@pytest.fixture
def installed(wheel, tmp_path):
    """The Python of a new environment with the wheel in it, and the folder it is installed in."""
    environment = tmp_path / "venv"
    venv.create(environment, system_site_packages=False, with_pip=False)
    if os.name == "nt":
        python = environment / "Scripts" / "python.exe"
        site = environment / "Lib" / "site-packages"
    else:
        python = environment / "bin" / "python"
        (site,) = environment.glob("lib/python*/site-packages")

    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return python, site


@pytest.mark.slow
def test_installed_package_works_elsewhere(installed, tmp_path):
    python, site = installed
    # The dependencies are those of this environment; the package itself must not be.
    dependencies = Path(pytest.__file__).parents[1]
    empty_folder = tmp_path / "empty"
    empty_folder.mkdir()

    result = subprocess.run(
        [python, "-c", SCRIPT_OF_USER, str(dependencies), str(site)],
        capture_output=True,
        text=True,
        cwd=empty_folder,
        check=False,
    )

    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["methods", "generation"])
def test_linked_package_refuses_bare_import(name):
    """Its folder is at the top of the checkout; the error names how to import it."""
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {name}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode != 0
    assert f"hpobench_ordered.{name}" in result.stderr


def count_bytes(folder: Path) -> int:
    """Count the bytes of all files in a folder and in those inside it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_artifacts_stay_within_the_limit():
    assert count_bytes(ROOT / "artifacts") <= MAX_BYTES_OF_ARTIFACTS


def test_large_artifacts_are_named_exceptions():
    folders = [path for path in (ROOT / "artifacts").iterdir() if path.is_dir()]

    large = {path.name for path in folders if count_bytes(path) > MAX_BYTES_OF_BENCHMARK}

    assert large == LARGER_ARTIFACTS.keys()
