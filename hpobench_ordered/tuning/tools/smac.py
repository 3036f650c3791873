"""SMAC3 as its documentation recommends it for hyperparameters: a random forest."""

import logging
import math
import tempfile
from collections.abc import Iterable
from typing import Any

from ConfigSpace import Configuration

from hpobench_ordered._typing import Config
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.wrapping.factory import SEED_LIMIT
from hpobench_ordered.methods.wrapping.naming import pop_pending
from hpobench_ordered.tuning.tools.base import EXTRA, describe_method

try:
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.acquisition.maximizer.local_search import LocalSearch
    from smac.main.exceptions import ConfigurationSpaceExhaustedException
    from smac.runhistory.dataclasses import TrialInfo, TrialValue
    from smac.runhistory.enumerations import StatusType
except ImportError as error:
    raise MissingExtraError("smac", extra=EXTRA, purpose="smac") from error

logging.getLogger("smac").setLevel(logging.ERROR)


class LocalSearchInOrder(LocalSearch):  # type: ignore[misc]  # SMAC has no types
    """SMAC's local search, with its start points in the same order in each process.

    They come from a set, whose order depends on hashes of text, which differ between processes.
    """

    def _get_init_points_from_previous_configs(self, *args: Any) -> list[Configuration]:
        """Sort the start points by the bytes of their vectors; any fixed order would do."""
        points = super()._get_init_points_from_previous_configs(*args)
        return sorted(points, key=lambda config: config.get_array().tobytes())


class SMAC(Method):
    """The facade for hyperparameter optimisation, by ask and tell, on the task by itself.

    SMAC uses the budget for the size of its initial design, a quarter of the trials. It suggests
    no configuration twice; after all that there are, random ones are suggested, and counted by
    `fallbacks`.
    """

    def prepare(self) -> None:
        """Set up SMAC's facade.

        The facade writes files while it is set up, but not later: the folder is deleted at the end.
        """
        self._configspace = self.space.to_configspace()
        seed = int(self.rng.integers(SEED_LIMIT))
        with tempfile.TemporaryDirectory(prefix="smac-") as folder:
            scenario = Scenario(
                self._configspace,
                deterministic=True,
                n_trials=self.budget,
                seed=seed,
                output_directory=folder,
            )
            maximizer = HyperparameterOptimizationFacade.get_acquisition_maximizer(scenario)
            maximizer._local_search = LocalSearchInOrder(self._configspace, seed=seed)
            self._facade = HyperparameterOptimizationFacade(
                scenario,
                _not_called,
                acquisition_maximizer=maximizer,
                overwrite=True,
                logging_level=False,
            )

        # Suggestions without a result, each with SMAC's object for it.
        self._pending: list[tuple[Config, TrialInfo]] = []
        self._failed: list[TrialInfo] = []
        self._largest_loss: float | None = None  # the largest finite one

    def ask(self) -> Config:
        """Suggest the next configuration, or a random one if SMAC has suggested all."""
        try:
            info = self._facade.ask()
        except (ConfigurationSpaceExhaustedException, StopIteration):
            self.fallbacks += 1
            return self.space.sample(self.rng)

        values = self.space.row(dict(info.config))
        (config,) = self.space.configs(values[None])
        self._pending.append((config, info))
        return config

    def tell(self, config: Config, loss: float) -> None:
        """Tell SMAC the loss of a configuration.

        A trial whose loss is not finite has failed. SMAC is told that it has crashed. As SMAC's
        model is fitted to crashed trials as well, they need a finite cost, for which the largest
        finite loss so far is taken.
        """
        info = pop_pending(self._pending, config)
        if info is None:  # not asked for
            info = TrialInfo(Configuration(self._configspace, values=dict(config)), seed=0)

        if not math.isfinite(loss):
            self._failed.append(info)
            self._tell_crashed([info])
            return

        self._facade.tell(info, TrialValue(cost=loss), save=False)
        is_largest = self._largest_loss is None or loss > self._largest_loss
        if is_largest:
            self._largest_loss = loss
            # Failed trials would now look better than this one: they get the new cost instead.
            self._tell_crashed(self._failed)

    def _tell_crashed(self, trials: Iterable[TrialInfo]) -> None:
        """Tell SMAC that trials have crashed, with the largest finite loss so far as their cost.

        Before the first finite loss, the cost is 0. A trial that is told again gets the new cost.
        """
        cost = 0.0 if self._largest_loss is None else self._largest_loss
        for info in trials:
            value = TrialValue(cost=cost, status=StatusType.CRASHED)
            self._facade.tell(info, value, save=False)


def _not_called(config: Configuration, seed: int = 0) -> float:
    """SMAC's target function, which it does not call when it is asked and told."""
    raise NotImplementedError


HPO = describe_method(
    "smac",
    SMAC,
    packages=["smac", "scikit-learn"],
    summary="SMAC3's facade for hyperparameter optimisation on each task by itself.",
)
