"""Of a few configurations none is suggested twice before all were, evaluated or not."""

import numpy as np
import pytest
from by_hand import TWELVE, make, optimise
from histories import minimised

from hpobench_ordered.registry import method_spec


@pytest.mark.parametrize("evaluated", [0, 6, 15])
@pytest.mark.parametrize("name", ["bo", "cts", "dre-ordered", "ordered-gp", "zero-shot"])
def test_a_small_space_is_exhausted_before_anything_is_repeated(name, evaluated):
    rng = np.random.default_rng(0)
    values = TWELVE.decode(TWELVE.sample_unit(rng, 20))
    history = [minimised("before", {}, values, rng.random(20), TWELVE)]
    method = make(method_spec(name).method, history, space=TWELVE)
    configs = optimise(method, lambda config: float(config["k"]), evaluated)
    configs += [method.ask() for _ in range(15 - evaluated)]
    first = {tuple(config.items()) for config in configs[:12]}
    assert len(first) == 12
    assert {tuple(config.items()) for config in configs[12:]} <= first
