from dataclasses import fields

from hpobench_ordered import Adjustment, LeaveOneOut, Ordered
from hpobench_ordered.cli._protocol import PROTOCOLS, make_protocol
from hpobench_ordered.cli.experiments import run


def test_settings_of_protocols_are_options_that_keep_what_is_not_given():
    options = {parameter.name for parameter in run.params}
    for name, protocol in PROTOCOLS.items():
        assert protocol().name == name
        assert {field.name for field in fields(protocol)} <= options
        assert protocol().name in (run.epilog or "")
    nothing = dict.fromkeys(["trials", "tasks", "history", "first_trials"])
    assert make_protocol("ordered", nothing) == Ordered()
    assert make_protocol("leave-one-out", {**nothing, "history": 7}) == LeaveOneOut(history=7)
    options = {**nothing, "first_trials": 10, "trials": 30}
    assert make_protocol("adjustment", options) == Adjustment(first_trials=10, trials=30)
