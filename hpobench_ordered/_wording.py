"""Wording of messages: lists of names, and the nearest match of an unknown one."""

import difflib
from collections.abc import Iterable

MAX_LISTED = 12
"""A message lists at most this many words, and gives the number of the others."""


def join_words(words: Iterable[str]) -> str:
    """Join words by commas, such as "a, b, c".

    Of more than `MAX_LISTED` words, only the first ones are listed: "a, b, ... and 5 more".
    """
    all_words = list(words)
    text = ", ".join(all_words[:MAX_LISTED])
    n_more = len(all_words) - MAX_LISTED
    return f"{text} and {n_more} more" if n_more > 0 else text


def suggest_nearest(name: str, allowed: Iterable[str]) -> str:
    """Suggest the nearest allowed name, as the end of a message: "; did you mean 'x'?".

    The result is empty if no allowed name is near. Upper and lower case count as equal.
    """
    # In reverse order, so that of names that differ only in their case the first one remains.
    name_of_lower_case = {other.casefold(): other for other in sorted(allowed, reverse=True)}
    matches = difflib.get_close_matches(name.casefold(), name_of_lower_case, n=1)
    if not matches:
        return ""
    (nearest,) = matches
    return f"; did you mean {name_of_lower_case[nearest]!r}?"


def suggest_allowed(name: str, allowed: Iterable[str]) -> str:
    """Suggest the nearest allowed name or, if none is near, list the allowed names.

    The result is the end of a message, such as "; did you mean 'x'?" or "; choose from a, b".
    """
    names = sorted(allowed)
    if not names:
        return "; there are none"
    return suggest_nearest(name, names) or f"; choose from {join_words(map(repr, names))}"
