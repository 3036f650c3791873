"""Makes runs, here or in another process, and writes their results.

Where the method runs, `perform` returns what happened as values; `Job.write` encodes and writes
them, always in the process that was started by the user. A method that breaks what both need, such
as `json` or its file descriptors, thus breaks only its own run.
"""

import pickle
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hpobench_ordered.errors import MethodError
from hpobench_ordered.experiment.method_records import write_method_record
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.records import Failure, Record
from hpobench_ordered.experiment.run_tables import make_run_table
from hpobench_ordered.experiment.runner import (
    describe_error,
    load_source,
    run_cell,
    step_name,
    timeout_error,
)
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.experiment.user_methods.identity import MethodIdentity, load_and_list
from hpobench_ordered.experiment.user_methods.loaded_code import hash_user_files
from hpobench_ordered.runtime.child import (
    ChildDiedError,
    Children,
    StepTimeoutError,
    pickle_value,
    step,
)
from hpobench_ordered.runtime.threads import one_thread


@dataclass(frozen=True)
class FinishedRun:
    """A run that came to its end.

    Attributes:
        outcomes: What the method did on each task.
        timing: How long the run took.
        loaded: The files that a method from outside had loaded, as in `MethodRecord.later`.
    """

    outcomes: Sequence[Outcome]
    timing: Record
    loaded: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FailedRun:
    """The error that ended a run, and where it was raised; "" if that is not known."""

    error: MethodError
    traceback: str


@dataclass(frozen=True)
class CrashedRun:
    """The process of a run ended; the report is what faulthandler wrote, if anything."""

    report: str


IMPORT_LIMIT = 300.0  # seconds that the import of a method may take
IMPORTING = "when it was imported"
"""When on a task a method failed whose files cannot be imported."""

RunReply = FinishedRun | FailedRun
"""What `perform` returns."""


def perform(cell: Cell, time_limit: float | None) -> RunReply:
    """Make a run in this process.

    The exception that a method raised is the cause of the `MethodError`. It is returned as text,
    since not every exception can be sent to another process.

    Args:
        cell: The run.
        time_limit: Seconds that one call into the method may take; None: no limit.
    """
    try:
        with one_thread():  # sums are then in the same order, whatever the number of cores
            outcomes, timing = run_cell(cell, time_limit=time_limit)
    except MethodError as error:
        cause = error.__cause__
        lines = [] if cause is None else traceback.format_exception(cause)
        return FailedRun(error, "".join(lines))
    return FinishedRun(outcomes, timing)


def perform_from_files(
    identity: MethodIdentity,
    pickled_cell: bytes,
    time_limit: float | None,
) -> RunReply:
    """Make a run in this process, which loads a method from outside from its files.

    What is loaded must be what the method was identified by. The cell is unpickled later, as its
    benchmark may load files, too.

    Args:
        identity: How to load the method, and what its import had loaded when it was identified.
        pickled_cell: The run, a pickled `Cell`.
        time_limit: Seconds that one call into the method may take; None: no limit.
    """
    source, record = identity.source, identity.record
    if source is None or record is None:  # it is of this package, or nothing identifies it
        return perform(pickle.loads(pickled_cell), time_limit)
    try:
        # The parent process kills this one if the import, which is of no task, takes too long.
        with step(step_name("", IMPORTING), IMPORT_LIMIT):
            imported = load_and_list(source)
    except BaseException as error:  # whatever the user's files raise
        message = f"{record.method}, {IMPORTING}: {describe_error(error)}"
        return FailedRun(MethodError(message, when=IMPORTING), traceback.format_exc())

    differences = imported.list_differences(record.imported)
    if differences:
        message = f"{record.method}: its files changed while it ran: {', '.join(differences)}"
        return FailedRun(MethodError(message), traceback="")

    reply = perform(pickle.loads(pickled_cell), time_limit)
    if isinstance(reply, FinishedRun):
        return replace(reply, loaded=hash_user_files(source.folder))
    return reply


def perform_in_child(
    cell: Cell, time_limit: float | None, children: Children, *, group: str | None = None
) -> RunReply | CrashedRun:
    """Make a run in another process, which is killed when a call takes too long.

    Args:
        cell: The run.
        time_limit: Seconds that one call into the method may take; None: no limit.
        children: The processes.
        group: The group of runs that share processes; default: `Cell.process_group`.

    Returns:
        The finished or failed run; or a `CrashedRun` if its process ended, perhaps for a reason
        outside of the run, such as too little memory.
    """
    try:
        reply = children.call(
            cell.process_group if group is None else group,
            perform_from_files,
            cell.identity,
            pickle_value(cell.sendable),
            time_limit,
        )
    except StepTimeoutError as overdue:
        # `step_name` joined the task, and when the call happened, as two lines.
        task, _, when = overdue.step.partition("\n")
        error = timeout_error(cell.method.name, overdue.limit, task=task, when=when)
        return FailedRun(error, overdue.report)  # the report is a traceback: where the call was
    except (ChildDiedError, RuntimeError) as error:
        return CrashedRun(str(error))
    return reply


@dataclass(frozen=True)
class Job:
    """Writes the results of runs to a store."""

    store: Store
    time_limit: float | None

    def is_over(self, cell: Cell) -> bool:
        """Whether a run has finished or failed, perhaps in another process."""
        return self.store.has(cell.key)

    def write(self, cell: Cell, reply: RunReply) -> None:
        """Write a finished or failed run."""
        if isinstance(reply, FailedRun):
            self.write_failure(cell, reply.error, reply.traceback)
            return
        self._record_loaded_files(cell, reply.loaded)
        recorded = [outcome for outcome in reply.outcomes if outcome.is_recorded]
        self.store.write(make_run_table(cell, load_source(cell), recorded))
        self.store.records.write_timing(reply.timing)

    def _record_loaded_files(self, cell: Cell, hash_of_file: Mapping[str, str]) -> None:
        """Record the files that a method loaded in a run, but not when it was imported.

        Args:
            cell: The run. Nothing is recorded if its method is of this package, or in no file.
            hash_of_file: The hash of the content of each file that the method loaded, by path.
        """
        record = cell.identity.record
        if record is None:
            return
        hash_of_later_file: dict[str, str] = {}
        for path, content_hash in hash_of_file.items():
            if path not in record.imported.files:
                hash_of_later_file[path] = content_hash
        write_method_record(self.store.folder, replace(record, later=hash_of_later_file))

    def write_failure(self, cell: Cell, error: MethodError, traceback_text: str) -> None:
        """Write that a run failed.

        Args:
            cell: The run.
            error: Why it failed.
            traceback_text: The traceback or crash report of another process; "" if there is none.
        """
        self.store.records.write_failure(Failure.from_error(cell, error, printed=traceback_text))
