"""Options that choose a protocol."""

from dataclasses import fields

import pytest

from hpobench_ordered import Adjustment, LeaveOneOut, Ordered
from hpobench_ordered.cli._protocol import PROTOCOLS, make_protocol
from hpobench_ordered.cli.experiments import run

NO_SETTINGS = dict.fromkeys(["trials", "tasks", "history", "first_trials"])


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_setting_is_an_option(name):
    options = {parameter.name for parameter in run.params}
    assert {field.name for field in fields(PROTOCOLS[name])} <= options


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_is_explained(name):
    assert PROTOCOLS[name]().name == name
    assert name in (run.epilog or "")


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
    assert make_protocol(name, NO_SETTINGS | settings) == protocol
