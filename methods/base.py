"""Interface of the methods: optimisers of one task, used by ask and tell."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from hpobench_ordered._typing import Config
from hpobench_ordered.data.citations import format_bibtex
from hpobench_ordered.data.extras import Extra
from hpobench_ordered.data.names import check_name
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    import numpy as np

    from hpobench_ordered.data.history import Evaluations
    from hpobench_ordered.data.task_data import TaskData


class Method(ABC):
    """An optimiser of one task.

    A new object is made for every task of a run; override `prepare` for its setup. Losses are
    minimised: the runner changes the sign of objectives that are maximised. All random numbers
    must come from `rng`.

    Attributes:
        space: The search space.
        rng: Source of all randomness.
        history: Evaluations of earlier tasks as the protocol provides them, oldest first.
        context: What is known of the task beforehand.
        budget: Number of trials.
        data: Training data of each task of the history and, last, of the current task, None for
            tasks without; empty if the method does not ask for them (`MethodSpec.uses_data`).
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
        """Store the arguments, described with the class, and call `prepare`."""
        self.space = space
        self.rng = rng
        self.history = history
        self.context = context
        self.budget = budget
        self.data = data
        self.fallbacks = 0  # suggestions made at random because a model failed
        self.prepare()

    def prepare(self) -> None:  # noqa: B027  methods need not
        """Set up the method before the first suggestion; called once. Default: nothing."""

    @abstractmethod
    def ask(self) -> Config:
        """Suggest the next configuration to evaluate; constants may be left out."""

    @abstractmethod
    def tell(self, config: Config, loss: float) -> None:
        """Learn the loss of a configuration that was asked for; lower is better."""


class MethodFactory(Protocol):
    """Callable that makes a method for each task: a subclass of `Method`, or a wrapper."""

    def __call__(
        self,
        *,
        space: SearchSpace,
        rng: "np.random.Generator",
        history: "Sequence[Evaluations]",
        context: Mapping[str, float],
        budget: int,
    ) -> Method:
        """Make the method; the arguments are attributes of `Method`.

        `data` is passed only if the spec has `uses_data`.
        """
        ...


class MethodKind(Enum):
    """What a method uses besides the trials of its task; lists of methods are grouped by it."""

    ANY_HISTORY = "Earlier tasks, whether their order matters or not"
    ORDERED = "Earlier tasks in order"
    UNORDERED = "Earlier tasks in any order"
    CHANGED_SPACE = "A changed search space"
    WITHOUT_TRANSFER = "Without transfer"
    NETWORK = "Networks"
    TRAINING_DATA = "The tasks' training data, and baselines without them"


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """Description of a method for the registry.

    Attributes:
        name: Name in the registry.
        method: The class, or another callable that makes the method for each task.
        summary: One line.
        source: Paper, section and settings.
        min_history: Number of earlier tasks that the method needs; on tasks with fewer, the ordered
            protocol runs `bo` instead, and other protocols refuse it.
        uses_history: Whether it uses the history; if not, giving it one causes a warning.
        changed_spaces: Whether it accepts a history on another search space than the task's
            (`Evaluations.space`), even if it ignores it.
        extras: Extras that must be installed.
        uses_data: Whether it gets the training data of the tasks, as `data`.
        kind: The group in which lists show it.
        uses_context: Whether it is meant for tasks with contexts, from which it models how alike
            they are.
        version: Version of the method's suggestions, part of a run's identity: raised when its
            golden trajectory changes.

    Raises:
        ValueError: The version is below 1.
        InvalidNameError: The name is not printable, or cannot be part of a file name.

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
    kind: MethodKind = MethodKind.UNORDERED
    uses_context: bool = False
    version: int = 1

    def __post_init__(self) -> None:
        """Check the name, which must be printable and fit a file name, and the version."""
        check_name("method", self.name)
        # In Python, True and False are integers.
        is_integer = isinstance(self.version, int) and not isinstance(self.version, bool)
        if not is_integer or self.version < 1:
            raise ValueError(
                f"version of {self.name!r} must be an integer from 1, but got {self.version!r}"
            )

    @property
    def bibtex(self) -> str:
        """The BibTeX entries of what to cite: the papers that `source` names, and this package."""
        return format_bibtex(self.source)

    @property
    def needs(self) -> tuple[str, ...]:
        """What it needs, in words, such as ("2 earlier tasks", "extra neural"); () if nothing."""
        needs = []
        if self.min_history:
            noun = "task" if self.min_history == 1 else "tasks"
            needs.append(f"{self.min_history} earlier {noun}")
        if self.kind is MethodKind.ORDERED:
            needs.append("tasks in order")
        if self.uses_context:
            needs.append("contexts")
        if self.uses_data:
            needs.append("training data")
        needs.extend(f"extra {extra.name}" for extra in self.extras)
        return tuple(needs)

    def check_installed(self) -> None:
        """Check that the extras, the optional dependencies that the method needs, are installed.

        Raises:
            MissingExtraError: One of them is not.
        """
        for extra in self.extras:
            extra.check(f"method {self.name!r}")
