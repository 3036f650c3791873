"""Random search."""

from collections import deque

from hpobench_ordered._typing import Config
from hpobench_ordered.methods.base import Method, MethodKind, MethodSpec

DRAWN_TOGETHER = 25
"""Number of configurations drawn together, which is much faster than one by one."""


class RandomSearch(Method):
    """Draws every configuration uniformly (log-uniformly on log scales), independently."""

    def prepare(self) -> None:
        """Start with nothing drawn."""
        self._drawn = deque[Config]()

    def ask(self) -> Config:
        """Return a random configuration, one of a block that is drawn together, which is faster."""
        if not self._drawn:
            unit = self.space.sample_unit(self.rng, DRAWN_TOGETHER)
            self._drawn = deque(self.space.configs(self.space.decode(unit)))
        return self._drawn.popleft()

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
        kind=MethodKind.WITHOUT_TRANSFER,
    ),
)
