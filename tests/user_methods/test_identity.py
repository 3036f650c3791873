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

from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.core.identity import NEW_AT_EACH_START
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.registry import list_methods, method_spec
from hpobench_ordered.user_methods.identity import (
    MethodRecord,
    choose_version,
    identify_here,
    method_version,
)
from hpobench_ordered.user_methods.loaded_files import LoadedFile, LoadedFiles, file_digest
from hpobench_ordered.user_methods.source import digest_of_method, source_in_files


def test_registered_method_has_its_number():
    for name in list_methods():
        spec = method_spec(name)
        assert method_version(spec) == str(spec.version)


@pytest.fixture
def unregistered():
    """A spec of random search under a name that is not registered."""
    return replace(method_spec("random-search"), name="twin", changed_spaces=False)


def test_equal_specs_have_same_version(unregistered):
    copy = replace(unregistered)

    assert method_version(copy) == method_version(unregistered)


def test_settings_of_unregistered_method_count(unregistered):
    changed = replace(unregistered, version=2)

    assert method_version(changed) != method_version(unregistered)


def test_unregistered_method_with_source_is_resumable(unregistered):
    assert not identify_here(unregistered).is_new_at_each_start


def make_factory_around(value: object) -> object:
    """Make a factory that is the same for every value but for what it refers to."""

    def factory(space, rng):
        return Sampling(space, rng) if value else None

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
    """The same function with a budget of 3 twice, and with a budget of 4."""
    of_three = digest_of_method(functools.partial(pair, budget=3))
    of_three_again = digest_of_method(functools.partial(pair, budget=3))
    of_four = digest_of_method(functools.partial(pair, budget=4))

    assert of_three_again == of_three
    assert of_four != of_three


def test_lambdas_count_by_their_place():
    """Two that are alike stand on two lines."""
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


@pytest.mark.parametrize("make", [make_local_class, make_typed_class, make_factory_with_lock])
def test_methods_without_files_are_new(make):
    """Whether their source has changed cannot be known, so that no run of theirs is resumed."""
    method = make()
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

BASE_VERSION = "0123456789ab"
"""The version by what a method imports before it runs."""


def make_record(folder, *, version: str = BASE_VERSION) -> MethodRecord:
    """A record that a method loaded late.py while it ran, with what it holds now."""
    late_file = LoadedFile("late", file_digest(folder / "late.py"), "late.py")
    return MethodRecord(
        "mine", version, BASE_VERSION, imported=LoadedFiles(), later=LoadedFiles((late_file,))
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with the file late.py."""
    (tmp_path / "late.py").write_text("VALUE = 1\n")
    return tmp_path


def test_first_version_is_the_base(folder):
    no_records = []

    assert choose_version(BASE_VERSION, no_records, folder) == BASE_VERSION


def test_unchanged_later_files_keep_version(folder):
    """The record tells what the method loaded while it ran: late.py, with its present content."""
    record = make_record(folder)

    assert choose_version(BASE_VERSION, [record], folder) == BASE_VERSION


def test_version_changes_with_later_files(folder):
    """The record tells what the method loaded while it ran: late.py, which changes afterwards."""
    record = make_record(folder)
    (folder / "late.py").write_text("VALUE = 2\n")

    version = choose_version(BASE_VERSION, [record], folder)

    assert version != BASE_VERSION
    # It is not a new one each time.
    assert choose_version(BASE_VERSION, [record], folder) == version


def test_version_is_that_of_record_that_fits(folder):
    """Of two records, made with other contents of late.py, the second fits the present one."""
    first = make_record(folder)
    (folder / "late.py").write_text("VALUE = 2\n")
    second = make_record(folder, version="1")

    assert choose_version(BASE_VERSION, [first, second], folder) == second.version


def test_restored_files_restore_the_version(folder):
    """Of two records, made with other contents of late.py, the first fits the present one again."""
    first = make_record(folder)
    (folder / "late.py").write_text("VALUE = 2\n")
    second = make_record(folder, version="1")
    (folder / "late.py").write_text("VALUE = 1\n")

    assert choose_version(BASE_VERSION, [first, second], folder) == first.version


def test_missing_files_make_new_version(folder):
    """Also where a version was chosen before without the file."""
    record = make_record(folder)
    (folder / "late.py").unlink()
    record_without_file = replace(record, version=choose_version(BASE_VERSION, [record], folder))

    version = choose_version(BASE_VERSION, [record, record_without_file], folder)

    assert version.startswith(NEW_AT_EACH_START)


def test_hiding_a_file_changes_the_version(folder, tmp_path_factory, monkeypatch):
    """Another file of this name comes first on the path of imports."""
    record = make_record(folder)
    folder_before = tmp_path_factory.mktemp("before")
    (folder_before / "late.py").write_text("VALUE = 2\n")
    monkeypatch.syspath_prepend(folder_before)

    assert choose_version(BASE_VERSION, [record], folder) != BASE_VERSION


def test_other_package_version_changes_it(folder):
    """The record tells that the method imported another version of a package while it ran."""
    other_version = LoadedFiles(packages=("pytest 0.0.1",))  # not the installed version
    record = MethodRecord(
        "mine", BASE_VERSION, BASE_VERSION, imported=LoadedFiles(), later=other_version
    )

    assert choose_version(BASE_VERSION, [record], folder) != BASE_VERSION
