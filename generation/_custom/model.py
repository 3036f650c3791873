"""The model of a custom benchmark: imported by name, built with a configuration's keywords."""

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType
from typing import Any

from hpobench_ordered._wording import suggest_allowed
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.files.writing import file_sha256
from hpobench_ordered.generation._custom.split import Kind

EXAMPLE = "sklearn.ensemble:RandomForestClassifier"


@dataclass(frozen=True, slots=True)
class Model:
    """A class or function that makes an estimator from keywords."""

    path: str
    fixed: Mapping[str, Any]
    version: str

    @classmethod
    def imported(cls, path: str, *, fixed: Mapping[str, Any], seed: int) -> "Model":
        """Import a model and determine its fixed keywords."""
        factory = _factory(path)
        known, _ = _keywords(factory)
        usual = {"random_state": seed, "n_jobs": 1}
        settled = {name: value for name, value in usual.items() if name in known} | dict(fixed)
        model = cls(path, settled, _version(path.partition(":")[0]))
        model.check_keywords(fixed)
        return model

    @property
    def name(self) -> str:
        """The class without its module."""
        return self.path.partition(":")[2]

    @property
    def key(self) -> str:
        """Package and class, such as "sklearn.SVC", wherever in the package the class is."""
        factory = _factory(self.path)
        return f"{factory.__module__.partition('.')[0]}.{factory.__name__}"

    def check_keywords(self, names: Iterable[str]) -> None:
        """Raise an UnknownNameError unless the model takes these keywords."""
        known, takes_any = _keywords(_factory(self.path))
        for name in names:
            if name not in known and not takes_any:
                raise UnknownNameError(f"keyword of {self.path}", name, known)

    def estimator(self, config: Mapping[str, Any]) -> Any:
        """Make the estimator of a configuration, which overrides fixed keywords."""
        return _factory(self.path)(**{**self.fixed, **config})


def kind_of_estimator(estimator: Any) -> Kind | None:
    """What an estimator predicts according to scikit-learn's metadata; None if unknown."""
    told = getattr(estimator, "_estimator_type", None)
    if told is None and hasattr(estimator, "__sklearn_tags__"):  # from scikit-learn 1.6 on
        told = estimator.__sklearn_tags__().estimator_type
    kinds = {"classifier": Kind.CLASSIFICATION, "regressor": Kind.REGRESSION}
    return kinds.get(str(told))


@cache
def _factory(path: str) -> Callable[..., Any]:
    name, colon, attribute = path.partition(":")
    if not (name and colon and attribute):
        near = f"; did you mean {':'.join(path.rsplit('.', 1))!r}?" if "." in path else ""
        raise ExperimentError(
            f"model must be MODULE:CLASS, such as {EXAMPLE}; got {path!r}{'' if colon else near}"
        )
    module = _module(name)
    factory: Callable[..., Any] | None = getattr(module, attribute, None)
    if factory is None:
        public = [n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))]
        raise UnknownNameError(f"class of the module {name}", attribute, public)
    if not callable(factory):
        raise ExperimentError(f"{path} is not a class or function that makes an estimator")
    return factory


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if not f"{name}.".startswith(f"{missing}."):
            raise ExperimentError(f"the module {name!r} needs {missing!r}: {error}") from error
        near = suggest_allowed(name, _neighbours(missing))
        hint = near if "did you mean" in near else "; is it installed, or a file in this folder?"
        raise ExperimentError(f"there is no module {name!r}{hint}") from error
    except Exception as error:  # the user's module may raise anything
        raise ExperimentError(
            f"the module {name!r} cannot be imported ({type(error).__name__}: {error})"
        ) from error


def _neighbours(missing: str) -> list[str]:
    """Names of modules in the package that lacks this one, or of all packages."""
    parent = missing.rpartition(".")[0]
    if not parent:
        return list(packages_distributions())
    modules = pkgutil.iter_modules(getattr(import_module(parent), "__path__", ()))
    return [f"{parent}.{module.name}" for module in modules]


def _version(module: str) -> str:
    package = import_module(module.partition(".")[0])
    version = getattr(package, "__version__", None)
    if isinstance(version, str):
        return version
    file = getattr(import_module(module), "__file__", None)
    return "unknown" if file is None else f"SHA-256 {file_sha256(Path(file))}"


def _keywords(factory: Callable[..., Any]) -> tuple[set[str], bool]:
    """Names of the keywords, and whether any others are accepted."""
    names: set[str] = set()
    for call in _calls(factory):
        parameters = inspect.signature(call).parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        names |= {p.name for p in parameters if p.kind in kinds and p.name != "self"}
        if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters):
            return names, False
    return names, True


def _calls(factory: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """The callables that take the keywords: a function, or initialisers of a class and bases."""
    if not isinstance(factory, type):
        yield factory
        return
    for base in factory.__mro__[:-1]:
        if "__init__" in vars(base):
            yield vars(base)["__init__"]
