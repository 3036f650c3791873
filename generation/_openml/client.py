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

from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.errors import DownloadError
from hpobench_ordered.files.download import check_online

FUNCTION = "area_under_roc_curve"
IDS_A_REQUEST = 500
"""Ids are part of an address, and servers take addresses up to about 8 kB."""

_DATABASE_BUSY = 107  # the only error code of OpenML worth a retry
_WITH_UPLOADERS = 2  # requests per listing, as the client also asks for uploaders' names
_LONGEST_REASON = 200
_NO_ACCIDENT = 20  # with this many malformed entries and no other, versions do not fit

Item = TypeVar("Item")
Answer = TypeVar("Answer")


Evaluation = tuple[int, int, float | None]
"""A recorded evaluation: the run, its setup and its value, None where none is recorded."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Settings of requests to OpenML."""

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
        self._openml = openml
        self._connection = connection
        self._interval = 1.0 / connection.requests_per_second
        self._earliest = connection.clock()

    def flow_defaults(self, flow: int) -> dict[str, str | None]:
        """Default values that a flow states, by parameter."""
        described = self.ask(f"flow {flow}", lambda: self._openml.flows.get_flow(flow))
        return dict(described.parameters)

    def evaluations(
        self, flow: int, task: int, offsets: Sequence[int]
    ) -> tuple[list[Evaluation], int]:
        """Evaluations of a flow on a task at consecutive offsets; fewer at the end of the task."""

        def part(offsets: Sequence[int]) -> list[Evaluation]:
            what = f"evaluations {offsets[0]} to {offsets[-1]} of flow {flow} on task {task}"
            listed = self._list(
                what,
                lambda: self._openml.evaluations.list_evaluations(
                    function=FUNCTION,
                    flows=[flow],
                    tasks=[task],
                    offset=offsets[0],
                    size=len(offsets),
                    output_format="object",
                ),
                requests=_WITH_UPLOADERS,
            )
            if any((e.flow_id, e.task_id, e.function) != (flow, task, FUNCTION) for e in listed):
                raise RefusedError(f"asked for {what}, OpenML answered with others")
            return [(e.run_id, e.setup_id, e.value) for e in listed]

        read, unread = _all_readable(offsets, part)
        _check_readable("evaluations", offsets, unread)
        return read, len(unread)

    def folds(self, runs: Sequence[int]) -> dict[int, list[float]]:
        """Value on every fold of runs, where OpenML has them."""

        def part(runs: Sequence[int]) -> list[tuple[int, list[float]]]:
            listed = self._list(
                f"values on the folds of runs {runs[0]} to {runs[-1]}",
                lambda: self._openml.evaluations.list_evaluations(
                    function=FUNCTION,
                    runs=list(runs),
                    size=len(runs),
                    per_fold=True,
                    output_format="object",
                ),
                requests=_WITH_UPLOADERS,
            )
            return [(e.run_id, [float(v) for v in e.values]) for e in listed if e.values]

        values: dict[int, list[float]] = {}
        for chunk in chunks(runs):
            try:
                values.update(_all_readable(chunk, part)[0])
            except RefusedError:  # values on folds are experimental in OpenML
                continue
        return values

    def setups(self, ids: Sequence[int]) -> tuple[dict[int, dict[str, str | None]], Sequence[int]]:
        """Parameter values of setups, and the ids of those that the client cannot read.

        Setups that OpenML does not know are left out; `ids` are at most `IDS_A_REQUEST`.
        """

        def part(ids: Sequence[int]) -> list[tuple[int, dict[str, str | None]]]:
            listed = self._list(
                f"setups {ids[0]} to {ids[-1]}",
                lambda: self._openml.setups.list_setups(
                    setup=list(ids), size=len(ids), output_format="object"
                ),
            )
            return [
                (s.setup_id, {p.parameter_name: p.value for p in (s.parameters or {}).values()})
                for s in listed
            ]

        read, unread = _all_readable(ids, part)
        _check_readable("setups", ids, unread)
        return dict(read), unread

    def _list(
        self, what: str, call: Callable[[], Mapping[int, Any]], *, requests: int = 1
    ) -> list[Any]:
        """Entries of a listing; none if it is empty."""

        def listed() -> list[Any]:
            try:
                return list(call().values())
            except self._openml.exceptions.OpenMLServerNoResult:
                return []
            except KeyError as error:
                if error.args in (("oml:evaluation",), ("oml:setup",)):  # an empty listing
                    return []
                raise

        return self.ask(what, listed, requests=requests)

    def ask(self, what: str, call: Callable[[], Answer], *, requests: int = 1) -> Answer:
        """Call the client, with retries.

        `what` names the data in messages; the call makes `requests` requests.
        """
        connection = self._connection
        reason = ""
        for attempt in range(1, connection.attempts + 1):
            self._keep_pace(requests)
            try:
                return _within(connection.timeout, call)
            except Exception as error:
                reason = self._transient(error, what)
            if attempt < connection.attempts:
                connection.sleep(connection.pause(attempt))
        raise DownloadError(
            f"OpenML ({connection.server}) did not give {what} in {connection.attempts} "
            f"attempts: {reason}. Everything before is stored; start again to continue"
        )

    def _keep_pace(self, requests: int) -> None:
        now = self._connection.clock()
        if now < self._earliest:
            self._connection.sleep(self._earliest - now)
        self._earliest = max(now, self._earliest) + requests * self._interval

    def _transient(self, error: Exception, what: str) -> str:
        """Describe an error that a retry may solve; raise any other one."""
        from xml.parsers.expat import ExpatError

        import requests

        exceptions = self._openml.exceptions
        is_error = isinstance(error, exceptions.OpenMLServerException)
        is_refused = is_error and getattr(error, "code", None) != _DATABASE_BUSY
        if is_refused or isinstance(error, exceptions.OpenMLNotAuthorizedError):
            raise RefusedError(f"OpenML refuses to give {what}: {error}") from error
        if isinstance(error, TimeoutError):
            return f"no answer within {self._connection.timeout:g} s"
        if isinstance(error, requests.ConnectionError):
            return "no connection"
        passing = (requests.RequestException, exceptions.PyOpenMLError, ExpatError)
        if isinstance(error, passing) or _is_no_answer(error):
            status = re.search(r"Status code: (\d+)", str(error))
            return f"HTTP {status[1]}" if status else repr(error)[:_LONGEST_REASON]
        if isinstance(error, KeyError | ValueError | TypeError):
            raise MalformedError(f"OpenML's answer about {what} is malformed: {error!r}") from error
        raise error


@contextmanager
def connected(connection: Connection) -> Iterator[Client]:
    """Configure the client for a download, and restore its configuration when the block ends."""
    check_online("what OpenML publishes", instead="Unset it to go on.")
    openml = import_extra(
        "openml", package="openml", extra="train", purpose="downloading OpenML's records"
    )
    config = openml.config
    names = ("server", "apikey", "retry_policy", "connection_n_retries")
    before = {name: getattr(config, name) for name in names}
    cache = config.get_config_as_dict()["cachedir"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        try:
            config.server = connection.server
            config.apikey = ""
            config.set_retry_policy("human", 1)  # `Client` retries, with better messages
            config.set_root_cache_directory(scratch)
            yield Client(openml, connection)
        finally:
            for name, value in before.items():
                setattr(config, name, value)
            config.set_root_cache_directory(cache)


def chunks(ids: Sequence[int]) -> list[Sequence[int]]:
    """Split ids into requests."""
    return [ids[k : k + IDS_A_REQUEST] for k in range(0, len(ids), IDS_A_REQUEST)]


def _all_readable(
    items: Sequence[Item], ask: Callable[[Sequence[Item]], list[Answer]]
) -> tuple[list[Answer], Sequence[Item]]:
    """Ask for items, bisecting lists with unreadable items.

    The client gives up on a whole listing if one entry is malformed.
    """
    try:
        return ask(items), items[:0]
    except MalformedError:
        if len(items) == 1:
            return [], items
    half = len(items) // 2
    read, unread = _all_readable(items[:half], ask)
    more, others = _all_readable(items[half:], ask)
    return read + more, [*unread, *others]


def _check_readable(what: str, asked: Sequence[int], unread: Sequence[int]) -> None:
    if len(unread) == len(asked) >= _NO_ACCIDENT:
        raise DownloadError(
            f"the package openml cannot read any of {len(asked)} {what}: its version and OpenML's "
            "answers do not fit"
        )


def _within(seconds: float, call: Callable[[], Answer]) -> Answer:
    """Call with a time limit.

    The client has none, so a call that takes too long is left running in its thread.
    """
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future.result(timeout=seconds)


def _is_no_answer(error: Exception) -> bool:
    """Whether the answer is XML from something else than OpenML, such as a proxy."""
    if isinstance(error, KeyError):
        return error.args == ("oml:error",)
    return isinstance(error, ValueError) and "Error in return XML" in str(error)
