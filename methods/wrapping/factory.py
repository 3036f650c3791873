"""Wraps others' optimisers as methods: classes, functions that make them, Optuna's samplers."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from hpobench_ordered._typing import Config
from hpobench_ordered._wording import suggest_nearest
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.errors import ExperimentError, MethodError
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.methods.registry import list_methods, method_spec
from hpobench_ordered.methods.wrapping.importing import import_object
from hpobench_ordered.methods.wrapping.naming import (
    derive_name,
    is_sampler_class,
    pop_pending,
    read_summary,
)
from hpobench_ordered.space import SearchSpace

METHOD_ARGUMENTS = ("space", "rng", "history", "context", "budget")
"""Arguments that every method is created with."""
SEED = "seed"  # parameter of a factory that gets a seed drawn from `rng`
SEED_LIMIT = 2**31  # exclusive; all common random number generators accept smaller seeds
DATA_HINT = "; training data go to a subclass of hbo.Method, in a MethodSpec with uses_data"
"""Hint for a factory with a parameter `data`."""
IMPORT_MARK = ":"  # separates a module from the name to import from it

Ask = Callable[[], object]
Tell = Callable[[Any, float], object]


def as_method_spec(
    method: object,
    *,
    name: str | None = None,
    summary: str | None = None,
    version: str = "",
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
        version: What else decides what it suggests, beside its own files, such as "smac 2.4.1".
            With another version it is another method, and its runs are run again.
        min_history: Earlier tasks it needs.
        changed_spaces: Whether it supports a history on another search space; one that does not use
            the history does.

    The options are for classes and functions: a name or a `MethodSpec` has its own.

    Raises:
        UnknownNameError: No method of that name, or nothing to import.
        ExperimentError: It is not an optimiser; it is an object, which runs would share; it has no
            name or that of a registered method; or it requires an argument that is not passed.
        MissingExtraError: An Optuna sampler, and Optuna is not installed.
    """
    if isinstance(method, str):
        if not _is_import_path(method):
            return method_spec(method)
        method = import_object(method)

    if isinstance(method, MethodSpec):
        spec = method
    else:
        spec = _wrap_optimiser(
            method,
            name=name,
            summary=summary,
            version=version,
            min_history=min_history,
            changed_spaces=changed_spaces,
        )
    _check_name_is_free(spec)
    return spec


def _is_import_path(text: str) -> bool:
    """Whether a text says where to import a method, such as "file.py:Class"; else it is a name.

    Raises:
        ExperimentError: The text is a file, without the name of a method in the file.
    """
    if text.endswith(".py"):
        raise ExperimentError(f"{text!r} is a file; name the method in it, such as {text}:Mine")
    return IMPORT_MARK in text


def _check_name_is_free(spec: MethodSpec) -> None:
    """Raise an `ExperimentError` if another method is registered under the name of this one.

    The registered method itself may be passed, too.
    """
    if spec.name in list_methods() and method_spec(spec.name) != spec:
        raise ExperimentError(f"{spec.name!r} is the name of a registered method")


def _wrap_optimiser(
    optimiser: object,
    *,
    name: str | None,
    summary: str | None,
    version: str,
    min_history: int,
    changed_spaces: bool,
) -> MethodSpec:
    """Describe a class, or a function that makes optimisers, as a method.

    The arguments are described with `as_method_spec`. Whether the method uses the history is seen
    from whether the class or function has a parameter of that name.
    """
    _check_optimiser(optimiser)
    keywords = _list_keywords(optimiser)
    uses_history = "history" in keywords
    # A method that does not get the history need not care on which search space it is.
    changed_spaces = changed_spaces or not uses_history
    return MethodSpec(
        name=name or derive_name(optimiser),
        method=FromFactory(cast("Callable[..., object]", optimiser), keywords, version),
        summary=read_summary(optimiser) if summary is None else summary,
        source=version or "user",
        min_history=min_history,
        uses_history=uses_history,
        changed_spaces=changed_spaces,
    )


@dataclass(frozen=True)
class FromFactory:
    """Makes a method of what a class or function makes.

    It can be sent to other processes if the class or function can.

    Attributes:
        make: The class or function.
        keywords: Names, of `METHOD_ARGUMENTS` and `SEED`, that it is called with.
        version: See `as_method_spec`; part of what identifies a run.
    """

    make: Callable[..., object]
    keywords: tuple[str, ...]
    version: str = ""

    def __call__(
        self,
        *,
        space: SearchSpace,
        rng: np.random.Generator,
        history: Sequence[Evaluations],
        context: Mapping[str, float],
        budget: int,
    ) -> Method:
        """Make the method of one task: call the class or function, and wrap what it makes.

        Raises:
            MethodError: The class or function makes something without ask() and tell().
        """
        method_arguments: dict[str, Any] = {
            "space": space,
            "rng": rng,
            "history": history,
            "context": context,
            "budget": budget,
        }
        factory_arguments = {}
        for name in self.keywords:
            if name == SEED:
                # Drawn only if it is asked for, as a draw changes what `rng` returns afterwards.
                factory_arguments[name] = int(rng.integers(SEED_LIMIT))
            else:
                factory_arguments[name] = method_arguments[name]
        optimiser = self.make(**factory_arguments)
        return _wrap_as_method(optimiser, method_arguments)


def _wrap_as_method(optimiser: object, arguments: Mapping[str, Any]) -> Method:
    """Wrap what a user's class or function has made as a method; a method is returned as it is.

    Args:
        optimiser: An object with ask() and tell(), a pair of such functions, or an Optuna sampler.
        arguments: Arguments to make a method with, by `METHOD_ARGUMENTS`.

    Raises:
        MethodError: It is none of these.
    """
    if isinstance(optimiser, Method):
        return optimiser
    if is_sampler_class(type(optimiser)):
        # Imported only here, as Optuna may not be installed.
        from hpobench_ordered.methods.wrapping.optuna_method import OptunaMethod

        return OptunaMethod(**arguments).start_study(cast("Any", optimiser))
    method = AskTell(**arguments)
    method.ask_function, method.tell_function = _find_ask_and_tell(optimiser)
    return method


class AskTell(Method):
    """Wraps functions ask() and tell(config, loss).

    `ask` may return any mapping, such as a `ConfigSpace.Configuration`; `tell` gets the very object
    that `ask` returned.
    """

    ask_function: Ask
    tell_function: Tell

    def prepare(self) -> None:
        """Begin without configurations that were asked for and not told yet."""
        # Such configurations, as dicts, with the objects that `ask_function` returned for them.
        self._pending: list[tuple[Config, object]] = []

    def ask(self) -> Config:
        """Ask the wrapped optimiser for a configuration, and return it as a dict.

        A suggestion that is no mapping is returned as it is, and the runner refuses it.
        """
        suggestion = self.ask_function()
        is_other_mapping = isinstance(suggestion, Mapping) and not isinstance(suggestion, dict)
        if not is_other_mapping:
            return cast("Config", suggestion)
        # The mapping is stored, so that `tell` can pass it back instead of the dict.
        config = dict(cast("Mapping[str, Any]", suggestion))
        self._pending.append((config, suggestion))
        return config

    def tell(self, config: Config, loss: float) -> None:
        """Tell the wrapped optimiser a loss, with the very object that it has suggested."""
        suggestion = pop_pending(self._pending, config)
        if suggestion is None:  # nothing is stored for a suggestion that is a dict
            suggestion = config
        self.tell_function(suggestion, loss)


def _check_optimiser(optimiser: object) -> None:
    """Raise an `ExperimentError` unless a method can be made from what the user passed.

    It must be a class that makes optimisers, as `_check_class` checks, or a function.
    """
    if isinstance(optimiser, type):
        _check_class(optimiser)
    elif is_sampler_class(type(optimiser)) or _has_ask_and_tell(optimiser):
        raise _single_object_error(optimiser)
    elif not callable(optimiser):
        raise ExperimentError(
            "a method must be a name, a class with ask() and tell(config, loss), a function that "
            "makes an object with both or a pair of functions, or an Optuna sampler class, but got "
            f"{optimiser!r}"
        )


def _check_class(optimiser: type) -> None:
    """Raise an `ExperimentError` unless methods can be made from a class.

    It must be a subclass of `Method`, have functions `ask` and `tell`, or be a class of Optuna's
    samplers that takes a seed.
    """
    is_method = issubclass(optimiser, Method)
    if is_method or _has_ask_and_tell(optimiser):
        return
    if is_sampler_class(optimiser):
        if SEED not in inspect.signature(optimiser).parameters:
            raise ExperimentError(
                f"{optimiser.__name__} takes no seed; pass a function of a seed that makes it"
            )
        return

    missing_functions = []
    if not callable(getattr(optimiser, "ask", None)):
        missing_functions.append("ask()")
    if not callable(getattr(optimiser, "tell", None)):
        missing_functions.append("tell(config, loss)")
    missing = " and ".join(missing_functions)
    raise ExperimentError(f"the class {optimiser.__qualname__} has no {missing}")


def _single_object_error(optimiser: object) -> ExperimentError:
    """Make the error for an optimiser that was passed instead of its class.

    All runs would share the state of the optimiser.
    """
    class_name = type(optimiser).__name__
    return ExperimentError(
        f"{optimiser!r} is one object that all runs would share; pass its class {class_name}, "
        f"or with settings functools.partial({class_name}, ...)"
    )


def _has_ask_and_tell(optimiser: object) -> bool:
    """Whether a class or object has functions `ask` and `tell`."""
    has_ask = callable(getattr(optimiser, "ask", None))
    has_tell = callable(getattr(optimiser, "tell", None))
    return has_ask and has_tell


def _find_ask_and_tell(optimiser: object) -> tuple[Ask, Tell]:
    """Return the functions `ask` and `tell` of an object, or of a pair of functions.

    Raises:
        MethodError: The optimiser is neither an object with both functions nor a pair.
    """
    if _has_ask_and_tell(optimiser):
        with_both = cast("Any", optimiser)
        return with_both.ask, with_both.tell
    if isinstance(optimiser, tuple) and len(optimiser) == 2:
        ask, tell = optimiser
        if callable(ask) and callable(tell):
            return ask, tell
    raise MethodError(
        "a factory must return an object with ask() and tell(config, loss), a pair of functions "
        f"(ask, tell), or an Optuna sampler, but returned {optimiser!r}"
    )


def _list_keywords(factory: object) -> tuple[str, ...]:
    """List the names of the arguments with which a user's class or function is called.

    They are those of its parameters that are among `METHOD_ARGUMENTS` or `SEED`. If it takes any
    keyword (`**settings`), it gets all of `METHOD_ARGUMENTS`, but a seed only if it has a parameter
    of that name.

    Raises:
        ExperimentError: It requires an argument that is none of these.
    """
    available = (*METHOD_ARGUMENTS, SEED)
    keywords = []
    takes_any_keyword = False
    signature = inspect.signature(cast("Callable[..., object]", factory))
    for parameter in signature.parameters.values():
        is_required = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD:  # `**settings`
            takes_any_keyword = True
        elif parameter.name in available and parameter.kind is not parameter.POSITIONAL_ONLY:
            keywords.append(parameter.name)
        elif is_required and parameter.kind is not parameter.VAR_POSITIONAL:  # not `*values`
            raise _unavailable_argument_error(factory, parameter.name, available)

    if takes_any_keyword:
        # A dict keeps the first of several equal names, in order.
        unique_names = dict.fromkeys([*METHOD_ARGUMENTS, *keywords])
        return tuple(unique_names)
    return tuple(keywords)


def _unavailable_argument_error(
    factory: object, parameter: str, available: Sequence[str]
) -> ExperimentError:
    """Make the error for a class or function that requires an argument which is not available.

    Args:
        factory: The class or function.
        parameter: Name of the required argument.
        available: Names of the arguments that methods can get.
    """
    name = getattr(factory, "__qualname__", repr(factory))
    data_hint = DATA_HINT if parameter == "data" else ""  # how methods get training data
    return ExperimentError(
        f"{name} needs {parameter!r}, but only {', '.join(available)} are passed, "
        f"by keyword{suggest_nearest(parameter, available)}{data_hint}"
    )
