"""What the methods of other tools share.

Notation:
    n   number of evaluations so far
    d   number of tunable hyperparameters
    p   number of model features
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.data.extras import Extra
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods._model_based import replace_failed_losses
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.methods.wrapping.factory import as_method_spec

EXTRA = "compare"


def describe_method(
    name: str,
    method: Callable[..., object],
    *,
    packages: Sequence[str],
    summary: str,
    uses_history: bool = False,
    extras: tuple[Extra, ...] = (),
) -> MethodSpec:
    """Describe the method of a tool.

    Args:
        name: Its name in results.
        method: A subclass of `Method`, or whatever `as_method_spec` takes.
        packages: The packages that determine its suggestions, by their names on PyPI. Their
            versions are part of what identifies a run.
        summary: One line.
        uses_history: Whether it uses evaluations of earlier tasks.
        extras: Packages without which its module can be imported, but the method cannot be made.
    """
    versions = ", ".join(f"{package} {_find_version(package)}" for package in packages)
    spec = as_method_spec(method, name=name, summary=summary, version=versions)
    return replace(spec, uses_history=uses_history, extras=extras)


def _find_version(package: str) -> str:
    """The installed version of a package; "(not installed)" if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def list_best_configs(history: Sequence[Evaluations], most: int) -> list[Config]:
    """The best configuration of each of the last tasks, the latest task first, each one once.

    A task of which all evaluations failed has none.

    Args:
        history: Evaluations of earlier tasks, oldest first.
        most: Number of tasks at most.
    """
    configs: list[Config] = []
    for evaluations in reversed(history[-most:]):
        config = evaluations.best
        if config is not None and config not in configs:
            configs.append(config)
    return configs


class ModelWithoutRepeats(Method):
    """Random initial trials, drawn as random search does, then what a model suggests.

    No configuration is suggested twice: a model ranks several, and where all have been tried a
    random one is suggested. `fallbacks` counts these, and models that could not be fitted. For the
    model, an evaluation that failed has the largest finite loss.
    """

    random_trials = 3

    def prepare(self) -> None:
        """Begin without evaluations."""
        self._tried: set[bytes] = set()  # coded configurations
        self._features: list[FloatArray] = []  # of each evaluation, (p,)
        self._losses: list[float] = []

    def ask(self) -> Config:
        """Suggest the most promising configuration that was not tried yet, or a random one."""
        if len(self._losses) < self.random_trials:
            return self._draw_untried()

        losses = replace_failed_losses(np.array(self._losses))
        candidates = self.rank_candidates(np.array(self._features), losses)
        for unit in candidates:
            values = self.space.decode(unit[None])
            if values.tobytes() not in self._tried:
                (config,) = self.space.configs(values)
                return config

        self.fallbacks += 1
        return self._draw_untried()

    def tell(self, config: Config, loss: float) -> None:
        """Keep a configuration, its features and its loss for the model."""
        values = self.space.row(config)[None]
        self._tried.add(values.tobytes())
        self._features.append(self.space.features(self.space.encode(values))[0])
        self._losses.append(loss)

    @abstractmethod
    def rank_candidates(self, features: FloatArray, losses: FloatArray) -> Iterable[FloatArray]:
        """Yield canonical unit vectors (d,), the most promising first; features are (n, p)."""

    def _draw_untried(self) -> Config:
        """Draw an untried configuration, or a tried one where untried ones are rare."""
        for _ in range(100):
            config = self.space.sample(self.rng)
            if self.space.row(config).tobytes() not in self._tried:
                break
        return config
