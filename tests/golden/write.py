"""Writes the golden values: `python tests/golden/write.py`, when a benchmark gets a new version.

The test run only reads them. They are values of random configurations on three tasks of every
bundled benchmark, and what each method suggests on a few short runs.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

import hpobench_ordered as hbo
from hpobench_ordered.registry import method_spec
from hpobench_ordered.testing import conditional_problem, numeric_problem, play

FOLDER = Path(__file__).parent
CONFIGURATIONS = 6


def benchmark_values(name: str) -> dict[str, Any]:
    """Values of seeded random configurations on the first, a middle and the last task."""
    benchmark = hbo.load(name)
    rng = np.random.default_rng(2023)
    space = benchmark.space
    configs = space.configs(space.decode(space.sample_unit(rng, CONFIGURATIONS)))
    last = len(benchmark.tasks) - 1
    return {
        "configs": configs,
        "values": {
            benchmark.tasks[i].name: [benchmark.tasks[i].evaluate(c) for c in configs]
            for i in (0, last // 2, last)
        },
    }


def trajectory(name: str) -> list[Any]:
    """What a method suggests on the toy problems, and the losses."""
    spec = method_spec(name)
    return [
        play(spec, problem, problem.history(spec.min_history, seed=7), 7)
        for problem in (numeric_problem(), conditional_problem())
    ]


def main() -> None:
    """Write both files."""
    files = {
        "benchmarks.json": {hbo.load(n).id: benchmark_values(n) for n in hbo.list_benchmarks()},
        "methods.json": {name: trajectory(name) for name in hbo.list_methods()},
    }
    for name, content in files.items():
        (FOLDER / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
