import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from hpobench_ordered import errors
from hpobench_ordered.errors import HPOBenchOrderedError, MissingExtraError, UnknownNameError
from hpobench_ordered.registry import load

ERROR_CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, HPOBenchOrderedError) and kind not in (UnknownNameError, MissingExtraError)
]
ERRORS = [
    *(kind("what is wrong") for kind in ERROR_CLASSES),
    UnknownNameError("method", "bx", ["bo", "random-search"], hint=" (or your own)"),
    MissingExtraError("xgboost", extra="train", purpose="training"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(error, protocol):
    error.add_note("in run 3")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert (str(again), again.args) == (str(error), error.args)
    assert again.__notes__ == error.__notes__


def test_errors_cross_processes():
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
    assert str(UnknownNameError(kind, name, allowed)) == message


def test_long_lists_are_cut():
    error = UnknownNameError("suite", "x", [f"name {i:02}" for i in range(20)])
    assert str(error).endswith("'name 11' and 8 more")
