"""Tables of earlier tuning as history.

Results of experiments are read by `hpobench_ordered.experiment.history`, studies of Optuna by
`hpobench_ordered.adapters.optuna.studies`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from hpobench_ordered.adapters._rows import Reader, Remedies
from hpobench_ordered.adapters._tables import Columns, read_table
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.space.conversion import SpaceLike, to_search_space

if TYPE_CHECKING:
    from pandas import DataFrame

REMEDIES = Remedies(
    clip="clip=True",
    rename="`rename`",
    old_space="`space`, and the new one to `optimiser`",
)


def history_from_frame(
    frame: "DataFrame",
    space: SpaceLike,
    *,
    objective: str,
    direction: Direction | str,
    task: str,
    drop_invalid: bool = False,
    clip: bool = False,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Evaluations, ...]:
    """Read a table of earlier evaluations, one row each, as history.

    Columns are identified by name, not by order: the task, the objective, and native values of
    each hyperparameter; constants may be left out. Other columns are ignored, with a warning, as
    one of them may be a hyperparameter that the space lacks. A conditional hyperparameter may be
    empty where it is inactive; a value there is ignored. An empty objective marks an evaluation
    that failed. Numbers may be text, as pandas reads every cell of a column in which any is not a
    number.

    Args:
        frame: The table.
        space: The search space that the rows were evaluated on. The one to be tuned now may differ:
            `optimiser` takes that, and methods for changed spaces carry the evaluations over.
        objective: Column of the objective's value in its own units.
        direction: Whether the objective is minimised or maximised: "minimize", "maximize", or a
            `Direction`.
        task: Column of the task's name; tasks come in the order in which they first appear, which
            should be that of their time.
        drop_invalid: Leave out rows that cannot be used, and say in a warning how many, instead of
            rejecting the table.
        clip: Move numbers that are out of range to the nearest bound, and say in a warning how
            many, instead of treating their rows as invalid; not where all values of a task are out
            of range.
        contexts: Context of each task (numbers known before it is tuned), by its name.
        rename: New names of columns by their old ones, where the space has others, such as
            `{"learning_rate": "lr"}`.

    Returns:
        The evaluations of each task.

    Raises:
        EvaluationsError: A column is missing or repeated; its values are out of range, of another
            type, empty, or on another scale; a row repeats another; or a context is not as
            described. The message lists all of it by row and column.

    Warns:
        HistoryWarning: Rows are left out, numbers were moved, columns are ignored, or the tasks, by
            the numbers in their names, are not in order.

    Examples:
        >>> import pandas as pd
        >>> import hpobench_ordered as hbo
        >>> from ConfigSpace import ConfigurationSpace
        >>> frame = pd.DataFrame(
        ...     {"month": ["May", "May", "June"], "depth": [2, 7, 3], "error": [0.3, 0.4, None]}
        ... )
        >>> space = ConfigurationSpace({"depth": (1, 9)})
        >>> history = hbo.history_from_frame(
        ...     frame, space, objective="error", direction="minimize", task="month"
        ... )
        >>> [(one.task, len(one)) for one in history]
        [('May', 2), ('June', 1)]
    """
    reader = Reader(drop_invalid, clip, "the table", refuses_repeated=True, remedies=REMEDIES)
    read = read_table(
        frame,
        to_search_space(space),
        Columns(task, objective),
        reader,
        direction=Direction.of(direction),
        contexts=contexts,
        rename=rename,
    )
    return reader.finish(read)
