"""Random search."""

from collections import deque

from hpobench_ordered._typing import Config
from hpobench_ordered.methods.base import Method, MethodKind, MethodSpec

DRAWN_TOGETHER = 25
"""Number of configurations drawn together, which is much faster than one by one."""


class RandomSearch(Method):
    """Draws every configuration uniformly (log-uniformly on log scales), independently."""

    def prepare(self) -> None:
        """Start without configurations that were drawn in advance."""
        # Those that were drawn and not suggested yet.
        self._drawn = deque[Config]()

    def ask(self) -> Config:
        """Suggest a random configuration.

        `DRAWN_TOGETHER` configurations are drawn together, which is faster, and then suggested one
        by one.
        """
        if not self._drawn:
            unit = self.space.sample_unit(self.rng, DRAWN_TOGETHER)
            coded_values = self.space.decode(unit)
            self._drawn = deque(self.space.configs(coded_values))
        return self._drawn.popleft()

    def tell(self, config: Config, loss: float) -> None:
        """Ignore the loss, as suggestions do not depend on it."""


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
