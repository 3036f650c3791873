"""OpenML's listings through its own client: at a steady pace, within a time limit, with retries.

The client keeps its configuration in module variables. They are changed within `connected` alone,
and then restored: public records need no key, and nothing is left in the user's cache.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

from hpobench_ordered.data.download import check_online
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.errors import DownloadError

FUNCTION = "area_under_roc_curve"
"""OpenML's name of the measure that evaluations are asked for."""
IDS_PER_REQUEST = 500
"""Ids are part of an address, and servers take addresses up to about 8 kB."""

DATABASE_BUSY = 107  # the only error code of OpenML worth a retry
REQUESTS_PER_LISTING = 2  # as the client also asks for uploaders' names
REASON_LENGTH = 200  # most characters of an error's reason in a message
INCOMPATIBLE_ENTRIES = 20  # with this many malformed entries and no other, versions do not fit

Item = TypeVar("Item")
Answer = TypeVar("Answer")


Evaluation = tuple[int, int, float | None]
"""A recorded evaluation: the run, its setup and its value, None where none is recorded."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Settings of requests to OpenML.

    Attributes:
        server: Address of the interface.
        attempts: Number of attempts at a request.
        first_pause: Seconds to wait after the first failed attempt; then twice as long each time.
        longest_pause: Most seconds to wait after a failed attempt.
        timeout: Seconds to wait for an answer.
        requests_per_second: Pace of the requests.
        clock: Tells the time in seconds.
        sleep: Waits for seconds.
    """

    server: str = "https://www.openml.org/api/v1/xml"
    attempts: int = 6
    first_pause: float = 2.0
    longest_pause: float = 60.0
    timeout: float = 300.0
    requests_per_second: float = 1.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def pause(self, attempt: int) -> float:
        """Seconds to wait after a failed attempt, counted from 1."""
        return min(self.longest_pause, self.first_pause * 2.0 ** (attempt - 1))


PUBLIC = Connection()
"""OpenML's public server."""


class RefusedError(DownloadError):
    """OpenML rejects a request."""


class MalformedError(DownloadError):
    """An answer of OpenML has an entry that the client cannot read."""


class Client:
    """Sends requests to OpenML, one after the other; made by `connected`."""

    def __init__(self, openml: Any, connection: Connection) -> None:
        """Wrap the package `openml`, which is configured already; requests may begin at once."""
        self._openml = openml
        self._connection = connection
        self._interval = 1.0 / connection.requests_per_second  # seconds between two requests
        # Time at which the next request may be sent.
        self._earliest = connection.clock()

    def flow_defaults(self, flow: int) -> dict[str, str | None]:
        """Ask for the default values that a flow states, by parameter."""
        openml_flow = self.ask(f"flow {flow}", lambda: self._openml.flows.get_flow(flow))
        return dict(openml_flow.parameters)

    def evaluations(
        self, flow: int, task: int, offsets: Sequence[int]
    ) -> tuple[list[Evaluation], int]:
        """Ask for evaluations of a flow on a task, by their places in OpenML's list of them.

        Args:
            flow: OpenML's number of the flow.
            task: OpenML's number of the task.
            offsets: Consecutive places; there are fewer evaluations at the end of the list.

        Returns:
            The evaluations, and the number of those that the client cannot read.
        """

        def ask_for(offsets: Sequence[int]) -> list[Evaluation]:
            """Ask for the evaluations at consecutive offsets; fewer at the end of the list."""
            subject = f"evaluations {offsets[0]} to {offsets[-1]} of flow {flow} on task {task}"
            entries = self._list(
                subject,
                lambda: self._openml.evaluations.list_evaluations(
                    function=FUNCTION,
                    flows=[flow],
                    tasks=[task],
                    offset=offsets[0],
                    size=len(offsets),
                    output_format="object",
                ),
                requests=REQUESTS_PER_LISTING,  # that the call makes, to keep the pace
            )
            for entry in entries:
                if (entry.flow_id, entry.task_id, entry.function) != (flow, task, FUNCTION):
                    raise RefusedError(f"asked for {subject}, OpenML answered with others")
            return [(entry.run_id, entry.setup_id, entry.value) for entry in entries]

        evaluations, unread = _read_by_bisection(offsets, ask_for)
        # A few unreadable entries are only counted; if all are, the client does not fit OpenML.
        _check_any_readable("evaluations", offsets, unread)
        return evaluations, len(unread)

    def folds(self, runs: Sequence[int]) -> dict[int, list[float]]:
        """Ask for the values of runs on all folds, by run.

        Runs without such values, or whose values the client cannot read, are absent.
        """

        def ask_for(runs: Sequence[int]) -> list[tuple[int, list[float]]]:
            """Ask for pairs of a run and its values on the folds, where there are any."""
            entries = self._list(
                f"values on the folds of runs {runs[0]} to {runs[-1]}",
                lambda: self._openml.evaluations.list_evaluations(
                    function=FUNCTION,
                    runs=list(runs),
                    size=len(runs),
                    per_fold=True,
                    output_format="object",
                ),
                requests=REQUESTS_PER_LISTING,  # that the call makes, to keep the pace
            )
            return [
                (entry.run_id, [float(value) for value in entry.values])
                for entry in entries
                if entry.values
            ]

        values_of_run: dict[int, list[float]] = {}
        for some_runs in split_ids(runs):
            try:
                values_of_some_runs, _ = _read_by_bisection(some_runs, ask_for)
            except RefusedError:  # values on folds are experimental in OpenML
                continue
            values_of_run.update(values_of_some_runs)
        return values_of_run

    def setups(self, ids: Sequence[int]) -> tuple[dict[int, dict[str, str | None]], Sequence[int]]:
        """Ask for the parameter values of setups.

        A setup is OpenML's record of one configuration of a flow (an algorithm). Setups are asked
        for in one request. If the client fails at the answer, each half of them is asked for in
        turn, and so on down to the single setups that cannot be read.

        Args:
            ids: Ids of the setups, at most `IDS_PER_REQUEST`.

        Returns:
            The values by id, without setups that OpenML does not know; and the ids of setups that
            the client cannot read.
        """

        def ask_for(ids: Sequence[int]) -> list[tuple[int, dict[str, str | None]]]:
            """Ask for some of the setups: pairs of an id and the setup's values by parameter."""
            entries = self._list(
                f"setups {ids[0]} to {ids[-1]}",
                lambda: self._openml.setups.list_setups(
                    setup=list(ids), size=len(ids), output_format="object"
                ),
            )
            return [(entry.setup_id, _read_parameters(entry)) for entry in entries]

        parameters_of_setups, unread = _read_by_bisection(ids, ask_for)
        # A few unreadable entries are only returned; if all are, the client does not fit OpenML.
        _check_any_readable("setups", ids, unread)
        return dict(parameters_of_setups), unread

    def _list(
        self, subject: str, call: Callable[[], Mapping[int, Any]], *, requests: int = 1
    ) -> list[Any]:
        """Ask for the entries of a listing; none if it is empty."""

        def list_entries() -> list[Any]:
            """List the entries; if there are none, the client raises one of two errors."""
            try:
                return list(call().values())
            except self._openml.exceptions.OpenMLServerNoResult:
                return []
            except KeyError as error:
                # The client looks for the first entry in the answer's XML, which has none.
                is_empty_listing = error.args in (("oml:evaluation",), ("oml:setup",))
                if is_empty_listing:
                    return []
                raise

        return self.ask(subject, list_entries, requests=requests)

    def ask(self, subject: str, call: Callable[[], Answer], *, requests: int = 1) -> Answer:
        """Call the client, with retries.

        Args:
            subject: What is asked for, for messages.
            call: Calls the client.
            requests: Number of requests that the call makes.

        Raises:
            DownloadError: There is no answer after all attempts.
            MalformedError: The client cannot read the answer.
            RefusedError: OpenML rejects the request.
        """
        connection = self._connection
        reason = ""
        for attempt in range(1, connection.attempts + 1):
            self._keep_pace(requests)
            try:
                return _call_within(connection.timeout, call)
            except Exception as error:
                reason = self._explain_transient(error, subject)
            if attempt < connection.attempts:
                connection.sleep(connection.pause(attempt))
        raise DownloadError(
            f"OpenML ({connection.server}) did not give {subject} in {connection.attempts} "
            f"attempts: {reason}. Everything before is stored; start again to continue"
        )

    def _keep_pace(self, requests: int) -> None:
        """Wait until the next requests are due, and set when those after them will be.

        `_earliest` is the time at which the next request may be sent, `_interval` the seconds
        between two requests.
        """
        now = self._connection.clock()
        if now < self._earliest:
            self._connection.sleep(self._earliest - now)
        self._earliest = max(now, self._earliest) + requests * self._interval

    def _explain_transient(self, error: Exception, subject: str) -> str:
        """Explain an error that a retry may solve; raise any other one.

        Raises:
            RefusedError: OpenML rejects the request.
            MalformedError: The client cannot read the answer.
        """
        from xml.parsers.expat import ExpatError

        import requests

        exceptions = self._openml.exceptions

        # OpenML answers with an error. It would do so again, except that a busy database is soon
        # free: that case goes on to the transient errors.
        is_server_error = isinstance(error, exceptions.OpenMLServerException)
        is_busy = getattr(error, "code", None) == DATABASE_BUSY
        is_unauthorised = isinstance(error, exceptions.OpenMLNotAuthorizedError)
        if is_unauthorised or (is_server_error and not is_busy):
            raise RefusedError(f"OpenML refuses to give {subject}: {error}") from error

        # The connection or a server on the way fails. This comes before malformed answers, as
        # some of these errors are ValueErrors, too.
        if isinstance(error, TimeoutError):
            return f"no answer within {self._connection.timeout:g} s"
        if isinstance(error, requests.ConnectionError):
            return "no connection"
        transient_errors = (requests.RequestException, exceptions.PyOpenMLError, ExpatError)
        if isinstance(error, transient_errors) or _is_from_proxy(error):
            # The package openml states a status only in the text of an error.
            status = re.search(r"Status code: (\d+)", str(error))
            return f"HTTP {status[1]}" if status else repr(error)[:REASON_LENGTH]

        # The client stumbles over an answer that arrived.
        if isinstance(error, KeyError | ValueError | TypeError):
            raise MalformedError(
                f"OpenML's answer about {subject} is malformed: {error!r}"
            ) from error
        raise error


@contextmanager
def connected(connection: Connection) -> Iterator[Client]:
    """Configure the client for a download, and restore its configuration when the block ends."""
    # Raises an error if the user has disabled downloads by an environment variable. Its message
    # names the variable, and ends with the text of `instead`.
    check_online("what OpenML publishes", instead="Unset it to go on.")
    openml = import_extra(
        "openml", package="openml", extra="train", purpose="downloading OpenML's records"
    )
    config = openml.config
    names = ("server", "apikey", "retry_policy", "connection_n_retries")
    settings_before = {name: getattr(config, name) for name in names}
    cache_before = config.get_config_as_dict()["cachedir"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        try:
            config.server = connection.server
            config.apikey = ""
            config.set_retry_policy("human", 1)  # once: `Client` retries, with better messages
            config.set_root_cache_directory(scratch)
            yield Client(openml, connection)
        finally:
            for name, value in settings_before.items():
                setattr(config, name, value)
            config.set_root_cache_directory(cache_before)


def split_ids(ids: Sequence[int]) -> list[Sequence[int]]:
    """Split ids into those of one request each."""
    starts = range(0, len(ids), IDS_PER_REQUEST)
    return [ids[start : start + IDS_PER_REQUEST] for start in starts]


def _read_parameters(setup: Any) -> dict[str, str | None]:
    """Values of a setup's parameters, by name."""
    parameters = (setup.parameters or {}).values()
    return {parameter.parameter_name: parameter.value for parameter in parameters}


def _read_by_bisection(
    items: Sequence[Item], ask_for: Callable[[Sequence[Item]], list[Answer]]
) -> tuple[list[Answer], Sequence[Item]]:
    """Ask for items, bisecting lists with unreadable items.

    The client gives up on a whole listing if one entry is malformed.

    Returns:
        The answers, and the items that the client cannot read.
    """
    try:
        return ask_for(items), []
    except MalformedError:
        if len(items) == 1:
            return [], items

    half = len(items) // 2
    first_answers, first_unread = _read_by_bisection(items[:half], ask_for)
    second_answers, second_unread = _read_by_bisection(items[half:], ask_for)
    return first_answers + second_answers, [*first_unread, *second_unread]


def _check_any_readable(noun: str, requested: Sequence[int], unread: Sequence[int]) -> None:
    """Raise a `DownloadError` if none of many entries is readable.

    A few may be malformed. But if all are, and there are at least `INCOMPATIBLE_ENTRIES`, the
    package openml does not fit OpenML's answers.
    """
    is_everything_unread = len(unread) == len(requested)
    if is_everything_unread and len(requested) >= INCOMPATIBLE_ENTRIES:
        raise DownloadError(
            f"the package openml cannot read any of {len(requested)} {noun}: its version and "
            "OpenML's answers do not fit"
        )


def _call_within(seconds: float, call: Callable[[], Answer]) -> Answer:
    """Call with a time limit.

    The client has none, so a call that takes too long is left running in its thread.
    """
    future: Future[Answer] = Future()

    def run() -> None:
        """Make the call in the thread, and give its result or error to the caller."""
        try:
            future.set_result(call())
        except BaseException as error:  # whatever it is, the caller gets it
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future.result(timeout=seconds)


def _is_from_proxy(error: Exception) -> bool:
    """Whether the answer is XML from something else than OpenML, such as a proxy.

    The package openml then looks in vain for the element of OpenML's own errors.
    """
    if isinstance(error, KeyError):
        return error.args == ("oml:error",)
    return isinstance(error, ValueError) and "Error in return XML" in str(error)
