"""Labels of protocols, numbers and names in tables and sentences."""

from collections.abc import Iterable

from hpobench_ordered.protocols import parse_protocol_name, parse_protocol_settings

UNSAID = {("tasks", "None"), ("history", "None"), ("workers_simulated", "1")}
"""Settings of protocols, with the default values at which labels leave them out."""

COUNTS = ("trials", "first_trials")
"""Settings of protocols that labels write as a number of things: "25 trials"."""


def label_protocol(protocol: str) -> str:
    """A protocol without the settings that are at their defaults.

    "ordered(trials=25, tasks=None, workers_simulated=1)" is "ordered, 25 trials".
    """
    settings = [
        _setting_label(name, value)
        for name, value in parse_protocol_settings(protocol).items()
        if (name, value) not in UNSAID
    ]
    return ", ".join([parse_protocol_name(protocol), *settings])


def _setting_label(name: str, value: str) -> str:
    label = f"{value} {name}" if name in COUNTS else f"{name}={value}"
    return label.replace("_", " ")


def format_ranges(numbers: Iterable[int]) -> str:
    """Abbreviate whole numbers: "0 to 4, 7"."""
    runs: list[list[int]] = []
    for number in sorted(map(int, numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in runs)


def format_count(number: int, noun: str) -> str:
    """A number with its noun: "1 seed", "2 seeds"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_scope(benchmarks: int, families: int) -> str:
    """What means are over: "5 benchmarks", "9 benchmarks, each of 6 families counting once"."""
    text = format_count(benchmarks, "benchmark")
    if families == benchmarks:
        return text
    return f"{text}, each of {families} families counting once" if families > 1 else text


def join_names(names: Iterable[str], *, most: int = 4) -> str:
    """Join names for a sentence: "a, b and c", or "a, b and 7 more"."""
    names = list(names)
    if len(names) > most + 1:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
