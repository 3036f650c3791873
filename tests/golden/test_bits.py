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
from hpobench_ordered.registry import method_spec

DIGESTS = """
import hashlib, importlib.util, json, sys
import numpy as np
import hpobench_ordered as hbo
from hpobench_ordered.registry import method_spec

spec = importlib.util.spec_from_file_location("write", sys.argv[1])
write = importlib.util.module_from_spec(spec)
spec.loader.exec_module(write)
digests = {}
for name in json.loads(sys.argv[2]):
    for task, outcome in write.outcomes(name):
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
OLDER_PROCESSOR = {
    "NPY_DISABLE_CPU_FEATURES": " ".join(f for f in __cpu_dispatch__ if __cpu_features__[f]),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-FMA,-FMA4",
    "OPENBLAS_CORETYPE": "Nehalem",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",  # with less, JAX sums in another order
}


def methods() -> list[str]:
    """All but those whose networks or descriptions of data are fitted in hundreds of steps.

    These magnify the last bit of the C library's exponential, which is another one without FMA;
    `docs/trust.md` promises nothing of them on such processors.
    """
    at_length = (".distbo", ".ablr", ".fsbo")
    names = hbo.list_methods()
    return [n for n in names if not method_spec(n).method.__module__.endswith(at_length)]


def digests(environment: dict[str, str]) -> tuple[dict[str, str], str]:
    """Of what methods suggest and spaces draw, and of numpy's exponential function."""
    script = str(Path(__file__).parent / "write.py")
    command = [sys.executable, "-c", DIGESTS, script, json.dumps(methods())]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | environment
    )
    of_package, of_numpy = json.loads(done.stdout)
    return of_package, of_numpy


@pytest.mark.slow
def test_trajectories_have_the_same_bits_on_an_older_processor():
    here, numpy_here = digests({})
    there, numpy_there = digests(OLDER_PROCESSOR)
    assert numpy_there != numpy_here, "nothing was switched off, so nothing is shown"
    assert [name for name in here if here[name] != there[name]] == []
    assert len(here) >= 5 * len(methods()) + len(hbo.list_benchmarks(ready=True))


def test_log_scales_are_rounded_from_extended_precision():
    (rate,) = hbo.load("xgboost-mnist").space.parameters[:1]
    unit = np.random.default_rng(0).random(10_000)
    decoded, (low, high) = rate.decode(unit), rate.span
    exact = np.exp((low + unit * (high - low)).astype(np.longdouble)).astype(np.float64)
    np.testing.assert_array_equal(decoded, np.clip(exact, rate.lower, rate.upper))
    np.testing.assert_allclose(rate.encode(decoded), unit, rtol=0, atol=1e-15)
