"""What every method is: an optimiser of one task that is asked and told."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hpobench_ordered._typing import Config
from hpobench_ordered.core.extras import Extra
from hpobench_ordered.core.names import check_name
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    import numpy as np

    from hpobench_ordered.core.data import TaskData
    from hpobench_ordered.core.history import Evaluations


class Method(ABC):
    """An optimiser of one task.

    A new object is made for every task of a run; what it has to set up goes into `prepare`. Losses
    are minimised; the protocol flips objectives that are maximised. All randomness comes from
    `rng`.

    Attributes:
        space: The search space.
        rng: Source of all randomness.
        history: Evaluations of the earlier tasks the protocol lets the method see, oldest first.
        context: What is known of the task beforehand.
        budget: Number of trials.
        data: Training data of each task of the history, None where it has none, and last of the
            current task; empty for a method that does not ask for them (`MethodSpec.uses_data`).
        fallbacks: Number of suggestions made at random because a model failed.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> class Mine(hbo.Method):
        ...     def ask(self):
        ...         return self.space.sample(self.rng)
        ...
        ...     def tell(self, config, loss): ...
        >>> from hpobench_ordered.testing import check_method
        >>> check_method(Mine)
    """

    def __init__(
        self,
        *,
        space: SearchSpace,
        rng: "np.random.Generator",
        history: "Sequence[Evaluations]",
        context: Mapping[str, float],
        budget: int,
        data: "Sequence[TaskData | None]" = (),
    ) -> None:
        self.space = space
        self.rng = rng
        self.history = history
        self.context = context
        self.budget = budget
        self.data = data
        self.fallbacks = 0
        self.prepare()

    def prepare(self) -> None:  # noqa: B027  methods need not
        """Set up what the first suggestion needs; called once. Default: nothing."""

    @abstractmethod
    def ask(self) -> Config:
        """Suggest the next configuration to evaluate."""

    @abstractmethod
    def tell(self, config: Config, loss: float) -> None:
        """Learn the loss of a configuration that was asked for; lower is better."""


class MethodFactory(Protocol):
    """Makes a method anew for every task: a subclass of `Method`, or what wraps something else."""

    def __call__(
        self,
        *,
        space: SearchSpace,
        rng: "np.random.Generator",
        history: "Sequence[Evaluations]",
        context: Mapping[str, float],
        budget: int,
    ) -> Method:
        """Make it; the arguments are attributes of `Method`.

        `data` comes as well, where the spec says that the method looks at them.
        """
        ...


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """What the registry knows of a method.

    Attributes:
        name: Name in the registry.
        method: The class, or what else makes the method anew for every task.
        summary: One line.
        source: Paper, section and settings.
        min_history: Earlier tasks it needs; on tasks with fewer the ordered protocol runs `bo`
            instead, and other protocols refuse it.
        uses_history: Whether it looks at the history; if not, whoever gives it one is warned.
        changed_spaces: Whether it copes with a history on another search space than the task's
            (`Evaluations.space`), if only by ignoring it.
        extras: What must be installed first.
        uses_data: Whether it is made with the training data of the tasks, as `data`.
        version: Version of what the method suggests, part of what identifies a run: raised when
            the method's golden trajectory changes.

    Raises:
        ValueError: The version is below 1.
        InvalidNameError: The name cannot be printed, or not be part of a file's name.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> from hpobench_ordered.methods.random_search import RandomSearch
        >>> hbo.MethodSpec("mine", RandomSearch, "Draws at random.", "this page").min_history
        0
    """

    name: str
    method: MethodFactory
    summary: str
    source: str
    min_history: int = 0
    uses_history: bool = True
    changed_spaces: bool = False
    uses_data: bool = False
    extras: tuple[Extra, ...] = ()
    version: int = 1

    def __post_init__(self) -> None:
        check_name("method", self.name)
        if isinstance(self.version, bool) or not isinstance(self.version, int) or self.version < 1:
            raise ValueError(
                f"version of method {self.name!r} is {self.version!r}, not an integer from 1 on"
            )

    def check_installed(self) -> None:
        """Check that all that it needs is installed.

        Raises:
            MissingExtraError: Something is not.
        """
        for extra in self.extras:
            extra.check(f"method {self.name!r}")
