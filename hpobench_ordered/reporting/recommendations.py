"""Which method to use: one recommendation for each situation, computed from the reference results.

In each situation the method of lowest mean rank is recommended, among those that fit the situation,
on the benchmarks and after the trial that `SITUATIONS` lists. A second method is named if it needs
at most half of the time for a suggestion, and its rank differs from the first one's by no more than
chance explains (`compare_with_leader`: seeds and tasks, 5 % for all together); of several such
methods, the one of lowest mean rank.

`python docs/_build/recommend.py` computes them. They are stored among the artifacts, as computing
them takes about ten seconds.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.labels import format_count, is_submitted, join_names
from hpobench_ordered.analysis.leader_comparison import (
    compare_with_leader,
    seed_and_task_influences,
)
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.experiment.api import reference
from hpobench_ordered.methods.base import MethodKind
from hpobench_ordered.methods.registry import method_spec

FILE = "recommendations.json"

HEADERS = ("situation", "method", "evidence", "needs")
"""Titles of the columns of the table of recommendations."""

MAX_MILLISECONDS = 0.1
"""CPU time of a suggestion, other than the first, of methods that suggest in microseconds."""

MAX_SHARE_OF_TIME = 0.5
"""A method is cheaper than another if its suggestions take at most this share of the time."""

MillisecondsOfMethod = Mapping[str, float]
"""CPU milliseconds of a suggestion by method; methods that were not measured are missing."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A situation in which somebody looks for a method.

    Attributes:
        name: The situation in words.
        suites: Suites whose reference results decide.
        trial: The trial, counted from 1, after which ranks are compared.
        fits: Whether a method, by its name, can be used in the situation.
    """

    name: str
    suites: tuple[str, ...]
    trial: int
    fits: Callable[[str, MillisecondsOfMethod], bool]


def fits_without_order(method: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a method does without an order of the earlier tasks."""
    return method_spec(method).kind is not MethodKind.ORDERED


def fits_always(method: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a method fits a situation that any method fits: True."""
    return True


def ignores_history(method: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a method does not use earlier tasks."""
    return not method_spec(method).uses_history


def suggests_in_microseconds(method: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a suggestion takes at most `MAX_MILLISECONDS`; False if it was not measured."""
    return milliseconds.get(method, np.inf) <= MAX_MILLISECONDS


SITUATIONS = (
    Situation("earlier tasks in order, such as months", ("retrain",), 25, fits_always),
    Situation(
        "earlier tasks without an order, such as customers",
        ("openml", "synthetic"),
        25,
        fits_without_order,
    ),
    Situation("the search space has changed", ("adjustments",), 25, fits_always),
    Situation("only one or two trials", ("retrain",), 2, fits_always),
    Situation("no earlier tasks", ("retrain",), 25, ignores_history),
    Situation("suggestions in microseconds", ("retrain",), 25, suggests_in_microseconds),
)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The method to use in a situation, and the reference results that say so.

    Attributes:
        situation: The situation in words.
        method: The method.
        rank: Its mean rank, lower is better.
        methods: Number of methods that are ranked, whether or not they fit the situation.
        suites: The suites that the rank is on.
        trial: The trial, counted from 1, that it is after.
        families: Number of families of benchmarks that the rank is a mean over.
        next_method: The method of next lowest rank that fits the situation; "" if there is none.
        next_rank: Its mean rank; NaN if there is none.
        within_error: The fitting methods that are not significantly worse, by mean rank.
        cheaper_method: The first of these that is cheaper; "" if there is none.
    """

    situation: str
    method: str
    rank: float
    methods: int
    suites: tuple[str, ...]
    trial: int
    families: int
    next_method: str
    next_rank: float
    within_error: tuple[str, ...]
    cheaper_method: str

    @property
    def evidence(self) -> str:
        """The evidence in one line."""
        suites = " and ".join(self.suites)
        text = (
            f"mean rank {self.rank:.1f} among {self.methods} methods after "
            f"{format_count(self.trial, 'trial')} on {suites}"
        )
        if self.within_error:
            text += f"; within error: {join_names(self.within_error)}"
        elif self.next_method:
            text += f"; next {self.next_method}, {self.next_rank:.1f}"
        if self.cheaper_method:
            text += f"; of these much faster: {self.cheaper_method}"
        return text

    @property
    def needs(self) -> str:
        """What the method needs, in words."""
        return ", ".join(method_spec(self.method).needs) or "nothing"

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Its row in the table of recommendations, below `HEADERS`."""
        return self.situation, self.method, self.evidence, self.needs


def recommend_methods(milliseconds: MillisecondsOfMethod) -> list[Recommendation]:
    """Compute a recommendation for each situation from the reference results."""
    group_of_suites: dict[tuple[str, ...], BenchmarkGroup] = {}
    recommendations = []
    for situation in SITUATIONS:
        if situation.suites not in group_of_suites:
            scores, _ = reference(*situation.suites).scored()
            group_of_suites[situation.suites] = BenchmarkGroup.for_means(scores)
        group = group_of_suites[situation.suites]
        recommendations.append(recommend_method(situation, group, milliseconds))
    return recommendations


def recommend_method(
    situation: Situation, group: BenchmarkGroup, milliseconds: MillisecondsOfMethod
) -> Recommendation:
    """Compute the recommendation for one situation from the results on its suites.

    At least one of the group's methods must fit the situation. Submitted methods, which are not in
    the package, are ranked but not recommended.
    """
    mean_ranks = group.by_family("rank", situation.trial).mean(axis=0)
    fitting = [
        a
        for a, name in enumerate(group.methods)
        if not is_submitted(name) and situation.fits(name, milliseconds)
    ]
    best, *others = sorted(fitting, key=lambda a: mean_ranks[a])
    next_method = group.methods[others[0]] if others else ""
    next_rank = float(mean_ranks[others[0]]) if others else float("nan")

    within_error = find_methods_within_error(group, situation.trial, fitting)
    cheaper = [name for name in within_error if is_cheaper(name, group.methods[best], milliseconds)]
    return Recommendation(
        situation=situation.name,
        method=group.methods[best],
        rank=round(float(mean_ranks[best]), 4),
        methods=len(group.methods),
        suites=situation.suites,
        trial=situation.trial,
        families=len(group.families),
        next_method=next_method,
        next_rank=round(next_rank, 4),
        within_error=tuple(within_error),
        cheaper_method=cheaper[0] if cheaper else "",
    )


def find_methods_within_error(
    group: BenchmarkGroup, trial: int, places: Sequence[int]
) -> list[str]:
    """Find the methods whose mean rank is not significantly worse than the best one's.

    Args:
        group: The benchmarks.
        trial: The trial, counted from 1.
        places: Places in `group.methods` of the methods to compare.

    Returns:
        Their names, by mean rank, without the best; none if nothing can be tested.
    """
    mean_ranks = group.by_family("rank", trial).mean(axis=0)[places]
    strata, borrowed_variances = seed_and_task_influences(group, trial)
    comparison = compare_with_leader(
        mean_ranks,
        [stratum[:, places] for stratum in strata],
        borrowed_variances[places],
    )
    if comparison is None:
        return []
    names = []
    for number in np.argsort(mean_ranks, kind="stable"):
        if number != comparison.leader and not comparison.is_worse[number]:
            names.append(group.methods[places[number]])
    return names


def is_cheaper(method: str, other: str, milliseconds: MillisecondsOfMethod) -> bool:
    """Whether a method needs at most `MAX_SHARE_OF_TIME` of another's time for a suggestion.

    False if either of them was not measured.
    """
    if method not in milliseconds or other not in milliseconds:
        return False
    return milliseconds[method] <= MAX_SHARE_OF_TIME * milliseconds[other]


def write_recommendations(path: Path, recommendations: Sequence[Recommendation]) -> None:
    """Write recommendations to a file."""
    content = [asdict(recommendation) for recommendation in recommendations]
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def read_recommendations() -> list[Recommendation]:
    """Read the recommendations that come with the package."""
    file = resources.files("hpobench_ordered") / "artifacts" / FILE
    recommendations = []
    for fields in json.loads(file.read_bytes()):
        for name in ("suites", "within_error"):
            fields[name] = tuple(fields[name])  # JSON has lists
        recommendations.append(Recommendation(**fields))
    return recommendations
