"""Which method to use: one recommendation for each situation.

`python docs/_build/recommend.py` computes them from the reference results. They are stored among
the artifacts, as computing them takes about ten seconds.
"""

import json
from dataclasses import dataclass
from importlib import resources

from hpobench_ordered.analysis.labels import format_count, is_submitted, join_names
from hpobench_ordered.methods.registry import method_spec

FILE = "recommendations.json"

HEADERS = ("situation", "method", "evidence", "needs")
"""Titles of the columns of the table of recommendations."""

NOTE = (
    "Within error: not told apart by the test over seeds and tasks, 5 % error for all comparisons "
    "together. These suites have too few families to speak of other benchmarks. *: another tool."
)
"""What readers of the table should know."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The method to use in a situation, and the reference results that say so.

    Attributes:
        situation: The situation in words.
        method: The method.
        rank: Its mean rank, lower is better.
        methods: Number of methods with results, whether or not they fit the situation.
        fitting: Number of methods that fit the situation, which are ranked among themselves.
        suite: The suite that the rank is on.
        trial: The trial, counted from 1, that it is after.
        next_method: The method of next lowest rank that fits the situation.
        next_rank: Its mean rank.
        within_error: The fitting methods that are not significantly worse, by mean rank.
        cheaper_method: The first of these that is cheaper; "" if there is none.
    """

    situation: str
    method: str
    rank: float
    methods: int
    fitting: int
    suite: str
    trial: int
    next_method: str
    next_rank: float
    within_error: tuple[str, ...]
    cheaper_method: str

    @property
    def evidence(self) -> str:
        """The evidence in one line."""
        # One decimal of ranks, or two if the best two ranks look the same with one
        decimals = 2 if f"{self.rank:.1f}" == f"{self.next_rank:.1f}" else 1
        which_methods = "methods that fit" if self.fitting < self.methods else "methods"
        trials = format_count(self.trial, "trial")
        text = (
            f"mean rank {self.rank:.{decimals}f} among {self.fitting} {which_methods} "
            f"after {trials} on {self.suite}; next {self.next_method}, "
            f"{self.next_rank:.{decimals}f}"
        )
        if not self.within_error:
            return f"{text}; better than all others by the test"
        text += f"; within error: {join_names(self.within_error)}"
        if self.cheaper_method:
            text += f"; the best of these at half the time or less: {self.cheaper_method}"
        return text

    @property
    def recommended(self) -> tuple[str, ...]:
        """The method, and the next one if that is within error and part of the package."""
        if self.next_method in self.within_error and not is_submitted(self.next_method):
            return self.method, self.next_method
        return (self.method,)

    @property
    def needs(self) -> str:
        """What the recommended methods need besides the package, in words, or "no extra"."""
        needs_of_methods = []
        for method in self.recommended:
            needs = ", ".join(method_spec(method).needs)
            if needs:
                is_one_of_two = len(self.recommended) > 1
                needs_of_methods.append(f"{method}: {needs}" if is_one_of_two else needs)
        return "; ".join(needs_of_methods) or "no extra"

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Its row in the table of recommendations, below `HEADERS`."""
        return self.situation, " or ".join(self.recommended), self.evidence, self.needs


def read_recommendations() -> list[Recommendation]:
    """Read the recommendations that come with the package."""
    file = resources.files("hpobench_ordered") / "artifacts" / FILE
    recommendations = []
    for fields in json.loads(file.read_bytes()):
        fields["within_error"] = tuple(fields["within_error"])  # JSON has lists, no tuples
        recommendations.append(Recommendation(**fields))
    return recommendations
