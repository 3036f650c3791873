"""The package's errors: they travel between processes, and suggest names."""

import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from hpobench_ordered import errors
from hpobench_ordered.benchmarks.registry import load
from hpobench_ordered.errors import HPOBenchOrderedError, MissingExtraError, UnknownNameError

ERROR_CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, HPOBenchOrderedError) and kind not in (UnknownNameError, MissingExtraError)
]
"""Classes of errors that are made from a message alone."""

ERRORS = [
    *(kind("what is wrong") for kind in ERROR_CLASSES),
    UnknownNameError("method", "bx", ["bo", "random-search"], hint=" (or your own)"),
    MissingExtraError("xgboost", extra="train", purpose="training"),
]
"""An error of every class."""


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("pickle_protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(error, pickle_protocol):
    """Class, message, arguments and notes stay the same, whatever the version of the format."""
    error.add_note("in run 3")

    unpickled = pickle.loads(pickle.dumps(error, pickle_protocol))

    assert type(unpickled) is type(error)
    assert str(unpickled) == str(error)
    assert unpickled.args == error.args
    assert unpickled.__notes__ == error.__notes__


def test_errors_cross_processes():
    """An error in another process is raised in this one.

    If it could not be unpickled, the pool would be broken, and could not be used again.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(UnknownNameError, match="did you mean 'newsvendor'"):
            pool.submit(load, "newsvendr").result()

        assert pool.submit(len, "abc").result() == 3


@pytest.mark.parametrize(
    ("kind", "name", "allowed", "message"),
    [
        ("suite", "x", [], "unknown suite 'x'; there are none"),
        (
            "surrogate of bowls",
            "tabel",
            ["table"],
            "unknown surrogate 'tabel' of bowls; did you mean 'table'?",
        ),
        ("suite", "x", ["b", "a"], "unknown suite 'x'; choose from 'a', 'b'"),
    ],
)
def test_unknown_name_is_explained(kind, name, allowed, message):
    error = UnknownNameError(kind, name, allowed)

    assert str(error) == message


def test_message_lists_twelve_names():
    """A message lists no more than twelve allowed names: of twenty, eight are only counted."""
    twenty_names = [f"name {number:02}" for number in range(20)]

    error = UnknownNameError("suite", "x", twenty_names)

    assert str(error).endswith("'name 10', 'name 11' and 8 more")
