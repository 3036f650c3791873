"""The messages of Optuna, which are not for the users of this package."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import optuna


@contextmanager
def quiet() -> Iterator[None]:
    """Within a block, silence what Optuna logs for every study, and its warning about tuples."""
    verbosity_before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(verbosity_before, optuna.logging.ERROR))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Choices for a categorical distribution")
            yield
    finally:
        optuna.logging.set_verbosity(verbosity_before)
