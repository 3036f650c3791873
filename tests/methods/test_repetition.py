"""In a small space, no configuration is suggested twice before all others were."""

import numpy as np
import pytest
from by_hand import SPACE_OF_TWELVE, make_method, optimise
from histories import minimised

from hpobench_ordered.methods.registry import method_spec


@pytest.mark.parametrize("evaluated", [0, 6])
@pytest.mark.parametrize("name", ["bo", "cts", "dre-ordered", "ordered-gp", "zero-shot"])
def test_small_space_is_exhausted_before_repeats(name, evaluated):
    """A method makes 15 suggestions in a space of twelve configurations.

    The first ones, `evaluated` of them, get a result, and the others stay without one.
    """
    rng = np.random.default_rng(0)
    values = SPACE_OF_TWELVE.decode(SPACE_OF_TWELVE.sample_unit(rng, 20))
    random_losses = rng.random(20)
    history = [minimised("earlier task", {}, values, random_losses, SPACE_OF_TWELVE)]
    method = make_method(method_spec(name).method, history, space=SPACE_OF_TWELVE)

    configs = optimise(method, lambda config: float(config["k"]), trials=evaluated)
    pending = [method.ask() for _ in range(15 - evaluated)]

    suggestions = [tuple(config.items()) for config in [*configs, *pending]]
    first_twelve = set(suggestions[:12])
    assert len(first_twelve) == 12
    assert set(suggestions[12:]) <= first_twelve
