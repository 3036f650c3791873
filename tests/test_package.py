"""The wheel: everything is in it, and it works away from the checkout."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).absolute().parents[1]
FOLDERS_BESIDE_PACKAGE = ("methods", "generation", "artifacts")
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
    """The file of the package as it is published.

    It is built from a copy of the checkout, where it would leave files and find old ones.
    """
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "results")
    shutil.copytree(CHECKOUT, source, symlinks=True, ignore=ignored)
    command = ["pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]

    result = subprocess.run(
        [sys.executable, "-m", *command], check=False, capture_output=True, text=True
    )

    assert result.returncode == 0, result.stderr
    (wheel_file,) = folder.glob("*.whl")
    return wheel_file


def list_files_of_checkout() -> set[str]:
    """List the files that a wheel should hold, by their paths in it.

    Some folders of the package lie beside it in the checkout, but inside of it in a wheel.
    """
    package = CHECKOUT / "hpobench_ordered"
    paths_in_wheel = [path.relative_to(CHECKOUT) for path in iter_files(package)]
    for name in FOLDERS_BESIDE_PACKAGE:
        for path in iter_files(CHECKOUT / name):
            paths_in_wheel.append("hpobench_ordered" / path.relative_to(CHECKOUT))
    return {path.as_posix() for path in paths_in_wheel}


def iter_files(folder: Path) -> Iterator[Path]:
    """Iterate over all files in a folder and in those inside it, except compiled modules."""
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


@pytest.mark.slow
def test_wheel_holds_every_module_and_artifact(wheel):
    """The wheel has exactly the files that the checkout has for it."""
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
from hpobench_ordered.benchmarks.registry import benchmark_spec

assert hbo.__file__.startswith(site), hbo.__file__
first_of_family = {}
for name in hbo.list_benchmarks(ready=True):
    first_of_family.setdefault(benchmark_spec(name).family, name)
for name in first_of_family.values():
    task = hbo.load(name).tasks[-1]
    config = task.space.sample(np.random.default_rng(0))
    assert task.evaluate(config) == task.evaluate_many([config])[0]
hbo.run(benchmarks=["newsvendor"], methods=["random-search"], seeds=[0])
"""
"""Evaluates one configuration on a benchmark of each family, and runs one method.

Others would be compiled anew; `.ci/run` runs some of them from the installed package.
"""


@pytest.fixture
def installed(wheel, tmp_path):
    """A new environment with the wheel: its Python, and the folder of its installed packages."""
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
    """A script uses the package from its wheel, in a folder away from the checkout.

    It finds the dependencies where this environment has them, such as pytest.
    """
    python, site = installed
    dependencies = Path(pytest.__file__).parents[1]
    empty_folder = tmp_path / "empty"
    empty_folder.mkdir()

    result = subprocess.run(
        [python, "-I", "-c", SCRIPT_OF_USER, str(dependencies), str(site)],
        capture_output=True,
        text=True,
        cwd=empty_folder,
        check=False,
    )

    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["methods", "generation"])
def test_linked_package_refuses_bare_import(name):
    """A folder at the top of the checkout can be imported by mistake, without the package's name.

    The error then tells the right name.
    """
    result = subprocess.run(
        [sys.executable, "-c", f"import {name}"],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
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
    assert count_bytes(CHECKOUT / "artifacts") <= MAX_BYTES_OF_ARTIFACTS


def test_large_artifacts_are_named_exceptions():
    """Each folder of an artifact stays within a limit, except of those that are listed."""
    folders = [path for path in (CHECKOUT / "artifacts").iterdir() if path.is_dir()]

    above_limit = {path.name for path in folders if count_bytes(path) > MAX_BYTES_OF_BENCHMARK}

    assert above_limit == LARGER_ARTIFACTS.keys()
