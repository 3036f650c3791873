"""Wording of messages: lists of names, and the nearest match of an unknown one."""

import difflib
from collections.abc import Iterable

MAX_LISTED = 12
"""Words that a message lists; of more it says their number."""


def join_words(words: Iterable[str]) -> str:
    """Join words by commas; of more than `MAX_LISTED`, the first and the number of others."""
    all_words = list(words)
    text = ", ".join(all_words[:MAX_LISTED])
    n_more = len(all_words) - MAX_LISTED
    return f"{text} and {n_more} more" if n_more > 0 else text


def suggest_nearest(name: str, allowed: Iterable[str]) -> str:
    """Suggest the nearest allowed name ("; did you mean 'x'?"), "" if none is near."""
    # Names that differ only in upper case count as equal; the first in order then stands for all.
    name_of_folded = {other.casefold(): other for other in sorted(allowed, reverse=True)}
    nearest = difflib.get_close_matches(name.casefold(), name_of_folded, n=1)
    if not nearest:
        return ""
    return f"; did you mean {name_of_folded[nearest[0]]!r}?"


def suggest_allowed(name: str, allowed: Iterable[str]) -> str:
    """Suggest the nearest allowed name, else list the allowed names."""
    names = sorted(allowed)
    if not names:
        return "; there are none"
    return suggest_nearest(name, names) or f"; choose from {join_words(map(repr, names))}"
