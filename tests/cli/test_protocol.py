"""Options that choose a protocol."""

from dataclasses import fields

import pytest

from hpobench_ordered import Adjustment, LeaveOneOut, Ordered
from hpobench_ordered.cli._protocol import PROTOCOLS, make_protocol
from hpobench_ordered.cli.experiments import run

UNSET_OPTIONS = dict.fromkeys(["trials", "tasks", "history", "first_trials"])
"""Values of options that are not set: None."""


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_setting_is_an_option(name):
    """The command `run` has an option for every field of a protocol, such as `trials`."""
    settings = {field.name for field in fields(PROTOCOLS[name])}

    options = {parameter.name for parameter in run.params}

    assert settings <= options


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocols_are_by_their_names(name):
    assert PROTOCOLS[name]().name == name


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_is_explained(name):
    """The help of the command `run` ends with a text on the protocols."""
    end_of_help = run.epilog

    assert end_of_help is not None
    assert name in end_of_help


@pytest.mark.parametrize(
    ("name", "settings", "protocol"),
    [
        ("ordered", {}, Ordered()),
        ("leave-one-out", {"history": 7}, LeaveOneOut(history=7)),
        (
            "adjustment",
            {"first_trials": 10, "trials": 30},
            Adjustment(first_trials=10, trials=30),
        ),
    ],
)
def test_settings_keep_their_defaults(name, settings, protocol):
    """Options that are not set are None, and have the protocol's default."""
    assert make_protocol(name, UNSET_OPTIONS | settings) == protocol
