"""NewsVendor: prices of three items under a drifting demand (Hellan et al. 2023, section 4)."""

from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.bundle import bundled_spec

NAME = "newsvendor"
VERSION = 1
SUMMARY = "Prices of three items in the dynamic newsvendor problem, exact values."

TASKS = 9
ITEMS = 3
HIGHEST_PRICE = 20


def define_benchmark() -> Definition:
    """Define the benchmark: prices of three items, the mean profit, and nine tasks in order."""
    prices = [
        Parameter.number(f"price_{item}", 0, HIGHEST_PRICE, integer=True) for item in range(ITEMS)
    ]
    return Definition(
        name=NAME,
        version=VERSION,
        summary=SUMMARY,
        space=SearchSpace(prices),
        objective=Objective("profit", "mean over 10 replications", Direction.MAXIMIZE),
        tasks=tuple(TaskDefinition(str(i), {"task_index": i}) for i in range(TASKS)),
        provenance=Provenance(
            paper="Hellan et al. (2023), section 4; SimOpt: Eckman et al. (2023)",
            source="own simulation of all 9 x 9261 price vectors",
            licence="Apache-2.0",
        ),
    )


SPECS = (
    bundled_spec(
        NAME,
        version=VERSION,
        summary=SUMMARY,
        surrogates={"table": "The simulator's value of every configuration."},
    ),
)
SUITES = (("othpo", NAME), ("wide", NAME))
