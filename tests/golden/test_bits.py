"""The same bits on processors with fewer instructions, as far as these can be switched off."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

import hpobench_ordered as hbo
from hpobench_ordered.methods.registry import method_spec

SCRIPT_THAT_PRINTS_DIGESTS = """
import hashlib, importlib.util, json, sys
import numpy as np
import hpobench_ordered as hbo
from hpobench_ordered.methods.registry import method_spec

spec = importlib.util.spec_from_file_location("write", sys.argv[1])
write = importlib.util.module_from_spec(spec)
spec.loader.exec_module(write)
digests = {}
for name in json.loads(sys.argv[2]):
    for task, outcome in write.iter_outcomes(name):
        bits = outcome.values.tobytes() + outcome.losses.tobytes()
        digests[f"{name} on {task}"] = hashlib.sha256(bits).hexdigest()
for name in hbo.list_benchmarks(ready=True):
    space = hbo.load(name).space
    unit = space.sample_unit(np.random.default_rng(0), 500)
    values = space.decode(unit)
    bits = unit.tobytes() + values.tobytes() + space.encode(values).tobytes()
    digests[f"sampling {name}"] = hashlib.sha256(bits).hexdigest()
x = np.linspace(-20.0, 0.0, 100_001)
print(json.dumps([digests, hashlib.sha256(np.exp(x).tobytes()).hexdigest()]))
"""
ENVIRONMENT_OF_OLDER_PROCESSOR = {
    "NPY_DISABLE_CPU_FEATURES": " ".join(
        feature for feature in __cpu_dispatch__ if __cpu_features__[feature]
    ),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-FMA,-FMA4",
    "OPENBLAS_CORETYPE": "Nehalem",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",  # with less, JAX sums in another order
}
MODULES_FITTED_IN_MANY_STEPS = (".distbo", ".ablr", ".fsbo")
"""Modules of methods whose networks or descriptions of data are fitted in hundreds of steps.

These magnify the last bit of the C library's exponential, which is another one without FMA;
`docs/trust.md` promises nothing of them on such processors.
"""


def list_methods_with_same_bits() -> list[str]:
    """List the methods whose suggestions have the same bits on older processors.

    Others are fitted in many steps, which magnify differences of the last bit.
    """
    names = []
    for name in hbo.list_methods():
        module = method_spec(name).method.__module__
        if not module.endswith(MODULES_FITTED_IN_MANY_STEPS):
            names.append(name)
    return names


def compute_digests(environment: dict[str, str]) -> tuple[dict[str, str], str]:
    """Run the script of digests in a process of its own, with these environment variables.

    Returns:
        Digests of what methods suggest and of what search spaces draw, by name; and a digest of
        numpy's exponential function.
    """
    script = str(Path(__file__).parent / "write.py")
    methods = json.dumps(list_methods_with_same_bits())
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT_THAT_PRINTS_DIGESTS, script, methods],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    digest_of_name, digest_of_exponential = json.loads(result.stdout)
    return digest_of_name, digest_of_exponential


@pytest.mark.long
def test_older_processor_has_same_bits():
    """Methods and search spaces give the same bits with and without newer instructions."""
    digest_of_name, digest_of_exponential = compute_digests({})
    older_digest_of_name, older_digest_of_exponential = compute_digests(
        ENVIRONMENT_OF_OLDER_PROCESSOR
    )

    # numpy's exponential has other last bits without the newer instructions.
    assert older_digest_of_exponential != digest_of_exponential, "nothing was switched off"
    assert older_digest_of_name == digest_of_name
    assert len(digest_of_name) >= count_least_digests()


def count_least_digests() -> int:
    """Count the digests that are compared at least, so that a test of none does not pass.

    A method has at least five on average, as most run on two toy tasks and on three of newsvendor;
    a benchmark has one, of samples of its search space.
    """
    number_of_methods = len(list_methods_with_same_bits())
    number_of_benchmarks = len(hbo.list_benchmarks(ready=True))
    return 5 * number_of_methods + number_of_benchmarks


def test_log_scale_rounds_from_extended_precision():
    """Values on a logarithmic scale have the same bits everywhere.

    Their exponential is computed with more digits than a double has, and rounded once, as a
    library's exponential of doubles may have another last bit.
    """
    rate = hbo.load("xgboost-mnist").space["learning_rate"]
    unit = np.random.default_rng(0).random(10_000)

    decoded = rate.decode(unit)

    log_lower, log_upper = rate.span
    exponent = (log_lower + unit * (log_upper - log_lower)).astype(np.longdouble)
    expected = np.clip(np.exp(exponent).astype(np.float64), rate.lower, rate.upper)
    np.testing.assert_array_equal(decoded, expected)
