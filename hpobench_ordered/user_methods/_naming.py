"""What adapters of optimisers share: names, seeds, kinds, and configurations in flight."""

from typing import TypeVar

from hpobench_ordered._typing import Config
from hpobench_ordered.errors import ExperimentError

T = TypeVar("T")

SEED = "seed"  # parameter of a factory that gets a seed drawn from `rng`
SEED_LIMIT = 2**31  # upper bound of seeds, accepted by all common random number generators


def derive_name(method: object) -> str:
    """Name of a class or function, with its module unless that is a script; raises for a lambda."""
    name = getattr(method, "__qualname__", None)
    if name is None or "<lambda>" in name:
        raise ExperimentError(
            f"{method!r} has no name to store results under; give it one: "
            "hpobench_ordered.adapters.as_method_spec(..., name='mine')"
        )
    module = getattr(method, "__module__", "__main__")
    return str(name) if module == "__main__" else f"{module}.{name}"


def read_summary(method: object) -> str:
    """First line of the docstring of a class or function, "" if it has none."""
    has_docstring = isinstance(method, type) or hasattr(method, "__qualname__")
    return (method.__doc__ or "").strip().partition("\n")[0] if has_docstring else ""


def is_sampler_class(kind: type) -> bool:
    """Whether a class is an Optuna sampler; does not import Optuna."""
    return any(
        base.__name__ == "BaseSampler" and base.__module__.startswith("optuna.samplers")
        for base in kind.__mro__
    )


def pop_pending(pending: list[tuple[Config, T]], config: Config) -> T | None:
    """Remove the item of a configuration in flight: of the identical object before an equal one."""
    same = (i for i, (known, _) in enumerate(pending) if known is config)
    equal = (i for i, (known, _) in enumerate(pending) if known == config)
    index = next(same, next(equal, None))
    return None if index is None else pending.pop(index)[1]
