"""Protocols as text, such as `ordered(trials=7, tasks=3)`, and back."""

import pytest

from hpobench_ordered import Adjustment, LeaveOneOut, Ordered
from hpobench_ordered.data.protocol_text import parse_protocol_name, parse_protocol_settings
from hpobench_ordered.experiment.protocols import (
    format_protocol,
    parse_protocol,
)

TEXTS = {
    "ordered(trials=7, tasks=3, workers_simulated=2)": Ordered(
        trials=7, tasks=3, workers_simulated=2
    ),
    "leave-one-out(trials=3, history=None, tasks=('a b', 'c=2, d'))": LeaveOneOut(
        trials=3, tasks=("a b", "c=2, d")
    ),
    "adjustment(first_trials=20, trials=40, first_method=simple-ordered, tasks=None)": Adjustment(
        first_method="simple-ordered"
    ),
}


@pytest.mark.parametrize(("text", "protocol"), TEXTS.items())
def test_text_has_name_and_settings(text, protocol):
    assert format_protocol(protocol) == text


@pytest.mark.parametrize(("text", "protocol"), TEXTS.items())
def test_text_is_read_as_protocol(text, protocol):
    assert parse_protocol(text) == protocol


@pytest.mark.parametrize("text", ["mine(a=1, b=2, 3)", "mine(a=1, b=2, 3", "mine()", "mine"])
def test_names_of_other_protocols_are_read(text):
    """A user's protocol may format its settings in any way."""
    assert parse_protocol_name(text) == "mine"


def test_settings_of_other_protocols_are_text():
    assert parse_protocol_settings("mine(a=1, b=(2, 3))") == {"a": "1", "b": "(2, 3)"}


@pytest.mark.parametrize("protocol", TEXTS.values())
def test_equal_protocols_have_equal_hashes(protocol):
    equal_protocol = parse_protocol(format_protocol(protocol))
    assert hash(equal_protocol) == hash(protocol)
