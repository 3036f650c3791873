"""Golden values: the values of benchmarks at their release, which must never change.

They are values of a few random configurations on the first, a middle and the last task, on every
surrogate that needs no download and no generation. Only `python tests/golden/write.py` writes them,
for a new version of a benchmark.
"""

import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from hpobench_ordered._typing import Config
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.errors import ArtifactError

FILE = "golden.json"
RELATIVE_TOLERANCE = 1e-12
"""Not zero, as the last bits of logarithms differ between processors."""


def read_golden() -> Mapping[str, Any]:
    """Read the golden values in the package, by benchmark and version."""
    path = resources.files("hpobench_ordered") / "artifacts" / FILE
    try:
        content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} cannot be read: {error}; reinstall the package") from None
    return content


def golden_options(spec: BenchmarkSpec) -> list[SurrogateOption]:
    """The surrogates of a benchmark that have golden values: those that come with a package."""
    return [option for option in spec.surrogates if not option.files and option.generated is None]


def check_golden(spec: BenchmarkSpec, golden: Mapping[str, Any]) -> int:
    """Compare a benchmark's values with the golden ones.

    Surrogates that cannot be loaded here, for want of an extra, are left out.

    Returns:
        The number of compared values.

    Raises:
        ArtifactError: A value differs, or the golden values of a surrogate are missing.
    """
    recorded = golden.get(spec.id)
    if recorded is None:
        raise ArtifactError(f"there are no golden values of {spec.id}")

    number_compared = 0
    for option in golden_options(spec):
        if not option.is_ready:
            continue
        values_of_task = recorded["values"].get(option.name)
        if not values_of_task:
            raise ArtifactError(f"there are no golden values of surrogate {option.name!r}")
        number_compared += _check_surrogate(spec, option, recorded["configs"], values_of_task)
    return number_compared


def _check_surrogate(
    spec: BenchmarkSpec,
    option: SurrogateOption,
    configs: Sequence[Config],
    values_of_task: Mapping[str, Sequence[float]],
) -> int:
    """Compare one surrogate's values with the golden ones; return their number."""
    benchmark = spec.load(option.name)
    number_compared = 0
    for task, golden_values in values_of_task.items():
        for config, expected in zip(configs, golden_values, strict=True):
            value = benchmark.task(task).evaluate(config)
            if not math.isclose(value, expected, rel_tol=RELATIVE_TOLERANCE):
                raise ArtifactError(
                    f"surrogate {option.name!r}, task {task!r}: the value of {config} must be "
                    f"{expected!r}, but is {value!r}"
                )
            number_compared += 1
    return number_compared
