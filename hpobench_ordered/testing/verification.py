"""Verification of benchmarks: files, golden values, cards and marks against what is recorded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hpobench_ordered.analysis.marks import Marks, find_marks
from hpobench_ordered.benchmarks.registry import benchmark_spec, list_benchmarks
from hpobench_ordered.data.file_interfaces import ArtifactFiles, PublishedFile
from hpobench_ordered.data.specs import BenchmarkFamily, BenchmarkSpec
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.surrogates.bundle import find_card
from hpobench_ordered.surrogates.verification import check_card
from hpobench_ordered.testing.golden import check_golden, golden_options

Check = Callable[[], str]
"""Checks something and says what, such as "3 files"; "" if there is nothing to check.

What is wrong is raised as an `HPOBenchOrderedError`.
"""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked of a benchmark or of a family of benchmarks, and what is wrong."""

    label: str
    checked: tuple[str, ...]
    problems: tuple[str, ...]


def verify_benchmark(name: str, golden: Mapping[str, Any]) -> Verification:
    """Check a benchmark's files, golden values, card and marks.

    Args:
        name: Name of the benchmark, or path of an artifact.
        golden: The golden values, as `read_golden` returns them.
    """
    try:
        spec = benchmark_spec(name)
    except HPOBenchOrderedError as error:
        return Verification(name, checked=(), problems=(str(error),))
    checks = (
        partial(check_files, spec.artifact, spec.files),
        partial(check_golden_values, spec, golden),
        partial(check_card_of, spec),
        partial(check_marks, spec),
    )
    return run_checks(spec.id, checks)


def verify_family(family: BenchmarkFamily) -> Verification:
    """Check the fetched files that the benchmarks of a family share."""
    return run_checks(family.pattern, [partial(check_files, None, family.files())])


def run_checks(label: str, checks: Sequence[Check]) -> Verification:
    """Run all checks, also after one that fails."""
    checked = []
    problems = []
    for check in checks:
        try:
            checked.append(check())
        except HPOBenchOrderedError as error:
            problems.append(str(error))
    unique_problems = dict.fromkeys(problems)
    return Verification(label, tuple(filter(None, checked)), tuple(unique_problems))


def check_files(artifact: ArtifactFiles | None, files: Sequence[PublishedFile]) -> str:
    """Check the hashes of an artifact's files, and of those that are fetched."""
    count = 0 if artifact is None else artifact.check()
    for file in files:
        if file.is_fetched:
            file.open_path()
            count += 1
    if count == 0:
        return ""
    return "1 file" if count == 1 else f"{count} files"


def check_golden_values(spec: BenchmarkSpec, golden: Mapping[str, Any]) -> str:
    """Check the golden values of all surrogates that can be used here."""
    if spec.is_local or spec.id not in golden:  # the user's, another package's, or of a family
        return ""
    count = check_golden(spec, golden)
    unavailable = [option for option in golden_options(spec) if not option.is_ready]
    parts = [f"{count} golden values"] if count else []
    for reason in sorted({option.lacks for option in unavailable}):
        parts.append(f"without golden values ({reason})")
    return ", ".join(parts)


def check_card_of(spec: BenchmarkSpec) -> str:
    """Check the card of a benchmark, if it has one."""
    if spec.artifact is None or find_card(spec.artifact) is None:
        return ""
    check_card(spec, spec.artifact)
    return "card"


def check_marks(spec: BenchmarkSpec) -> str:
    """Check the marks of a benchmark, if it can be evaluated at once."""
    default = spec.option()
    if not default.is_ready:
        return ""
    marks = find_marks(spec)
    if marks is None:
        should_have_marks = (
            spec.name in list_benchmarks() and not spec.is_local and not default.trains
        )
        return "without marks" if should_have_marks else ""
    marks.check(Marks.compute(spec.load()))
    return "marks"
