"""What wraps optimisers of others shares: their names, and configurations in flight."""

from operator import eq, is_
from typing import TypeVar

from hpobench_ordered._typing import Config
from hpobench_ordered.errors import ExperimentError

T = TypeVar("T")

SCRIPT_NAMES = ("__main__", "__mp_main__")
"""Names of the user's program. By the second it sees that it is not the program that was started:
so in the processes of `multiprocessing`, and in those of methods."""


def derive_name(optimiser: object) -> str:
    """Derive a method's name from a class or function.

    It is the name of the class or function, after that of its module unless the module is the
    user's program.

    Optuna's own samplers are named as users import them, such as "optuna.TPESampler".

    Raises:
        ExperimentError: It has no name: a lambda, or an object such as a partial function.
    """
    name = getattr(optimiser, "__qualname__", None)
    if name is None or "<lambda>" in name:
        raise ExperimentError(
            f"{optimiser!r} has no name to store results under; give it one: "
            "hpobench_ordered.tuning.as_method_spec(..., name='mine')"
        )
    module = getattr(optimiser, "__module__", "__main__")
    if module.startswith("optuna.samplers."):
        return f"optuna.{name}"
    return str(name) if module in SCRIPT_NAMES else f"{module}.{name}"


def read_summary(optimiser: object) -> str:
    """Return the first line of the docstring of a class or function; "" if there is none."""
    is_class_or_function = isinstance(optimiser, type) or hasattr(optimiser, "__qualname__")
    if not is_class_or_function:
        # An object, such as a partial function, has the docstring of its class.
        return ""
    docstring = optimiser.__doc__ or ""
    first_line, _, _ = docstring.strip().partition("\n")
    return first_line


def is_sampler_class(kind: type) -> bool:
    """Whether a class is an Optuna sampler.

    The bases are compared by name, as Optuna is slow to import and may not be installed.
    """
    return any(
        base.__name__ == "BaseSampler" and base.__module__.startswith("optuna.samplers")
        for base in kind.__mro__
    )


def pop_pending(pending: list[tuple[Config, T]], config: Config) -> T | None:
    """Remove a configuration from those in flight, and return what was stored with it.

    Several configurations in flight may be equal, so the same object is preferred to an equal one.
    The result is None if the configuration is not in flight.
    """
    for is_same in (is_, eq):  # the operators `is` and `==`
        for index, (candidate, _) in enumerate(pending):
            if is_same(candidate, config):
                _, item = pending.pop(index)
                return item
    return None
