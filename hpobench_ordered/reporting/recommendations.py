"""Which method to use: one recommendation for each situation.

`python docs/_build/recommend.py` computes them from the reference results. They are stored among
the artifacts, as computing them takes about ten seconds.
"""

import json
from dataclasses import dataclass
from importlib import resources

from hpobench_ordered.analysis.labels import format_count, join_names
from hpobench_ordered.methods.registry import method_spec

FILE = "recommendations.json"

HEADERS = ("situation", "method", "evidence", "needs")
"""Titles of the columns of the table of recommendations."""

NOTE = (
    "Within error: not significantly worse with other seeds and other tasks of these benchmarks "
    "(5 % for all methods together). These suites have too few families to speak of others. "
    "*: another tool."
)
"""What readers of the table should know."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The method to use in a situation, and the reference results that say so.

    Attributes:
        situation: The situation in words.
        method: The method.
        rank: Its mean rank, lower is better.
        methods: Number of methods that are ranked, whether or not they fit the situation.
        fitting: Number of methods that fit the situation.
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
        text = (
            f"mean rank {self.rank:.{decimals}f} among {self.methods} methods after "
            f"{format_count(self.trial, 'trial')} on {self.suite}"
        )
        if self.fitting < self.methods:
            text += f", best of the {self.fitting} that fit"
        text += f"; next {self.next_method}, {self.next_rank:.{decimals}f}"
        text += f"; within error: {join_names(self.within_error) if self.within_error else 'none'}"
        if self.cheaper_method:
            text += f"; of these much faster: {self.cheaper_method}"
        return text

    @property
    def needs(self) -> str:
        """What the method needs besides the package, in words; "nothing" if it needs no more."""
        return ", ".join(method_spec(self.method).needs) or "nothing"

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Its row in the table of recommendations, below `HEADERS`."""
        return self.situation, self.method, self.evidence, self.needs


def read_recommendations() -> list[Recommendation]:
    """Read the recommendations that come with the package."""
    file = resources.files("hpobench_ordered") / "artifacts" / FILE
    recommendations = []
    for fields in json.loads(file.read_bytes()):
        fields["within_error"] = tuple(fields["within_error"])  # JSON has lists, no tuples
        recommendations.append(Recommendation(**fields))
    return recommendations
