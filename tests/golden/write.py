"""Writes the golden values: `python tests/golden/write.py`, when a version was raised.

The test run only reads them. They are values of random configurations on three tasks of every
surrogate that comes with a package, and what each method suggests on a few short runs, with the
version of the method. A trajectory that changed is not written under the version that it had
before.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data import BenchmarkSpec
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.runner import follow
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.testing.toy import (
    conditional_space,
    numeric_space,
    random_history,
    run_method,
    toy_benchmark,
)

FOLDER = Path(__file__).parent
BENCHMARKS = "benchmarks.json"
METHODS = "methods.json"
SEED = 0
PROTOCOL = hbo.Ordered(trials=12, tasks=3)

Runs = dict[str, list[list[float | None]]]
"""By name of the task one row a trial: the configuration, coded as values, and its loss."""


NUMBER_OF_CONFIGURATIONS = 6
CONFIGURATION_SEED = 2023


def compute_golden_values(spec: BenchmarkSpec) -> dict[str, Any]:
    """Evaluate random configurations on the first, the middle and the last task of a benchmark.

    Returns:
        The configurations as "configs"; and as "values" a list of their values, by surrogate and
        task.
    """
    definition = spec.define()
    space = definition.space
    rng = np.random.default_rng(CONFIGURATION_SEED)
    configs = space.configs(space.decode(space.sample_unit(rng, NUMBER_OF_CONFIGURATIONS)))

    last = len(definition.tasks) - 1
    values = {}
    for option in spec.surrogates:
        comes_with_package = not option.files and option.generated is None
        if not comes_with_package:
            continue
        benchmark = spec.load(option.name)
        values_of_task = {}
        for index in (0, last // 2, last):
            task = benchmark.tasks[index]
            values_of_task[task.name] = [task.evaluate(config) for config in configs]
        values[option.name] = values_of_task
    return {"configs": configs, "values": values}


def iter_outcomes(name: str) -> Iterator[tuple[str, Outcome]]:
    """Run a method on a toy task of each kind, and on newsvendor in the ordered protocol.

    Yields:
        Name of the task, and the outcome.
    """
    spec = method_spec(name)
    for space in (numeric_space(), conditional_space()):
        *earlier_tasks, task = toy_benchmark(space, tasks=spec.min_history + 1).tasks
        history = random_history(earlier_tasks, seed=SEED)
        outcome = run_method(spec, task, history, np.random.default_rng(SEED))
        yield f"toy: {', '.join(space.names)}", outcome

    if spec.uses_data:  # newsvendor has no training data
        return
    # A cell is one method with one seed on one benchmark; it has the random numbers for that.
    (cell,) = plan(benchmarks=["newsvendor"], methods=[name], seeds=[SEED], protocol=PROTOCOL)
    newsvendor = hbo.load("newsvendor")
    with one_thread():  # as in an experiment
        for outcome in follow(
            PROTOCOL, newsvendor, spec, rng=cell.rng, protocol_rng=cell.protocol_rng
        ):
            yield f"newsvendor: {outcome.task_name}", outcome


def compute_trajectories(name: str) -> Runs:
    """The configurations and losses of a method's outcomes, to nine digits."""
    return {task: _make_rows(outcome) for task, outcome in iter_outcomes(name)}


def is_same(runs: Runs, golden_runs: Runs) -> bool:
    """Whether the trajectories of two runs of a method are equal up to rounding."""
    if runs.keys() != golden_runs.keys():
        return False
    for task, rows in runs.items():
        actual = np.array(rows, dtype=float)
        golden = np.array(golden_runs[task], dtype=float)
        if actual.shape != golden.shape:
            return False
        if not np.allclose(actual, golden, rtol=1e-6, atol=1e-9, equal_nan=True):
            return False
    return True


def make_golden(name: str, version: int, runs: Runs, golden: dict[str, Any] | None) -> Any:
    """Make the golden record of a method, given the one before; None if it is new.

    Raises:
        SystemExit: Its trajectories changed and its version was not raised, or was lowered.
    """
    if golden is None:
        return {"version": version, "runs": runs}

    has_same_runs = is_same(runs, golden["runs"])
    is_raised = version > golden["version"]
    is_lowered = version < golden["version"]
    if is_lowered or not (has_same_runs or is_raised):
        raise SystemExit(
            f"{name}: suggestions changed, so raise `version` in its MethodSpec: it is "
            f"{version}, the goldens are of {golden['version']}"
        )
    # Runs that are the same up to rounding stay as they are, so that the file does not change.
    return {"version": version, "runs": golden["runs"] if has_same_runs else runs}


def main(folder: Path) -> None:
    """Write the golden values of benchmarks and of methods to a folder."""
    golden_before = json.loads((FOLDER / METHODS).read_text(encoding="utf-8"))
    methods = {}
    for name in hbo.list_methods():
        version = method_spec(name).version
        runs = compute_trajectories(name)
        methods[name] = make_golden(name, version, runs, golden_before.get(name))

    specs = [benchmark_spec(name) for name in hbo.list_benchmarks(ready=True)]
    values = {spec.id: compute_golden_values(spec) for spec in specs}
    (folder / BENCHMARKS).write_text(json.dumps(values, indent=1) + "\n")
    (folder / METHODS).write_text(_format_methods(methods))


def _make_rows(outcome: Outcome) -> list[list[float | None]]:
    """Make rows of configurations and losses, to nine digits; NaN becomes None, for JSON."""
    table = np.column_stack([outcome.values, outcome.losses])
    return [[_round(number) for number in row] for row in table.tolist()]


def _round(number: float) -> float | None:
    return None if np.isnan(number) else float(f"{number:.9g}")


def _format_methods(methods: dict[str, Any]) -> str:
    """Format as JSON with one line a run: it is short, and a diff shows which runs changed."""
    texts = []
    for name, golden in methods.items():
        lines_of_runs = []
        for task, rows in golden["runs"].items():
            lines_of_runs.append(f"   {json.dumps(task)}: {json.dumps(rows)}")
        lines = [
            f" {json.dumps(name)}: {{",
            f'  "version": {json.dumps(golden["version"])},',
            '  "runs": {',
            ",\n".join(lines_of_runs),
            "  }",
            " }",
        ]
        texts.append("\n".join(lines))
    return "{\n" + ",\n".join(texts) + "\n}\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="default: their own")
    main(parser.parse_args().folder)
