"""How people read what identifies results."""

import re

UNSAID = re.compile(r"(?:, )?(?:tasks=None|history=None|workers_simulated=1)(?=[,)])")
"""Settings of protocols that say that nothing was asked for."""


def protocol_label(protocol: str) -> str:
    """A protocol without the settings that say nothing.

    "ordered(trials=25, tasks=None, workers_simulated=1)" is "ordered, 25 trials".
    """
    name, _, rest = UNSAID.sub("", protocol).partition("(")
    settings = rest.removesuffix(")").removeprefix(", ")
    settings = re.sub(r"\b(first_)?trials=(\d+)", r"\2 \1trials", settings).replace("_", " ")
    return f"{name}, {settings}" if settings else name
