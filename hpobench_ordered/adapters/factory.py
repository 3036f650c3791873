"""Optimisers that are no `Method`: classes with ask and tell, and functions that make them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hpobench_ordered._typing import Config
from hpobench_ordered.adapters._identity import identity_of
from hpobench_ordered.adapters._pending import Pending
from hpobench_ordered.adapters.importing import import_object
from hpobench_ordered.errors import ExperimentError, MethodError, suggestion
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from hpobench_ordered.benchmark import Evaluations

SETTING = ("space", "rng", "history", "context", "budget")
"""What every method is made with."""
SEED = "seed"
"""Drawn from `rng` for a factory that names it."""
SEEDS = 2**31
"""Seeds are below this, which all random number generators take."""


def as_spec(
    given: object,
    *,
    name: str | None = None,
    summary: str | None = None,
    min_history: int = 0,
    changed_spaces: bool = False,
) -> MethodSpec:
    """Describe any optimiser as a method.

    Args:
        given: A class with `ask()` and `tell(config, loss)`; or a function that makes an object
            with both, or a pair of functions (ask, tell); or an Optuna sampler class, or a function
            of a `seed` that makes a sampler. Classes and functions are called with those of
            `space`, `rng`, `history`, `context`, `budget` and `seed` that they have a parameter
            for, anew for every task. Or the text "module:name" or "file.py:name" of one.
        name: Its name; without, that of the class or function.
        summary: One line; without, the first of its docstring.
        min_history: Earlier tasks it needs.
        changed_spaces: Whether it copes with a history on another search space.

    Raises:
        ExperimentError: It is no optimiser; it is an object, which runs would share; it has no name
            and none is given; or it needs what no method is given.
        MissingExtraError: An Optuna sampler without Optuna's extra.
    """
    if isinstance(given, str):
        given = import_object(given)
    if isinstance(given, MethodSpec):
        return given
    _refuse_objects(given)
    line = summary if summary is not None else first_line_of(given)
    if isinstance(given, type) and is_sampler_class(given):
        from hpobench_ordered.adapters.optuna import optuna_method

        return replace(optuna_method(given, name=name), summary=line, min_history=min_history)
    if isinstance(given, type) and issubclass(given, Method):
        factory: Any = given
    else:
        factory = FromFactory(cast("Callable[..., object]", given), _keywords(given))
    return MethodSpec(
        name=name or name_of(given),
        method=factory,
        summary=line,
        source="user",
        min_history=min_history,
        changed_spaces=changed_spaces,
    )


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

    @property
    def identity(self) -> str:
        """Source, settings and library versions of what is wrapped; "" where unknown."""
        return identity_of(self.make)

    def __call__(
        self,
        *,
        space: SearchSpace,
        rng: np.random.Generator,
        history: "Sequence[Evaluations]",
        context: Mapping[str, float],
        budget: int,
    ) -> Method:
        """Make the method of one task.

        Raises:
            MethodError: What was made can be neither asked nor told.
        """
        setting = dict(zip(SETTING, (space, rng, history, context, budget), strict=True))
        if SEED in self.keywords:
            setting[SEED] = draw_seed(rng)
        made = self.make(**{name: setting[name] for name in self.keywords})
        if isinstance(made, Method):
            return made
        if is_sampler_class(type(made)):
            from hpobench_ordered.adapters.optuna import OptunaMethod

            return OptunaMethod(
                sampler=made, space=space, rng=rng, history=history, context=context, budget=budget
            )
        ask, tell = _ask_and_tell(made)
        return AskTell(
            ask=ask,
            tell=tell,
            space=space,
            rng=rng,
            history=history,
            context=context,
            budget=budget,
        )


class AskTell(Method):
    """Asks and tells somebody else's optimiser.

    What it suggests may be any mapping, such as ConfigSpace's `Configuration`; it is told the very
    object that it suggested.

    Args:
        ask: Suggests a configuration.
        tell: Takes a configuration and its loss.
    """

    def __init__(
        self,
        *,
        ask: Callable[[], object],
        tell: Callable[[Any, float], object],
        space: SearchSpace,
        rng: np.random.Generator,
        history: "Sequence[Evaluations]",
        context: Mapping[str, float],
        budget: int,
    ) -> None:
        super().__init__(space=space, rng=rng, history=history, context=context, budget=budget)
        self._ask, self._tell = ask, tell
        self._pending: Pending[object] = Pending()

    def ask(self) -> Config:
        """Ask for a configuration; what is no mapping is left for the runner to refuse."""
        asked = self._ask()
        if isinstance(asked, dict) or not isinstance(asked, Mapping):
            return cast("Config", asked)
        config = dict(asked)
        self._pending.add(config, asked)
        return config

    def tell(self, config: Config, loss: float) -> None:
        """Tell the loss of a configuration."""
        asked = self._pending.take(config)
        self._tell(config if asked is None else asked, loss)


def name_of(given: object) -> str:
    """Name of a class or function: with its module, but for what is defined in a script.

    Raises:
        ExperimentError: It has none.
    """
    name = getattr(given, "__qualname__", None)
    if name is None or "<lambda>" in name:
        raise ExperimentError(
            f"{given!r} has no name that results could carry; give it one: "
            "hpobench_ordered.adapters.as_spec(..., name='mine')"
        )
    module = getattr(given, "__module__", "__main__")
    return str(name) if module == "__main__" else f"{module}.{name}"


def first_line_of(given: object) -> str:
    """First line of the docstring of a class or function; "" where it has none."""
    has_own = isinstance(given, type) or hasattr(given, "__qualname__")
    return (given.__doc__ or "").strip().partition("\n")[0] if has_own else ""


def draw_seed(rng: np.random.Generator) -> int:
    """Draw a seed for somebody else's random number generator."""
    return int(rng.integers(SEEDS))


def is_sampler_class(kind: type) -> bool:
    """Whether a class is an Optuna sampler, told without importing Optuna."""
    return any(
        base.__name__ == "BaseSampler" and base.__module__.startswith("optuna.samplers")
        for base in kind.__mro__
    )


# -- internals -------------------------------------------------------------------------------------


def _refuse_objects(given: object) -> None:
    """Refuse what is shared by all runs, or cannot be asked and told.

    Raises:
        ExperimentError: As it says.
    """
    kind = type(given)
    if isinstance(given, type):
        if not (_is_asked_and_told(given) or is_sampler_class(given)):
            raise ExperimentError(
                f"the class {given.__qualname__} has no ask() and tell(config, loss)"
            )
    elif is_sampler_class(kind):
        raise ExperimentError(
            f"{kind.__name__}(...) is one sampler that all runs would share; pass the class "
            f"{kind.__name__}, or with settings hpobench_ordered.adapters.as_spec(lambda seed: "
            f"{kind.__name__}(seed=seed, ...), name='mine')"
        )
    elif _is_asked_and_told(given):
        raise ExperimentError(
            f"{given!r} is one object that all runs would share; pass its class {kind.__name__}, "
            "or with settings hpobench_ordered.adapters.as_spec(lambda space, rng: "
            f"{kind.__name__}(...), name='mine')"
        )
    elif not callable(given):
        raise ExperimentError(
            "a method is a name, a class with ask() and tell(config, loss), a function that makes "
            f"an object with both or a pair of functions, or an Optuna sampler class; got {given!r}"
        )


def _is_asked_and_told(thing: object) -> bool:
    return callable(getattr(thing, "ask", None)) and callable(getattr(thing, "tell", None))


def _ask_and_tell(made: object) -> tuple[Callable[[], object], Callable[[Any, float], object]]:
    if _is_asked_and_told(made):
        return cast("Any", made).ask, cast("Any", made).tell
    if isinstance(made, tuple) and len(made) == 2 and all(map(callable, made)):
        return made
    raise MethodError(
        "a factory makes an object with ask() and tell(config, loss), a pair of functions (ask, "
        f"tell), or an Optuna sampler; this one made {made!r}"
    )


def _keywords(given: object) -> tuple[str, ...]:
    """Names of what a class or function is called with.

    Raises:
        ExperimentError: It needs what no method is given, or its parameters cannot be known.
    """
    known = (*SETTING, SEED)
    called = getattr(given, "__qualname__", repr(given))
    try:
        parameters = inspect.signature(cast("Callable[..., object]", given)).parameters.values()
    except (TypeError, ValueError):
        raise ExperimentError(
            f"the parameters of {called} cannot be known; wrap it in a function that names those "
            f"it needs, of {', '.join(known)}"
        ) from None
    named, takes_all = [], False
    for parameter in parameters:
        is_needed = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_all = True
        elif parameter.name in known and parameter.kind is not parameter.POSITIONAL_ONLY:
            named.append(parameter.name)
        elif is_needed and parameter.kind is not parameter.VAR_POSITIONAL:
            raise ExperimentError(
                f"{called} needs {parameter.name!r}, but is called by keyword with those of "
                f"{', '.join(known)} that it names{_near(parameter.name)}"
            )
    return tuple(dict.fromkeys([*SETTING, *named])) if takes_all else tuple(named)


def _near(name: str) -> str:
    """Name the nearest of what a factory may take, if one is near."""
    hint = suggestion(name, (*SETTING, SEED))
    return hint if "did you mean" in hint else ""
