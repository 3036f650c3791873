"""Writes the golden values: `python tests/golden/write.py`, when a benchmark gets a new version.

The test run only reads them. They are values of random configurations on three tasks of every
surrogate that comes with a package, which are shipped (`artifacts/golden.json`), and what each
method suggests on a few short runs.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import hpobench_ordered as hbo
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.runner import follow, one_thread
from hpobench_ordered.golden import FILE, golden_values
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.testing.toy import (
    conditional_space,
    numeric_space,
    play,
    random_history,
    toy_benchmark,
)

FOLDER = Path(__file__).parent
ARTIFACTS = FOLDER.parents[1] / "artifacts"
SEED = 0
PROTOCOL = hbo.Ordered(trials=12, tasks=3)


def trajectories(name: str) -> dict[str, list[list[float | None]]]:
    """What a method does on a toy task of each kind, and on newsvendor in the ordered protocol.

    Returns:
        By name of the task one row a trial: the configuration, coded as values, and its loss.
    """
    spec = method_spec(name)
    runs = {}
    for space in (numeric_space(), conditional_space()):
        *earlier, task = toy_benchmark(space, tasks=spec.min_history + 1).tasks
        history = random_history(earlier, seed=SEED)
        played = play(spec, task, history, np.random.default_rng(SEED))
        runs[f"toy: {', '.join(space.names)}"] = _rows(played)
    (cell,) = plan(benchmarks=["newsvendor"], methods=[name], seeds=[SEED], protocol=PROTOCOL)
    with one_thread():  # as in an experiment
        for outcome in follow(
            PROTOCOL, hbo.load("newsvendor"), spec, rng=cell.rng, protocol_rng=cell.protocol_rng
        ):
            runs[f"newsvendor: {outcome.task_name}"] = _rows(outcome)
    return runs


def main(benchmarks: Path, methods: Path) -> None:
    """Write one file to each folder."""
    specs = [benchmark_spec(name) for name in hbo.list_benchmarks(ready=True)]
    values = {spec.id: golden_values(spec) for spec in specs}
    trajectory = {name: trajectories(name) for name in hbo.list_methods()}
    (benchmarks / FILE).write_text(json.dumps(values, indent=1) + "\n")
    (methods / "methods.json").write_text(_one_line_a_run(trajectory))


def _rows(outcome: Outcome) -> list[list[float | None]]:
    """Configurations and losses to nine digits; inactive hyperparameters None, which JSON has."""
    table = np.column_stack([outcome.values, outcome.losses]).tolist()
    return [[None if np.isnan(x) else float(f"{x:.9g}") for x in row] for row in table]


def _one_line_a_run(methods: dict[str, Any]) -> str:
    """JSON that is short, and still shows in a diff what changed."""
    texts = []
    for name, runs in methods.items():
        lines = [f"  {json.dumps(task)}: {json.dumps(rows)}" for task, rows in runs.items()]
        texts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(texts) + "\n}\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="for both, instead of their own")
    given = parser.parse_args().folder
    main(given or ARTIFACTS, given or FOLDER)
