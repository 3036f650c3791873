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

from hpobench_ordered._wording import suggest_nearest
from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.generation._custom.split import PredictionKind

EXAMPLE = "sklearn.ensemble:RandomForestClassifier"


@dataclass(frozen=True, slots=True)
class Model:
    """A class or function that makes an estimator from keywords.

    Attributes:
        path: MODULE:CLASS.
        fixed: Keywords that have the same value in all configurations.
        version: Version of its package, or the hash of its file.
    """

    path: str
    fixed: Mapping[str, Any]
    version: str

    @classmethod
    def from_path(cls, path: str, *, fixed: Mapping[str, Any], seed: int) -> "Model":
        """Import a model from MODULE:CLASS.

        Args:
            path: The module and the class.
            fixed: Keywords that are the same for all configurations. Where the class has them,
                scikit-learn's keywords of the seed and of the number of jobs are fixed, too.
            seed: The seed, unless `fixed` has another.
        """
        keywords, _ = _list_keywords(_import_factory(path))
        fixed_by_default = {"random_state": seed, "n_jobs": 1}
        supported = {name: value for name, value in fixed_by_default.items() if name in keywords}

        module, _, _ = path.partition(":")
        model = cls(path, supported | dict(fixed), _find_version(module))
        model.check_keywords(fixed)
        return model

    @property
    def name(self) -> str:
        """The class without its module."""
        return self.path.partition(":")[2]

    @property
    def key(self) -> str:
        """Package and class, such as "sklearn.SVC", wherever in the package the class is."""
        factory = _import_factory(self.path)
        package, _, _ = factory.__module__.partition(".")
        return f"{package}.{factory.__name__}"

    def check_keywords(self, names: Iterable[str]) -> None:
        """Raise an UnknownNameError unless the model takes these keywords."""
        keywords, takes_others = _list_keywords(_import_factory(self.path))
        for name in names:
            if name not in keywords and not takes_others:
                raise UnknownNameError(f"keyword of {self.path}", name, keywords)

    def make_estimator(self, config: Mapping[str, Any]) -> Any:
        """Make the estimator of a configuration, which overrides fixed keywords."""
        return _import_factory(self.path)(**{**self.fixed, **config})


def infer_kind_of_estimator(estimator: Any) -> PredictionKind | None:
    """What an estimator predicts according to scikit-learn's metadata; None if unknown."""
    estimator_type = getattr(estimator, "_estimator_type", None)
    if estimator_type is None and hasattr(estimator, "__sklearn_tags__"):  # since scikit-learn 1.6
        estimator_type = estimator.__sklearn_tags__().estimator_type

    kinds = {"classifier": PredictionKind.CLASSIFICATION, "regressor": PredictionKind.REGRESSION}
    return kinds.get(str(estimator_type))


@cache
def _import_factory(path: str) -> Callable[..., Any]:
    """Import the class or function MODULE:CLASS."""
    module_name, colon, attribute = path.partition(":")
    if not module_name or not attribute:
        hint = ""
        if "." in path and not colon:  # MODULE.CLASS
            module_name, _, class_name = path.rpartition(".")
            suggestion = f"{module_name}:{class_name}"
            hint = f"; did you mean {suggestion!r}?"
        raise ExperimentError(f"model must be MODULE:CLASS, such as {EXAMPLE}; got {path!r}{hint}")

    module = _import_module(module_name)
    factory: Callable[..., Any] | None = getattr(module, attribute, None)
    if factory is None:
        public_names = [name for name in dir(module) if not name.startswith("_")]
        callables = [name for name in public_names if callable(getattr(module, name))]
        raise UnknownNameError(f"class of the module {module_name}", attribute, callables)
    if not callable(factory):
        raise ExperimentError(f"{path} is not a class or function that makes an estimator")
    return factory


def _import_module(name: str) -> ModuleType:
    """Import a user's module; an `ExperimentError` tells why that fails."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # Missing is this module, a package that holds it, or another module that it imports. In the
        # first two cases this module's name begins with the missing one's, up to a dot or its end.
        missing = error.name or name
        is_itself_missing = f"{name}.".startswith(f"{missing}.")
        if not is_itself_missing:
            raise ExperimentError(f"the module {name!r} needs {missing!r}: {error}") from error

        misspelling = suggest_nearest(name, _list_sibling_modules(missing))
        hint = misspelling or "; is it installed, or a file in this folder?"
        raise ExperimentError(f"there is no module {name!r}{hint}") from error
    except Exception as error:  # the user's module may raise anything
        raise ExperimentError(
            f"the module {name!r} cannot be imported ({type(error).__name__}: {error})"
        ) from error


def _list_sibling_modules(missing: str) -> list[str]:
    """List the modules whose names may have been meant by the name of a missing one.

    These are the modules of its package or, if a package itself is missing, all packages. For
    "sklearn.ensembel" they are "sklearn.ensemble" and the others in sklearn.
    """
    parent, _, _ = missing.rpartition(".")
    if not parent:  # a package itself is missing
        return list(packages_distributions())
    folders_of_package = getattr(import_module(parent), "__path__", ())
    modules = pkgutil.iter_modules(folders_of_package)
    return [f"{parent}.{module.name}" for module in modules]


def _find_version(module: str) -> str:
    """Version of a module's package; without one, the hash of the module's file."""
    package, _, _ = module.partition(".")
    version = getattr(import_module(package), "__version__", None)
    if isinstance(version, str):
        return version

    file = getattr(import_module(module), "__file__", None)
    return "unknown" if file is None else f"SHA-256 {hash_file(Path(file))}"


def _list_keywords(factory: Callable[..., Any]) -> tuple[set[str], bool]:
    """List the names of a factory's keywords, and tell whether it accepts any others."""
    keyword_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names: set[str] = set()
    for function in _iter_initialisers(factory):
        parameters = inspect.signature(function).parameters.values()
        keywords = {parameter.name for parameter in parameters if parameter.kind in keyword_kinds}
        names |= keywords - {"self"}

        # An initialiser without **kwargs passes nothing on to those of the bases.
        has_var_keyword = inspect.Parameter.VAR_KEYWORD in {p.kind for p in parameters}
        if not has_var_keyword:
            return names, False
    return names, True


def _iter_initialisers(factory: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Iterate over what takes the keywords: a function, or `__init__` of a class and its bases."""
    if not isinstance(factory, type):
        yield factory
        return
    *classes, _ = factory.__mro__  # the last one is object
    for base in classes:
        if "__init__" in vars(base):
            yield vars(base)["__init__"]
