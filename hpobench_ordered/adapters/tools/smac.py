"""SMAC3 as its documentation recommends it for hyperparameters: a random forest."""

import logging
import math
import tempfile

from ConfigSpace import Configuration
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType

from hpobench_ordered._typing import Config
from hpobench_ordered.adapters.tools.base import describe_method
from hpobench_ordered.methods.base import Method
from hpobench_ordered.user_methods._naming import SEED_LIMIT, pop_pending

logging.getLogger("smac").setLevel(logging.ERROR)


class SMAC(Method):
    """The facade for hyperparameter optimisation, by ask and tell, on the task by itself.

    SMAC uses the budget for the size of its initial design, a quarter of the trials.
    """

    def prepare(self) -> None:
        """Set up the facade, which writes its files to a folder that is removed with the method."""
        self._folder = tempfile.TemporaryDirectory(prefix="smac-")
        self._configspace = self.space.to_configspace()
        scenario = Scenario(
            self._configspace,
            deterministic=True,
            n_trials=self.budget,
            seed=int(self.rng.integers(SEED_LIMIT)),
            output_directory=self._folder.name,
        )
        self._facade = HyperparameterOptimizationFacade(
            scenario, _not_called, overwrite=True, logging_level=False
        )
        self._pending: list[tuple[Config, TrialInfo]] = []

    def ask(self) -> Config:
        """Suggest the next configuration."""
        info = self._facade.ask()
        values = self.space.row(dict(info.config))
        (config,) = self.space.configs(values[None])
        self._pending.append((config, info))
        return config

    def tell(self, config: Config, loss: float) -> None:
        """Tell a loss; one that is not finite as that of a crashed trial."""
        info = pop_pending(self._pending, config)
        if info is None:  # not asked for
            info = TrialInfo(Configuration(self._configspace, values=dict(config)), seed=0)
        is_finite = math.isfinite(loss)
        status = StatusType.SUCCESS if is_finite else StatusType.CRASHED
        self._facade.tell(info, TrialValue(cost=loss, status=status), save=False)


def _not_called(config: Configuration, seed: int = 0) -> float:
    """SMAC's target function, which it does not call when it is asked and told."""
    raise NotImplementedError


HPO = describe_method(
    "smac",
    SMAC,
    packages=["smac", "scikit-learn"],
    summary="SMAC3's facade for hyperparameter optimisation on each task by itself.",
)
