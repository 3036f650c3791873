"""What wraps optimisers of others shares: their names, and pending configurations."""

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

    It is "module.name", or "name" alone if the module is the program that the user has started.
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
        # Another object, such as a partial function, has only the docstring of its class, which
        # does not describe it.
        return ""
    docstring = optimiser.__doc__ or ""
    first_line, _, _ = docstring.strip().partition("\n")
    return first_line


def is_sampler_class(kind: type) -> bool:
    """Whether a class is an Optuna sampler, that is derived from Optuna's class `BaseSampler`.

    Its base classes are compared by name, as Optuna is slow to import and may not be installed.
    """
    for base in kind.__mro__:  # the class itself and its base classes
        if base.__name__ == "BaseSampler" and base.__module__.startswith("optuna.samplers"):
            return True
    return False


def pop_pending(pending: list[tuple[Config, T]], config: Config) -> T | None:
    """Remove a configuration from the pending ones, and return what was stored with it.

    Several pending configurations may be equal. The very object `config` is preferred to one that
    is only equal.

    Args:
        pending: Configurations that were asked for and not told yet, with what is stored for each.
        config: The configuration.

    Returns:
        What was stored with it; None if the configuration is not pending.
    """
    for is_match in (is_, eq):  # the operators `is` and `==`: first the same, then an equal one
        for index, (candidate, stored) in enumerate(pending):
            if is_match(candidate, config):
                del pending[index]
                return stored
    return None
