"""Writes the golden values: `python tests/golden/write.py`, when a version was raised.

The test run only reads them. They are values of random configurations on three tasks of every
surrogate that comes with a package, which are shipped (`artifacts/golden.json`), and what each
method suggests on a few short runs, with the version of the method. A trajectory that changed is
not written under the version that it had before.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hpobench_ordered as hbo
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.runner import follow
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.testing.golden import FILE, golden_options
from hpobench_ordered.testing.toy import (
    conditional_space,
    numeric_space,
    random_history,
    run_method,
    toy_benchmark,
)

FOLDER = Path(__file__).parent
ARTIFACTS = FOLDER.parents[1] / "artifacts"
METHODS = "methods.json"
SEED = 0
PROTOCOL = hbo.Ordered(trials=12, tasks=3)

Runs = dict[str, list[list[float | None]]]
"""By name of the task one row a trial: the configuration, coded as values, and its loss."""


CONFIGURATIONS = 6
CONFIGURATION_SEED = 2023


def golden_values(spec: hbo.BenchmarkSpec) -> dict[str, Any]:
    """Evaluate what is to become golden, as `read_golden` gives it for one benchmark."""
    rng = np.random.default_rng(CONFIGURATION_SEED)
    space, tasks = spec.define().space, spec.define().tasks
    configs = space.configs(space.decode(space.sample_unit(rng, CONFIGURATIONS)))
    last = len(tasks) - 1
    loaded = {option.name: spec.load(option.name) for option in golden_options(spec)}
    return {
        "configs": configs,
        "values": {
            name: {
                benchmark.tasks[i].name: [benchmark.tasks[i].evaluate(c) for c in configs]
                for i in (0, last // 2, last)
            }
            for name, benchmark in loaded.items()
        },
    }


def outcomes(name: str) -> Iterator[tuple[str, Outcome]]:
    """What a method does on a toy task of each kind, and on newsvendor in the ordered protocol.

    Yields:
        Name of the task, and the outcome.
    """
    spec = method_spec(name)
    for space in (numeric_space(), conditional_space()):
        *earlier, task = toy_benchmark(space, tasks=spec.min_history + 1).tasks
        history = random_history(earlier, seed=SEED)
        played = run_method(spec, task, history, np.random.default_rng(SEED))
        yield f"toy: {', '.join(space.names)}", played
    if spec.uses_data:  # newsvendor has none
        return
    (cell,) = plan(benchmarks=["newsvendor"], methods=[name], seeds=[SEED], protocol=PROTOCOL)
    with one_thread():  # as in an experiment
        for outcome in follow(
            PROTOCOL, hbo.load("newsvendor"), spec, rng=cell.rng, protocol_rng=cell.protocol_rng
        ):
            yield f"newsvendor: {outcome.task_name}", outcome


def trajectories(name: str) -> Runs:
    """The configurations and losses of `outcomes`, to nine digits."""
    return {task: _rows(outcome) for task, outcome in outcomes(name)}


def is_same(runs: Runs, golden: Runs) -> bool:
    """Whether two methods' trajectories are equal up to rounding."""
    if runs.keys() != golden.keys():
        return False
    pairs = [(np.array(runs[k], dtype=float), np.array(golden[k], dtype=float)) for k in runs]
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
        for a, b in pairs
    )


def next_golden(name: str, version: int, runs: Runs, golden: dict[str, Any] | None) -> Any:
    """What to record of a method.

    Raises:
        SystemExit: Its trajectories changed and its version was not raised, or was lowered.
    """
    if golden is not None:
        same = is_same(runs, golden["runs"])
        if version < golden["version"] or (not same and version == golden["version"]):
            raise SystemExit(
                f"{name}: suggestions changed, so raise `version` in its MethodSpec: it is "
                f"{version}, the goldens are of {golden['version']}"
            )
        if same:
            runs = golden["runs"]  # without differences in rounding
    return {"version": version, "runs": runs}


def main(benchmarks: Path, methods: Path) -> None:
    """Write one file to each folder."""
    known = json.loads((FOLDER / METHODS).read_text(encoding="utf-8"))
    trajectory = {
        name: next_golden(name, method_spec(name).version, trajectories(name), known.get(name))
        for name in hbo.list_methods()
    }
    specs = [benchmark_spec(name) for name in hbo.list_benchmarks(ready=True)]
    values = {spec.id: golden_values(spec) for spec in specs}
    (benchmarks / FILE).write_text(json.dumps(values, indent=1) + "\n")
    (methods / METHODS).write_text(_one_line_a_run(trajectory))


def _rows(outcome: Outcome) -> list[list[float | None]]:
    """Configurations and losses to nine digits; inactive hyperparameters None, which JSON has."""
    table = np.column_stack([outcome.values, outcome.losses]).tolist()
    return [[None if np.isnan(x) else float(f"{x:.9g}") for x in row] for row in table]


def _one_line_a_run(methods: dict[str, Any]) -> str:
    """JSON that is short, and still shows in a diff what changed."""
    texts = []
    for name, golden in methods.items():
        lines = [f"   {json.dumps(k)}: {json.dumps(rows)}" for k, rows in golden["runs"].items()]
        runs = ",\n".join(lines)
        version = json.dumps(golden["version"])
        texts.append(
            f' {json.dumps(name)}: {{\n  "version": {version},\n  "runs": {{\n{runs}\n  }}\n }}'
        )
    return "{\n" + ",\n".join(texts) + "\n}\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="for both files; default: their own")
    folder = parser.parse_args().folder
    main(folder or ARTIFACTS, folder or FOLDER)
