"""The claims of every paper can be checked: each has findings, here on invented results."""

from types import SimpleNamespace

import numpy as np
import pytest
from reproduction_support import InventedEvidence

from hpobench_ordered.papers import Paper, paper
from hpobench_ordered.papers.abrac import posteriors

NUMBERS_OF_CLAIMS = {"ablr": 36, "abrac": 39, "hp-transfer": 13, "othpo": 20}
"""Those of `distbo` are checked in `test_distbo`."""


class EvidenceWithTimes(InventedEvidence):
    """Invented evidence in which every suggestion takes about a millisecond."""

    def milliseconds_of_seeds(self, benchmark: str, method: str) -> np.ndarray:
        return np.array([1.0, 1.1, 0.9])


def invent_evidence(chosen: Paper) -> EvidenceWithTimes:
    """Random losses and regrets of all runs of a paper: three seeds, nine tasks, 50 trials."""
    rng = np.random.default_rng(0)
    evidence = EvidenceWithTimes(select_counted=chosen.select_counted)
    for exhibit in chosen.exhibits:
        for comparison in exhibit.comparisons:
            for method in comparison.methods:
                runs = {"loss": rng.random((3, 9, 50)), "regret": rng.random((3, 9, 50))}
                evidence.add_runs(
                    comparison.benchmark, method, protocol=comparison.protocol, **runs
                )
    return evidence


def invent_belief(benchmark: str, task: int, method: str, *, n_random: int, n_own: int) -> object:
    """Invent a method's belief about a task: its error, and the number of basis functions used."""
    return SimpleNamespace(error=task + len(method), used=task * len(method))


@pytest.mark.parametrize("name", NUMBERS_OF_CLAIMS)
def test_claims_are_checked_on_invented_results(name, monkeypatch):
    """All claims of a paper, of which there are so many, get findings and a verdict."""
    monkeypatch.setattr(posteriors, "fit_belief", invent_belief)
    chosen = paper(name)
    evidence = invent_evidence(chosen)

    claims = []
    for exhibit in chosen.exhibits:
        claims.extend(exhibit.check(evidence, exhibit.comparisons))

    assert len(claims) == NUMBERS_OF_CLAIMS[name]
    for claim in claims:
        assert claim.findings, claim.sentence
        assert claim.verdict
        for finding in claim.findings:
            assert finding.measured.startswith(finding.sentence)
