"""Options for the history: a table in a file, or studies in an Optuna storage."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpobench_ordered.adapters._rows import number_of
from hpobench_ordered.adapters.history import history_from_frame
from hpobench_ordered.cli._files import INPUT, table_of
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.errors import EvaluationsError, ExperimentError, UnknownNameError
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from pandas import DataFrame

_OPTIONS = (
    click.option(
        "--history", type=INPUT, help="CSV of earlier tasks, oldest first, one row per trial."
    ),
    click.option("--task", metavar="COLUMN", help="Column of --history that names the task."),
    click.option("--objective", metavar="COLUMN", help="Column of the objective in CSV files."),
    click.option(
        "--storage",
        metavar="URL",
        help="Instead of --history: the storage of Optuna's studies, such as sqlite:///tuning.db.",
    ),
    click.option(
        "--studies",
        metavar="PATTERN",
        help="Studies in --storage that are earlier tasks, such as 'churn-*'.  [default: all]",
    ),
    click.option(
        "--rename",
        multiple=True,
        metavar="OLD=NEW",
        help="Name of a hyperparameter in the earlier tasks, and its name now. Repeat.",
    ),
    click.option("--drop-invalid", is_flag=True, help="Leave out earlier trials that are invalid."),
    click.option(
        "--clip",
        is_flag=True,
        help="Move earlier numbers that are out of range to the nearest bound.",
    ),
)


@dataclass(frozen=True)
class Earlier:
    """Values of the options of the history."""

    history: Path | None
    task: str | None
    objective: str | None
    storage: str | None
    studies: str | None
    rename: Sequence[str]
    drop_invalid: bool
    clip: bool

    def read(
        self, space: SearchSpace, direction: str, *, context: Mapping[str, float]
    ) -> tuple[Evaluations, ...]:
        """Read the history, empty without options; contexts have the names of `context`."""
        if self.storage is not None and (self.history is not None or context):
            raise click.UsageError("--storage cannot be combined with --history or --context")
        if self.storage is None and self.studies is not None:
            raise click.UsageError("--studies needs --storage")
        is_empty = self.storage is None and self.history is None
        if is_empty and (self.rename or self.drop_invalid or self.clip):
            raise click.UsageError(
                "--rename, --drop-invalid and --clip need --history or --storage"
            )
        how: dict[str, Any] = {"drop_invalid": self.drop_invalid, "clip": self.clip}
        how["rename"] = pairs(self.rename, "--rename", "OLD=NEW")
        if self.storage is not None:
            from hpobench_ordered.adapters import history_from_storage

            return history_from_storage(self.storage, self.studies or "*", space=space, **how)
        if self.history is None:
            return ()
        if self.task is None or self.objective is None:
            raise click.UsageError("--history needs --task COLUMN and --objective COLUMN")
        table = table_of(self.history)
        if context:
            how["contexts"] = _contexts(table, self.task, context, self.history)
        return history_from_frame(
            table.drop(columns=[*context], errors="ignore"),
            space,
            objective=self.objective,
            direction=direction,
            task=self.task,
            **how,
        )


def earlier_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the history to a command, as its argument `earlier`."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        earlier = Earlier(**{name: given.pop(name) for name in Earlier.__dataclass_fields__})
        command(earlier=earlier, **given)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def pairs(words: Sequence[str], option: str, form: str) -> dict[str, str]:
    """Read words such as NAME=VALUE, each name once."""
    read: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value) or name in read:
            raise ExperimentError(f"{option} must be {form}, each name once, but got {word!r}")
        read[name] = value
    return read


def _contexts(
    table: "DataFrame", task: str, context: Mapping[str, float], path: Path
) -> dict[str, dict[str, float]]:
    """The context of each earlier task from columns of the table, one number per task."""
    for name in (*context, task):
        if name not in table.columns:
            raise UnknownNameError(f"column of {path}", name, table.columns)
    contexts: dict[str, dict[str, float]] = {}
    for line, texts in table[[task, *context]].iterrows():
        numbers = {name: number_of(texts[name]) for name in context}
        known = contexts.setdefault(texts[task], {})
        for name, number in numbers.items():
            if not math.isfinite(number) or known.setdefault(name, number) != number:
                raise EvaluationsError(
                    f"column {name!r} of {path} must hold one number for each task, but "
                    f"{texts[task]!r} has {texts[name]!r} in line {line}"
                )
    return contexts
