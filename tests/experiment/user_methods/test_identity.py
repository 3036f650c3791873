"""Versions of methods: what counts beside the files, which `test_resuming` changes."""

import functools
import json
import sys
import threading
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from optimisers import Sampling, pair

from hpobench_ordered.data.identity import NEW_AT_EACH_START
from hpobench_ordered.experiment.user_methods.identity import (
    MethodRecord,
    choose_version,
    identify_here,
    method_version,
)
from hpobench_ordered.experiment.user_methods.loaded_files import (
    LoadedFile,
    LoadedFiles,
    file_digest,
)
from hpobench_ordered.experiment.user_methods.source import digest_of_method, source_in_files
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.methods.registry import list_methods, method_spec
from hpobench_ordered.tuning import as_method_spec


def test_version_of_registered_method_is_its_number():
    """Methods of the package have a number, which is raised when they change."""
    for name in list_methods():
        spec = method_spec(name)
        assert method_version(spec) == str(spec.version)


@pytest.fixture
def unregistered_spec():
    """A spec of random search under a name that is not registered."""
    return replace(method_spec("random-search"), name="twin", changed_spaces=False)


def test_equal_specs_have_same_version(unregistered_spec):
    """The version depends on what a spec says, not on the object."""
    copy = replace(unregistered_spec)

    assert method_version(copy) == method_version(unregistered_spec)


def test_settings_of_unregistered_method_count(unregistered_spec):
    """The version of an unregistered method follows from its source and its settings."""
    changed = replace(unregistered_spec, version=2)

    assert method_version(changed) != method_version(unregistered_spec)


def test_unregistered_method_with_source_is_resumable(unregistered_spec):
    assert not identify_here(unregistered_spec).is_new_at_each_start


def make_factory_around(value: object) -> object:
    """Make a factory of methods that refers to a value."""

    def factory(space, rng):
        _unused = value  # so that the value belongs to the function
        return Sampling(space, rng)

    return factory


DIFFERENT_VALUES = [
    1,
    2.0,
    {"a"},
    {"a", "b"},
    np.arange(3),
    np.arange(4),
    [1, {"deep": (2,)}],
    Sampling,
    json,
]


def digest_of_values() -> list[str]:
    """Digests of factories that are alike but for the value that they refer to."""
    return [digest_of_method(make_factory_around(value)) for value in DIFFERENT_VALUES]


def test_different_values_give_different_digests():
    assert len(set(digest_of_values())) == len(DIFFERENT_VALUES)


def test_same_values_give_same_digests():
    assert digest_of_values() == digest_of_values()


def test_arguments_of_partial_functions_count():
    """`pair` with another argument is another method."""
    digest = digest_of_method(functools.partial(pair, budget=3))
    digest_of_same = digest_of_method(functools.partial(pair, budget=3))
    digest_of_other_budget = digest_of_method(functools.partial(pair, budget=4))

    assert digest_of_same == digest
    assert digest_of_other_budget != digest


def test_lambdas_count_by_their_place():
    """Lambdas of the same text, but on different lines, are different methods."""
    first_lambda, second_lambda = (
        lambda space, rng: (space, 1),
        lambda space, rng: (space, 1),
    )

    assert digest_of_method(first_lambda) != digest_of_method(second_lambda)


def make_local_class() -> type:
    """A class of a function, which no other process can import."""

    class Local(RandomSearch):
        pass

    return Local


def make_typed_class() -> type:
    """A class as if typed into an interactive session: its module has no file."""
    module = ModuleType("typed_into_a_session")
    exec("class Typed: ...", vars(module))
    sys.modules[module.__name__] = module
    typed: type = module.Typed
    return typed


def make_factory_with_lock() -> object:
    """A factory with an argument that cannot be written down."""
    return functools.partial(pair, budget=threading.Lock())


@pytest.mark.parametrize(
    "make_method", [make_local_class, make_typed_class, make_factory_with_lock]
)
def test_methods_without_files_are_new(make_method):
    """Whether they have changed cannot be known, so that none of their runs is resumed."""
    method = make_method()
    spec = replace(method_spec("random-search"), name="new", method=method)

    assert source_in_files(method) is None
    assert identify_here(spec).is_new_at_each_start


@pytest.mark.slow
def test_local_class_is_always_new():
    """A class defined in a function cannot be found again by another process."""
    spec = as_method_spec(make_local_class(), name="new")

    first_version = method_version(spec)
    second_version = method_version(spec)

    assert first_version.startswith(NEW_AT_EACH_START)
    assert second_version != first_version


# -- the version of a method that loads a file, late.py, while it runs -----------------------------

# The results of a run have a record of what the method loaded. A later run reads it, and the
# method keeps its version if these files have not changed.

BASE_VERSION = "0123456789ab"
"""Hash of what a method imports before it runs: its version if it loads nothing more."""


def make_record(folder, *, version: str = BASE_VERSION) -> MethodRecord:
    """Record a run of a version of the method, which loaded late.py as it is now.

    `imported` is what was loaded when the method was imported, `later` what was loaded as it ran.
    """
    late_file = LoadedFile("late", file_digest(folder / "late.py"), "late.py")
    return MethodRecord(
        method="mine",
        version=version,
        base=BASE_VERSION,
        imported=LoadedFiles(),
        later=LoadedFiles(files=(late_file,)),
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with the file late.py."""
    (tmp_path / "late.py").write_text("VALUE = 1\n")
    return tmp_path


def test_first_version_is_the_base(folder):
    """Without a record of a run, the version is the hash of what the method imports."""
    no_records = []

    assert choose_version(BASE_VERSION, no_records, folder) == BASE_VERSION


def test_unchanged_later_files_keep_version(folder):
    """The record tells that the method loaded late.py, which is the same now."""
    record = make_record(folder)

    assert choose_version(BASE_VERSION, [record], folder) == BASE_VERSION


def test_version_changes_with_later_files(folder):
    """After the recorded run, late.py changes."""
    record = make_record(folder)
    (folder / "late.py").write_text("VALUE = 2\n")

    assert choose_version(BASE_VERSION, [record], folder) != BASE_VERSION


def test_changed_file_gives_same_version_again(folder):
    """Two runs after the same change of late.py have the same version."""
    record = make_record(folder)
    (folder / "late.py").write_text("VALUE = 2\n")

    first_version = choose_version(BASE_VERSION, [record], folder)
    second_version = choose_version(BASE_VERSION, [record], folder)

    assert second_version == first_version


def test_version_is_that_of_record_that_fits(folder):
    """late.py changed between two runs, and is still as it was in the second."""
    first_run = make_record(folder)
    (folder / "late.py").write_text("VALUE = 2\n")
    second_run = make_record(folder, version="1")

    assert choose_version(BASE_VERSION, [first_run, second_run], folder) == second_run.version


def test_restored_files_restore_the_version(folder):
    """late.py changed between two runs, and is now as it was in the first again."""
    first_run = make_record(folder)
    (folder / "late.py").write_text("VALUE = 2\n")
    second_run = make_record(folder, version="1")
    (folder / "late.py").write_text("VALUE = 1\n")

    assert choose_version(BASE_VERSION, [first_run, second_run], folder) == first_run.version


def test_missing_files_make_new_version(folder):
    """Where late.py cannot be found, a run may have loaded it from anywhere, and is not resumed."""
    first_run = make_record(folder)
    (folder / "late.py").unlink()
    version_without_file = choose_version(BASE_VERSION, [first_run], folder)
    second_run = replace(first_run, version=version_without_file)

    version = choose_version(BASE_VERSION, [first_run, second_run], folder)

    assert version.startswith(NEW_AT_EACH_START)


def test_hiding_a_file_changes_the_version(folder, tmp_path_factory, monkeypatch):
    """Another late.py comes first on the path of imports, and would be loaded instead."""
    record = make_record(folder)
    other_folder = tmp_path_factory.mktemp("other")
    (other_folder / "late.py").write_text("VALUE = 2\n")
    monkeypatch.syspath_prepend(other_folder)

    assert choose_version(BASE_VERSION, [record], folder) != BASE_VERSION


def test_other_package_version_changes_it(folder):
    """The method imported a package while it ran, of which another version is installed now.

    By its record, it used pytest 0.0.1.
    """
    not_installed = LoadedFiles(packages=("pytest 0.0.1",))
    record = MethodRecord(
        method="mine",
        version=BASE_VERSION,
        base=BASE_VERSION,
        imported=LoadedFiles(),
        later=not_installed,
    )

    assert choose_version(BASE_VERSION, [record], folder) != BASE_VERSION
