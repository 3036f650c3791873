"""Labels of protocols, numbers and names in tables and sentences."""

from collections.abc import Collection, Iterable

from hpobench_ordered.data.protocol_text import parse_protocol_name, parse_protocol_settings

DEFAULTS_LEFT_OUT = {"tasks": "None", "history": "None", "workers_simulated": "1"}
"""Settings of protocols, with the default values at which labels leave them out."""

COUNTED_SETTINGS = ("trials", "first_trials")
"""Settings of protocols that labels write as a number of things: "25 trials"."""

SUBMITTED_MARK = "*"
"""What the name of a method ends with if others submitted its results."""


def is_submitted(method: str) -> bool:
    """Whether others submitted the results of a method; its name then ends with an asterisk."""
    return method.endswith(SUBMITTED_MARK)


def label_protocol(protocol: str) -> str:
    """Label a protocol for people: its name and the settings that differ from the defaults.

    "ordered(trials=25, tasks=None, workers_simulated=1)" is "ordered, 25 trials".
    """
    parts = [parse_protocol_name(protocol)]
    for name, value in parse_protocol_settings(protocol).items():
        is_default = DEFAULTS_LEFT_OUT.get(name) == value
        if not is_default:
            parts.append(_label_setting(name, value))
    return ", ".join(parts)


def _label_setting(name: str, value: str) -> str:
    """Label one setting: "25 trials" if it is a number of things, "name=value" otherwise."""
    label = f"{value} {name}" if name in COUNTED_SETTINGS else f"{name}={value}"
    return label.replace("_", " ")


def format_ranges(numbers: Iterable[int]) -> str:
    """Abbreviate whole numbers: 0, 1, 2, 3, 4, 7 is "0 to 4, 7"."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(map(int, numbers)):
        continues_last_range = bool(ranges) and number == ranges[-1][1] + 1
        if continues_last_range:
            first, _ = ranges[-1]
            ranges[-1] = (first, number)
        else:
            ranges.append((number, number))
    return ", ".join(_format_range(first, last) for first, last in ranges)


def _format_range(first: int, last: int) -> str:
    """Write a range of whole numbers: "7" or "0 to 4"."""
    return str(first) if first == last else f"{first} to {last}"


def format_count(number: int, noun: str) -> str:
    """Write a number with its noun: "1 seed", "2 seeds"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_range_of_seeds(counts: Collection[int]) -> str:
    """Write the fewest and the most of several numbers of seeds, such as "8 to 10 seeds".

    Args:
        counts: The number of seeds of each method, on the benchmark where it has the fewest.
    """
    fewest = min(counts)
    seeds = format_count(max(counts), "seed")
    return seeds if fewest == max(counts) else f"{fewest} to {seeds}"


def format_scope(benchmarks: int, families: int) -> str:
    """Describe in words what means are over, from the numbers of benchmarks and families.

    The text is such as "9 benchmarks, each of 6 families counting once". If each benchmark is a
    family of its own, or all are one family, families are not mentioned: "5 benchmarks".
    """
    text = format_count(benchmarks, "benchmark")
    has_larger_families = families < benchmarks
    if has_larger_families and families > 1:
        text += f", each of {families} families counting once"
    return text


def join_names(names: Iterable[str], *, most: int = 4) -> str:
    """Join one name or more for a sentence: "a", "a, b and c", or "a, b, c and 7 more".

    Up to `most` + 1 names are all written out. Of a longer list, only the first `most` - 1 are, so
    that "more" stands for at least three names: naming one or two is as short as counting them.
    """
    parts = list(names)
    if len(parts) > most + 1:
        n_more = len(parts) - (most - 1)
        parts = [*parts[: most - 1], f"{n_more} more"]
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
