"""Reads the name and the settings of a protocol in the text that results hold.

Such as "ordered(trials=25, tasks=None, workers_simulated=1)". The protocols themselves are in
`hpobench_ordered.experiment.protocols`.
"""

import re

ORDERED = "ordered"
ADJUSTMENT = "adjustment"
DEFAULT_FIRST_METHOD = "bo"
"""Method before the adjustment, where the text of a protocol leaves it out."""

_SETTING_PATTERN = re.compile(r"(\w+)=(.*?)(?:, (?=\w+=)|$)")
"""Name and value of a setting. A value may contain commas: it ends before the next "name="."""


def parse_protocol_name(text: str) -> str:
    """Return the name of the protocol in a text such as "ordered(trials=25, tasks=None)".

    A text without settings is the name.
    """
    name, _, _ = text.partition("(")
    return name


def parse_protocol_settings(text: str) -> dict[str, str]:
    """Return the settings in the text of a protocol, by name and in their order, as texts.

    For "ordered(trials=25, tasks=None)" they are {"trials": "25", "tasks": "None"}.
    """
    _, _, after_bracket = text.partition("(")
    settings = after_bracket.removesuffix(")")
    names_and_values = _SETTING_PATTERN.findall(settings)
    return dict(names_and_values)
