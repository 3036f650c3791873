"""Short training of networks, for tests in which it does not matter how well they are trained."""

import pytest

SHORT_SETTINGS = {
    "hpobench_ordered.methods._distribution.models.FIRST_EVALUATIONS": 5,
    "hpobench_ordered.methods._distribution.models.LATER_EVALUATIONS": 2,
    "hpobench_ordered.methods._networks.sgd.MAX_STEPS": 500,
    "hpobench_ordered.methods.fsbo.FINE_TUNING_STEPS": 5,
    "hpobench_ordered.methods.fsbo.TRAINING_STEPS": 20,
}
"""Small values of the constants that say how long the methods train."""


def shorten_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let abrac, fsbo and the methods of distBO train for a few steps."""
    for constant, value in SHORT_SETTINGS.items():
        monkeypatch.setattr(constant, value)


def shorten_training_for_good() -> None:
    """Let methods of this process train their networks for a few steps, until it ends.

    It is here as a process that was started anew can import this module, but not a `conftest`.
    """
    shorten_training(pytest.MonkeyPatch())
