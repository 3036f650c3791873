"""Random search."""

from hpobench_ordered._typing import Config
from hpobench_ordered.methods.base import Method, MethodSpec


class RandomSearch(Method):
    """Draws every configuration uniformly (log-uniformly on log scales), independently."""

    def ask(self) -> Config:
        """Draw a configuration."""
        return self.space.sample(self.rng)

    def tell(self, config: Config, loss: float) -> None:
        """Ignore the result."""


SPECS = (
    MethodSpec(
        name="random-search",
        method=RandomSearch,
        summary="Configurations drawn uniformly at random.",
        source="Bergstra and Bengio (2012); Hellan et al. (2023), section 5.1",
        uses_history=False,
        changed_spaces=True,
    ),
)
