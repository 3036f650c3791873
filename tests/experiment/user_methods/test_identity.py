"""Versions of methods: what counts beside the files, which `test_resuming` changes."""

import functools
import threading
from dataclasses import replace

import pytest
from optimisers import pair

from hpobench_ordered.data.identity import NEW_AT_EACH_START
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.user_methods.identity import (
    MethodRecord,
    choose_version,
    identify_here,
    method_version,
)
from hpobench_ordered.experiment.user_methods.loaded_code import LoadedCode, hash_now
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.methods.registry import list_methods, method_spec
from hpobench_ordered.tuning import as_method_spec


def test_version_of_registered_method_is_its_number():
    """Methods of the package have a number, which is raised when they change."""
    for name in list_methods():
        spec = method_spec(name)
        assert method_version(spec) == str(spec.version)


def test_settings_of_unregistered_method_count():
    """The version of an unregistered method of this package follows from what its spec says."""
    spec = replace(method_spec("random-search"), name="twin", changed_spaces=False)
    version = method_version(spec)

    assert method_version(replace(spec)) == version
    assert method_version(replace(spec, version=2)) != version
    assert identify_here(spec).version == version


@pytest.mark.slow
def test_local_class_is_always_new():
    """A class defined in a function cannot be found again by another process."""

    class Local(RandomSearch):
        pass

    spec = as_method_spec(Local, name="new")
    first_version = method_version(spec)
    second_version = method_version(spec)

    assert first_version.startswith(NEW_AT_EACH_START)
    assert second_version != first_version


def test_method_in_own_process_is_always_new():
    """Nothing tells what this process has loaded for a method from outside."""
    spec = as_method_spec(pair)

    assert identify_here(spec).version != identify_here(spec).version


def test_argument_that_cannot_be_sent_is_refused():
    method = functools.partial(pair, budget=threading.Lock())
    spec = as_method_spec(method, name="locked")

    with pytest.raises(ExperimentError, match="cannot be sent to another process"):
        method_version(spec)


# -- the version of a method that loads a file, late.py, while it runs -----------------------------

# The results of a run have a record of what the method loaded. A later run reads it, and the
# method keeps its version if these files have not changed.

BASE_VERSION = "0123456789ab"
"""Hash of what a method imports before it runs: its version if it loads nothing more."""


def make_record(folder, *, version: str = BASE_VERSION) -> MethodRecord:
    """Record a run of a version of the method, which loaded late.py as it is now."""
    later = {"late.py": hash_now("late.py", folder)}
    return MethodRecord("mine", version, BASE_VERSION, imported=LoadedCode(), later=later)


@pytest.fixture
def folder(tmp_path):
    """A folder with the file late.py."""
    (tmp_path / "late.py").write_text("VALUE = 1\n")
    return tmp_path


def test_first_version_is_the_base(folder):
    """Without a record of a run, the version is the hash of what the method imports."""
    no_records = []

    assert choose_version(BASE_VERSION, no_records, folder) == BASE_VERSION


def test_changed_file_gives_same_version_again(folder):
    """Two runs after the same change of late.py have the same version."""
    record = make_record(folder)
    assert choose_version(BASE_VERSION, [record], folder) == BASE_VERSION
    (folder / "late.py").write_text("VALUE = 2\n")

    first_version = choose_version(BASE_VERSION, [record], folder)
    second_version = choose_version(BASE_VERSION, [record], folder)

    assert first_version != BASE_VERSION
    assert second_version == first_version


def test_version_is_that_of_record_that_fits(folder):
    """late.py changed between two runs: it is as it was in the second, then as in the first."""
    first_run = make_record(folder)
    (folder / "late.py").write_text("VALUE = 2\n")
    second_run = make_record(folder, version="1")
    records = [first_run, second_run]

    assert choose_version(BASE_VERSION, records, folder) == second_run.version

    (folder / "late.py").write_text("VALUE = 1\n")
    assert choose_version(BASE_VERSION, records, folder) == first_run.version
