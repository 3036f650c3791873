"""Claims of papers: what is measured for a claim, and the one rule that decides whether it holds.

A claim says that something is so, such as that a method is ahead of others. Whether it is so is
found by a function `find_whether_...` of the results and of the comparisons that the claim is
about. It returns one finding for each benchmark, or for another subject. Such functions that only
one paper needs stand beside its figures, and so do the claims of each figure.

Measures are means over the tasks that count (of ordered tasks those with history) and over seeds;
lower is better.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.papers.differences import compare_methods
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure

FORMATS = {Measure.SCORE: ".1f", Measure.RANK: ".2f", Measure.REGRET: ".3g"}
"""Formats of means."""

UPPER_QUANTILE = 0.975
"""Student's quantile at the upper end of an interval of 95 %."""


class Outcome(Enum):
    """Whether a claim holds."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    """The interval of the difference contains 0: it may be due to the seeds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured for a claim on one subject: a difference, its error and a sentence.

    The claim holds if the 95 % interval of the difference (Student's t) is above 0, fails if the
    interval is below 0, and is undecided otherwise.
    """

    subject: str  # what was compared on, such as a benchmark, a task, or a benchmark and a trial
    sentence: str  # the numbers that the difference is made of, such as both means
    difference: float  # positive: in favour of the claim
    standard_error: float  # 0 if nothing is random
    n_samples: int  # number of seeds, tasks or benchmarks that the error is over
    number_format: str = ".3g"  # format of the difference
    is_ratio: bool = False  # whether the difference is of logarithms, and is shown as a ratio

    @classmethod
    def from_samples(
        cls,
        subject: str,
        sentence: str,
        samples: FloatArray,
        *,
        number_format: str = ".3g",
        is_ratio: bool = False,
    ) -> "Finding":
        """Make a finding whose difference is the mean of some samples.

        Args:
            subject: As in `Finding`.
            sentence: As in `Finding`.
            samples: Independent differences, such as one per seed, shape (n,). Positive ones are in
                favour of the claim; those that are NaN are left out.
            number_format: Format of the difference.
            is_ratio: Whether the samples are logarithms of ratios.
        """
        defined = samples[~np.isnan(samples)]
        mean = float(defined.mean()) if len(defined) else math.nan
        (two_errors,) = two_standard_errors(defined[None]).tolist()  # samples are along axis 1
        return cls(
            subject=subject,
            sentence=sentence,
            difference=mean,
            standard_error=two_errors / 2,
            n_samples=len(defined),
            number_format=number_format,
            is_ratio=is_ratio,
        )

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval of the difference; NaN with fewer than 2 samples."""
        from scipy.special import stdtrit

        if self.n_samples < 2:
            return math.nan
        degrees_of_freedom = self.n_samples - 1
        quantile = float(stdtrit(degrees_of_freedom, UPPER_QUANTILE))
        return quantile * self.standard_error

    @property
    def difference_in_half_widths(self) -> float:
        """The difference divided by `half_width`.

        If it is above 1, the whole interval is above 0; if it is below -1, the whole interval is
        below 0. It is 0 if the error is unknown, so that the claim is undecided, and infinite if
        the error is 0.
        """
        if math.isnan(self.difference) or math.isnan(self.half_width):
            return 0.0
        if self.difference == 0:
            return 0.0
        if self.half_width == 0:
            return math.copysign(math.inf, self.difference)
        return self.difference / self.half_width

    @property
    def outcome(self) -> Outcome:
        """Whether the claim holds: on which side of 0 the interval is, if it does not contain 0."""
        if self.difference_in_half_widths > 1:
            return Outcome.HOLDS
        if self.difference_in_half_widths < -1:
            return Outcome.FAILS
        return Outcome.UNDECIDED

    @property
    def measured(self) -> str:
        """The sentence with the difference and, unless it is unknown, its interval.

        A difference is followed by half the width of its interval, as in "bo 3.1, cts 4.5: +1.4 ±
        0.6". A ratio is followed by the ends of its interval, as in "ratio 2 (1.5 to 2.7)".
        """
        has_interval = not math.isnan(self.half_width)
        if self.is_ratio:
            ratio = math.exp(self.difference)
            low = math.exp(self.difference - self.half_width)
            high = math.exp(self.difference + self.half_width)
            text = f"{self.sentence}: ratio {ratio:.3g}"
            return f"{text} ({low:.3g} to {high:.3g})" if has_interval else text
        text = f"{self.sentence}: {self.difference:+{self.number_format}}"
        return f"{text} ± {self.half_width:{self.number_format}}" if has_interval else text


def find_weakest(findings: Iterable[Finding]) -> Finding:
    """Return the finding that speaks least for a claim, or most against it.

    Where several comparisons must all turn out as claimed, this one decides.
    """
    return min(findings, key=lambda finding: finding.difference_in_half_widths)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a paper and what was found on each benchmark or other subject."""

    section: str  # of the paper
    sentence: str  # the statement in our own words
    findings: Sequence[Finding]
    afterwards: bool = False  # about a trial that was chosen when the results were known

    @property
    def text(self) -> str:
        """The statement, marked if it was chosen afterwards."""
        return self.sentence + (" (chosen afterwards)" if self.afterwards else "")

    @property
    def outcome(self) -> Outcome:
        """Whether the claim holds on all subjects: the outcome on the one where it is weakest."""
        return find_weakest(self.findings).outcome

    @property
    def verdict(self) -> str:
        """The outcomes of all findings in words.

        If all are alike, it is their outcome, such as "fails". Otherwise it is a count, such as
        "2 of 3 hold, 1 is undecided".
        """
        outcomes = [finding.outcome for finding in self.findings]
        if len(set(outcomes)) == 1:
            return outcomes[0].value

        text = f"{outcomes.count(Outcome.HOLDS)} of {len(outcomes)} hold"
        n_undecided = outcomes.count(Outcome.UNDECIDED)
        if n_undecided:
            verb = "is" if n_undecided == 1 else "are"
            text += f", {n_undecided} {verb} undecided"
        return text


def find_whether_ahead(
    evidence: Evidence,
    comparisons: Comparisons,
    firsts: Sequence[str],
    rivals: Sequence[str],
    *,
    trial: int,
    measure: Measure = Measure.SCORE,
    by_task: bool = False,
    margin: float = 0.0,
) -> list[Finding]:
    """Find whether each of some methods is better than every rival.

    All pairs of a method and a rival are compared. On each benchmark, or on each task if `by_task`,
    the finding is that of the pair that speaks least for the claim.

    Args:
        evidence: The results.
        comparisons: The comparisons, one per benchmark.
        firsts: The methods that should be better.
        rivals: The methods that they are compared with.
        trial: The trial after which they are compared, counted from 1.
        measure: What is compared.
        by_task: Whether each task has a finding of its own.
        margin: With a positive margin, a method may be worse than a rival by up to the margin.
    """
    findings = []
    for subject, scores in iter_scores(evidence, comparisons, measure, by_task=by_task):
        pairs = [
            compare_pair(
                subject,
                scores,
                first,
                rival,
                trial=trial,
                number_format=FORMATS[measure],
                margin=margin,
            )
            for first, rival in itertools.product(firsts, rivals)
        ]
        findings.append(find_weakest(pairs))
    return findings


def iter_scores(
    evidence: Evidence,
    comparisons: Comparisons,
    measure: Measure = Measure.SCORE,
    *,
    by_task: bool = False,
) -> Iterator[tuple[str, Scores]]:
    """Yield each benchmark's name with a measure of its methods.

    If `by_task`, yield the name of each task instead, with the measure on this task alone.
    """
    for comparison in comparisons:
        if by_task:
            yield from evidence.measure_by_task(comparison, measure).items()
        else:
            yield comparison.benchmark, evidence.measure(comparison, measure)


def compare_pair(
    subject: str,
    scores: Scores,
    method: str,
    rival: str,
    *,
    trial: int,
    number_format: str = ".1f",
    margin: float = 0.0,
) -> Finding:
    """Find whether a method is better than a rival after a trial; their runs are paired by seed.

    Args:
        subject: What the scores are on, as in `Finding`.
        scores: Scores of several methods; lower is better.
        method: Name of the method that should be better.
        rival: Name of the method that it is compared with.
        trial: The trial, counted from 1.
        number_format: Format of the scores.
        margin: With a positive margin, the method may be worse than the rival by up to the margin.
    """
    # How much lower, so better, the method's score is than the rival's: (seeds, tasks).
    leads = compare_methods(scores, rival, method, trial=trial)
    n_seeds, n_tasks = leads.shape
    if n_tasks == 1:
        count = f"better in {(leads > 0).sum()} of {n_seeds} runs"
    else:
        lead_on_task = leads.mean(axis=0)
        count = f"better on {(lead_on_task > 0).sum()} of {n_tasks} tasks"

    means = mean_of_methods(scores, trial)
    sentence = (
        f"{method} {means[method]:{number_format}}, {rival} {means[rival]:{number_format}}, {count}"
    )
    if margin:
        sentence += f", allowed {margin:{number_format}}"
    # Positive where the method is better than the rival, or worse by less than the margin.
    lead_of_seed = leads.mean(axis=1) + margin
    return Finding.from_samples(subject, sentence, lead_of_seed, number_format=number_format)


def mean_of_methods(scores: Scores, trial: int) -> dict[str, float]:
    """Return the mean score of each method over tasks and seeds after a trial, by its name."""
    means = scores.over_tasks(trial=trial).mean
    return dict(zip(scores.methods, means.tolist(), strict=True))


def find_whether_cheaper(
    evidence: Evidence,
    comparisons: Comparisons,
    first: str,
    rivals: Sequence[str],
    *,
    factor: float = 1.0,
) -> list[Finding]:
    """Find whether one method suggests at least `factor` times as fast as every rival.

    Args:
        evidence: The results.
        comparisons: The comparisons, one per benchmark.
        first: The method that should be faster.
        rivals: The methods that it is compared with.
        factor: How many times as fast it should be.

    Returns:
        A finding for each benchmark, on the rival that speaks least for the claim. It has a sample
        for each seed: the logarithm of the ratio of both CPU times, divided by `factor`.
    """
    findings = []
    for comparison in comparisons:
        benchmark = comparison.benchmark
        time_of_first = evidence.milliseconds_of_seeds(benchmark, first)  # (seeds,)
        pairs = []
        for rival in rivals:
            time_of_rival = evidence.milliseconds_of_seeds(benchmark, rival)
            sentence = f"{first} {time_of_first.mean():.3g} ms, {rival} {time_of_rival.mean():.3g}"
            if factor != 1:
                sentence += f", asked {factor:.3g} times"
            # Positive where the rival takes more than `factor` times as long.
            log_ratios = np.log(time_of_rival / time_of_first / factor)
            pairs.append(Finding.from_samples(benchmark, sentence, log_ratios, is_ratio=True))
        findings.append(find_weakest(pairs))
    return findings
