"""Adapts classes with ask and tell, and functions that make such objects, to `Method`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from hpobench_ordered._typing import Config
from hpobench_ordered._wording import suggest_nearest
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.errors import ExperimentError, MethodError
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.registry import list_methods, method_spec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.user_methods._naming import (
    SEED,
    SEED_LIMIT,
    derive_name,
    is_sampler_class,
    pop_pending,
    read_summary,
)
from hpobench_ordered.user_methods.importing import import_object

SETTING = ("space", "rng", "history", "context", "budget")
"""Arguments that every method is created with."""
FOR_DATA = "; training data go to a subclass of hbo.Method, in a MethodSpec with uses_data"
"""Hint for a factory with a parameter `data`."""
IMPORT_MARK = ":"  # separates a module from the name to import from it


def as_method_spec(
    method: object,
    *,
    name: str | None = None,
    summary: str | None = None,
    min_history: int = 0,
    changed_spaces: bool = False,
) -> MethodSpec:
    """Find a method by its name, or describe any optimiser as a method.

    Args:
        method: The name of a registered method; a `MethodSpec`; a subclass of `Method`; a class
            with `ask()` and `tell(config, loss)`; a function that makes an object with both, or a
            pair of functions (ask, tell); an Optuna sampler class, or a function of a `seed` that
            makes a sampler; or where one of these can be imported from, such as
            "package.module:Class" or "file.py:Class". Classes and functions are called with those
            of `space`, `rng`, `history`, `context`, `budget` and `seed` that they have a parameter
            for, once for every task.
        name: Its name; default: that of the class or function.
        summary: One line; default: the first line of its docstring.
        min_history: Earlier tasks it needs.
        changed_spaces: Whether it supports a history on another search space.

    The options are for classes and functions: a name or a `MethodSpec` has its own.

    Raises:
        UnknownNameError: No method of that name, or nothing to import.
        ExperimentError: It is not an optimiser; it is an object, which runs would share; it has no
            name or that of a registered method; or it requires an argument that is not passed.
        MissingExtraError: An Optuna sampler, and Optuna is not installed.
    """
    if isinstance(method, str):
        if method.endswith(".py"):
            raise ExperimentError(
                f"{method!r} is a file; name the method in it, such as {method}:Mine"
            )
        if IMPORT_MARK not in method:
            return method_spec(method)
        method = import_object(method)
    if isinstance(method, MethodSpec):
        return _unambiguous(method)
    _refuse_objects(method)
    line = summary if summary is not None else read_summary(method)
    if isinstance(method, type) and is_sampler_class(method):
        from hpobench_ordered.adapters.optuna.methods import optuna_method

        spec = replace(optuna_method(method, name=name), summary=line, min_history=min_history)
        return _unambiguous(spec)
    factory: Any = method
    if not (isinstance(method, type) and issubclass(method, Method)):
        factory = FromFactory(cast("Callable[..., object]", method), _keywords(method))
    spec = MethodSpec(
        name=name or derive_name(method),
        method=factory,
        summary=line,
        source="user",
        min_history=min_history,
        uses_history=factory is method or "history" in factory.keywords,
        changed_spaces=changed_spaces,
    )
    return _unambiguous(spec)


@dataclass(frozen=True)
class FromFactory:
    """Makes a method of what a class or function makes.

    It can be sent to other processes if the class or function can.

    Attributes:
        make: The class or function.
        keywords: Names, of `SETTING` and `SEED`, that it is called with.
    """

    make: Callable[..., object]
    keywords: tuple[str, ...]

    def __call__(
        self,
        *,
        space: SearchSpace,
        rng: np.random.Generator,
        history: Sequence[Evaluations],
        context: Mapping[str, float],
        budget: int,
    ) -> Method:
        """Make the method of one task.

        Raises:
            MethodError: What was made has no ask() and tell().
        """
        values = (space, rng, history, context, budget)
        setting: dict[str, Any] = dict(zip(SETTING, values, strict=True))
        seed = {SEED: int(rng.integers(SEED_LIMIT))} if SEED in self.keywords else {}
        made = self.make(**{name: (setting | seed)[name] for name in self.keywords})
        if isinstance(made, Method):
            return made
        if is_sampler_class(type(made)):
            from hpobench_ordered.adapters.optuna.methods import OptunaMethod

            return OptunaMethod(**setting).start_study(made)
        method = AskTell(**setting)
        method.partners = _ask_and_tell(made)
        return method


class AskTell(Method):
    """Wraps functions ask() and tell(config, loss), the latter told the very object suggested."""

    partners: tuple[Callable[[], object], Callable[[Any, float], object]]

    def prepare(self) -> None:
        """Begin without configurations in flight."""
        self._pending: list[tuple[Config, object]] = []

    def ask(self) -> Config:
        """Ask for a configuration; the runner refuses what is not a mapping."""
        asked = self.partners[0]()
        if isinstance(asked, dict) or not isinstance(asked, Mapping):
            return cast("Config", asked)
        config = dict(asked)
        self._pending.append((config, asked))
        return config

    def tell(self, config: Config, loss: float) -> None:
        """Tell the loss of a configuration."""
        asked = pop_pending(self._pending, config)
        self.partners[1](config if asked is None else asked, loss)


def _unambiguous(spec: MethodSpec) -> MethodSpec:
    """Refuse another method under the name of a registered one."""
    if spec.name in list_methods() and method_spec(spec.name) != spec:
        raise ExperimentError(f"{spec.name!r} is the name of a registered method")
    return spec


def _refuse_objects(method: object) -> None:
    """Refuse single objects, which runs would share, and what has no ask() and tell()."""
    kind = type(method)
    if isinstance(method, type):
        if not (
            issubclass(method, Method) or _is_asked_and_told(method) or is_sampler_class(method)
        ):
            calls = {"ask": "ask()", "tell": "tell(config, loss)"}
            lacking = [calls[name] for name in calls if not callable(getattr(method, name, None))]
            raise ExperimentError(f"the class {method.__qualname__} has no {' and '.join(lacking)}")
    elif is_sampler_class(kind) or _is_asked_and_told(method):
        given = "seed" if is_sampler_class(kind) else "space, rng"
        raise ExperimentError(
            f"{method!r} is one object that all runs would share; pass its class {kind.__name__}, "
            f"or with settings hpobench_ordered.adapters.as_method_spec(lambda {given}: "
            f"{kind.__name__}(...), name='mine')"
        )
    elif not callable(method):
        raise ExperimentError(
            "a method must be a name, a class with ask() and tell(config, loss), a function that "
            "makes an object with both or a pair of functions, or an Optuna sampler class, but got "
            f"{method!r}"
        )


def _is_asked_and_told(thing: object) -> bool:
    return callable(getattr(thing, "ask", None)) and callable(getattr(thing, "tell", None))


def _ask_and_tell(made: object) -> tuple[Callable[[], object], Callable[[Any, float], object]]:
    if _is_asked_and_told(made):
        return cast("Any", made).ask, cast("Any", made).tell
    if isinstance(made, tuple) and len(made) == 2 and all(map(callable, made)):
        return made
    raise MethodError(
        "a factory must return an object with ask() and tell(config, loss), a pair of functions "
        f"(ask, tell), or an Optuna sampler, but returned {made!r}"
    )


def _keywords(method: object) -> tuple[str, ...]:
    """Names of the arguments to call a class or function with; refuses other required ones."""
    known = (*SETTING, SEED)
    called = getattr(method, "__qualname__", repr(method))
    named, takes_all = [], False
    for parameter in inspect.signature(cast("Callable[..., object]", method)).parameters.values():
        is_needed = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_all = True
        elif parameter.name in known and parameter.kind is not parameter.POSITIONAL_ONLY:
            named.append(parameter.name)
        elif is_needed and parameter.kind is not parameter.VAR_POSITIONAL:
            raise ExperimentError(
                f"{called} needs {parameter.name!r}, but only {', '.join(known)} are passed, "
                f"by keyword{suggest_nearest(parameter.name, known)}"
                f"{FOR_DATA if parameter.name == 'data' else ''}"
            )
    return tuple(dict.fromkeys([*SETTING, *named])) if takes_all else tuple(named)
