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
    versions = {name: method_version(method_spec(name)) for name in list_methods()}
    assert versions == {name: str(method_spec(name).version) for name in list_methods()}


def test_settings_of_unregistered_method_count():
    twin = replace(method_spec("random-search"), name="twin", changed_spaces=False)
    assert method_version(twin) == method_version(replace(twin))
    assert method_version(twin) != method_version(replace(twin, version=2))
    assert not identify_here(twin).is_new_at_each_start


def factory_with(value: object) -> object:
    """A factory that is the same for every value but for what it refers to."""

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


def test_arguments_count_by_value():
    digests = [digest_of_method(factory_with(value)) for value in DIFFERENT_VALUES]
    again = [digest_of_method(factory_with(value)) for value in DIFFERENT_VALUES]
    assert digests == again
    assert len(set(digests)) == len(DIFFERENT_VALUES)


def test_arguments_of_partial_functions_count():
    three = digest_of_method(functools.partial(pair, budget=3))
    assert digest_of_method(functools.partial(pair, budget=3)) == three
    assert digest_of_method(functools.partial(pair, budget=4)) != three


def test_lambdas_count_by_their_place():
    factories = [
        lambda space, rng: (space, 1),
        lambda space, rng: (space, 1),
    ]
    first, second = map(digest_of_method, factories)
    assert first != second


def make_local_class() -> type:
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
    return functools.partial(pair, budget=threading.Lock())


@pytest.mark.parametrize("make", [make_local_class, make_typed_class, make_factory_with_lock])
def test_methods_without_files_are_new(make):
    method = make()
    assert source_in_files(method) is None
    spec = replace(method_spec("random-search"), name="new", method=method)
    assert identify_here(spec).is_new_at_each_start


@pytest.mark.slow
def test_local_class_is_always_new():
    spec = as_method_spec(make_local_class(), name="new")
    assert method_version(spec).startswith(NEW_AT_EACH_START)
    assert method_version(spec) != method_version(spec)


BASE = "0123456789ab"


def make_record(folder, *names: str, version: str = BASE) -> MethodRecord:
    """What a method loaded while it ran, as it is now in the folder."""
    files = [LoadedFile(name, file_digest(folder / f"{name}.py"), f"{name}.py") for name in names]
    return MethodRecord("mine", version, BASE, LoadedFiles(), LoadedFiles(tuple(files)))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "late.py").write_text("VALUE = 1\n")
    return tmp_path


def test_first_version_is_the_base(folder):
    assert choose_version(BASE, [], folder) == BASE


def test_unchanged_later_files_keep_version(folder):
    assert choose_version(BASE, [make_record(folder, "late")], folder) == BASE


def test_version_changes_with_later_files(folder):
    record = make_record(folder, "late")
    (folder / "late.py").write_text("VALUE = 2\n")
    changed = choose_version(BASE, [record], folder)
    assert changed != BASE
    assert choose_version(BASE, [record], folder) == changed


def test_restored_files_restore_the_version(folder):
    """The version is that of the record whose files are as they are now in the folder."""
    first = make_record(folder, "late")
    (folder / "late.py").write_text("VALUE = 2\n")
    second = make_record(folder, "late", version="1")
    assert choose_version(BASE, [first, second], folder) == "1"
    (folder / "late.py").write_text("VALUE = 1\n")
    assert choose_version(BASE, [first, second], folder) == BASE


def test_missing_files_make_new_version(folder):
    record = make_record(folder, "late")
    (folder / "late.py").unlink()
    version = choose_version(BASE, [record], folder)
    without_file = replace(record, version=version)
    assert choose_version(BASE, [record, without_file], folder).startswith(NEW_AT_EACH_START)


def test_hiding_a_file_changes_the_version(folder, tmp_path_factory, monkeypatch):
    """Another file of this name comes first on the path of imports."""
    hiding = tmp_path_factory.mktemp("hiding")
    (hiding / "late.py").write_text("VALUE = 2\n")
    monkeypatch.syspath_prepend(hiding)
    assert choose_version(BASE, [make_record(folder, "late")], folder) != BASE


def test_other_package_version_changes_it(folder):
    later = LoadedFiles(packages=("pytest 0.0.1",))  # not the installed version
    record = MethodRecord("mine", BASE, BASE, LoadedFiles(), later)
    assert choose_version(BASE, [record], folder) != BASE
