"""An OpenML on the loopback interface: the part of its XML interface that listings need."""

import gzip
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

API = "/api/v1/xml/"


class Fault(Enum):
    """What goes wrong with one request."""

    UNAVAILABLE = "503 with a page in HTML"
    PROXY = "503 with a page in well-formed XML"
    RESET = "the connection is reset"
    CUT = "the connection ends in the middle of the answer"
    BUSY = "OpenML's error of a busy database"
    HANG = "no answer until the server stops"
    EMPTY = "a listing without entries instead of the error"


@dataclass(frozen=True)
class Evaluation:
    """One recorded evaluation; `raw` replaces its value."""

    run: int
    setup: int
    value: float
    folds: Sequence[float] = ()
    raw: str | None = None


@dataclass
class Content:
    """What the server holds: a flow, its evaluations by task, and setups as values or as XML."""

    flow: int
    defaults: Mapping[str, str | None]
    evaluations: Mapping[int, Sequence[Evaluation]]
    setups: Mapping[int, Mapping[str, str] | str]
    refuses_folds: bool = False
    ignores_task: bool = False


@dataclass
class OpenMLServer:
    """Serves a content, counts what is asked for, and fails as told."""

    content: Content
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """What goes wrong next, by a part of the address."""
    requests: list[str] = field(default_factory=list)
    """Paths that were asked for, below `API`."""
    before_page: Callable[[int], None] = lambda page: None
    """Called with the number of the page of evaluations, from 0, before it is sent."""
    _port: int = 0

    def start(self) -> None:
        """Listen on a free port; after a stop, on the same port as before."""
        openml_server = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True  # small answers wait 40 ms for each other otherwise

            def do_GET(self) -> None:
                openml_server._handle(self)

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing: by default, each request is logged on standard error."""

        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.block_on_close = False  # a handler may stop the server
        self._port = self._server.server_port
        seconds_between_checks = 0.005  # of whether to stop
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(seconds_between_checks,)
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening; nothing more is answered."""
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}{API.rstrip('/')}"

    @property
    def pages(self) -> list[str]:
        """Requests for a page of evaluations."""
        return [path for path in self.requests if _asks_for_page(path)]

    def count(self, part: str) -> int:
        """Number of requests with a part in their address."""
        return sum(part in path for path in self.requests)

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Record a request, then answer it, or let it fail where a fault is planned for it."""
        path = handler.path.removeprefix(API)
        self.requests.append(path)
        if _asks_for_page(path):
            self.before_page(len(self.pages) - 1)

        fault = self._next_fault(path)
        if fault is Fault.HANG:
            self._stopping.wait()
        if self._stopping.is_set() or fault is Fault.RESET:
            _reset(handler)
        elif fault is Fault.UNAVAILABLE:
            # No XML: <br> is not closed.
            _send(handler, 503, "<html><p>Service unavailable<br></html>")
        elif fault is Fault.PROXY:
            _send(handler, 503, "<html><p>Service unavailable</p></html>")
        elif fault is Fault.BUSY:
            # OpenML's number of this error.
            _send(handler, *_error(107, "Database connection error"))
        elif fault is Fault.EMPTY:
            _send(handler, 200, _document("evaluations", ""))
        else:
            status, text = self._answer(path)
            _send(handler, status, text, cut=fault is Fault.CUT)

    def _next_fault(self, path: str) -> Fault | None:
        """The next fault of an address like this one, which is used up; None if there is none."""
        for part, faults in self.faults.items():
            if part in path and faults:
                return faults.pop(0)
        return None

    def _answer(self, path: str) -> tuple[int, str]:
        """Status and XML for a request.

        Its path names a list and ends with filters: names and values in turn, as task/3/limit/100.
        """
        match path.split("/"):
            case ["evaluation", "list", *filters]:
                return self._list_evaluations(_pair_up(filters))
            case ["setup", "list", *filters]:
                return self._list_setups(_pair_up(filters))
            case ["user", "list", "user_id", ids]:
                return _list_users(ids.split(","))
            case ["flow", number] if int(number) == self.content.flow:
                head = _tags(id=number, name="mlr.classif.svm", version=7)
                parameters = [_default(item) for item in self.content.defaults.items()]
                return 200, _document("flow", head, *parameters)
        return _error(100, "Function not valid")

    def _list_evaluations(self, filters: Mapping[str, str]) -> tuple[int, str]:
        """A page of the evaluations that pass the filters; errors have OpenML's numbers."""
        per_fold = filters.get("per_fold") == "true"
        if per_fold and self.content.refuses_folds:
            return _error(548, "Per fold queries are experimental")

        entries = []
        for task, evaluations in self.content.evaluations.items():
            for evaluation in evaluations:
                if self._passes(task, evaluation, filters):
                    entries.append(_evaluation(self.content.flow, task, evaluation, per_fold))
        return _listing("evaluations", entries, filters, error_if_empty=542)

    def _passes(self, task: int, evaluation: Evaluation, filters: Mapping[str, str]) -> bool:
        """Whether an evaluation is among those that a request asks for."""
        if not self.content.ignores_task and filters.get("task") not in (None, str(task)):
            return False
        if filters.get("flow") not in (None, str(self.content.flow)):
            return False
        if filters["function"] != "area_under_roc_curve":
            return False
        if "run" in filters and str(evaluation.run) not in filters["run"].split(","):
            return False
        has_folds = len(evaluation.folds) > 0
        return has_folds or filters.get("per_fold") != "true"

    def _list_setups(self, filters: Mapping[str, str]) -> tuple[int, str]:
        """The setups that the filter "setup" numbers, without those that the server lacks."""
        entries = []
        for text in filters["setup"].split(","):
            number = int(text)
            if number in self.content.setups:
                entries.append(_setup(self.content.flow, number, self.content.setups[number]))
        return _listing("setups", entries, filters, error_if_empty=674)


def _asks_for_page(path: str) -> bool:
    """Whether a request asks for a page of the list of evaluations, without values of folds."""
    return path.startswith("evaluation/list") and "per_fold" not in path


@contextmanager
def serving(content: Content) -> Iterator[OpenMLServer]:
    """A running server, stopped in the end."""
    server = OpenMLServer(content)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _pair_up(filters: Sequence[str]) -> dict[str, str]:
    """Names and values that alternate in an address, as a dictionary."""
    return dict(zip(filters[::2], filters[1::2], strict=True))


def _list_users(ids: Sequence[str]) -> tuple[int, str]:
    """Every user is OpenML's bot."""
    users = []
    for number in ids:
        users.append(_tags(user=_tags(id=number, username="OpenML_Bot")))
    return 200, _document("users", *users)


def _send(handler: BaseHTTPRequestHandler, status: int, text: str, *, cut: bool = False) -> None:
    """Send a text compressed, or only the first half of it after a header for the whole."""
    body = gzip.compress(text.encode())
    handler.send_response(status)
    handler.send_header("Content-Type", "text/xml")
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2] if cut else body)


def _reset(handler: BaseHTTPRequestHandler) -> None:
    """End the connection as a crashed server does, without waiting for what is still to be sent."""
    linger = struct.pack("ii", 1, 0)  # on, for 0 seconds
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.connection.close()


class _Xml(str):
    """Text that needs no escapes any more."""


def _tags(**values: object) -> _Xml:
    """XML elements, one for each argument: its name is the tag, its value the content.

    Values that are plain text are escaped.
    """
    elements = []
    for name, value in values.items():
        text = value if isinstance(value, _Xml) else escape(str(value))
        elements.append(f"<oml:{name}>{text}</oml:{name}>")
    return _Xml("".join(elements))


def _document(kind: str, *parts: str) -> str:
    return f'<oml:{kind} xmlns:oml="http://openml.org/openml">{"".join(parts)}</oml:{kind}>'


def _error(code: int, message: str) -> tuple[int, str]:
    return 412, _document("error", _tags(code=code, message=message))


def _listing(
    kind: str, entries: Sequence[str], filters: Mapping[str, str], *, error_if_empty: int
) -> tuple[int, str]:
    """The page that is asked for; if it has no entries, the error of that number."""
    first = int(filters["offset"])
    page = entries[first : first + int(filters["limit"])]
    if not page:
        return _error(error_if_empty, "No results")
    return 200, _document(kind, *page)


def _evaluation(flow: int, task: int, evaluation: Evaluation, per_fold: bool) -> str:
    """The XML of an evaluation, with a value for each fold or with one value."""
    fields: dict[str, object] = {
        "run_id": evaluation.run,
        "task_id": task,
        "setup_id": evaluation.setup,
        "flow_id": flow,
        "function": "area_under_roc_curve",
        # OpenML tells these, too, but nothing depends on them.
        "flow_name": "mlr.classif.svm(7)",
        "data_id": 1,
        "data_name": "data",
        "upload_time": "2017-07-16 13:36:20",
        "uploader": 2702,
    }
    if per_fold:
        fields["values"] = f"[{','.join(map(repr, evaluation.folds))}]"
    elif evaluation.raw is not None:
        fields["value"] = evaluation.raw  # a text that need not be a number
    else:
        fields["value"] = repr(evaluation.value)
    return _tags(evaluation=_tags(**fields))


def _setup(flow: int, number: int, parameters: Mapping[str, str] | str) -> str:
    """The XML of a setup.

    Args:
        flow: Number of the flow that it is a setup of.
        number: Its own number.
        parameters: Values by name; or XML, such as a damaged one, which is sent as it is.
    """
    head = _tags(setup_id=number, flow_id=flow)
    if isinstance(parameters, str):
        return _tags(setup=_Xml(head + parameters))

    elements = []
    for index, (name, value) in enumerate(parameters.items()):
        fields = _tags(
            id=number * 100 + index,  # different for every parameter of every setup
            full_name=f"mlr.classif.svm(7)_{name}",
            parameter_name=name,
            default_value="",
            value=value,
            flow_id=flow,
            flow_name="mlr.classif.svm",
            data_type="discrete",
        )
        elements.append(_tags(parameter=fields))
    return _tags(setup=_Xml(head + "".join(elements)))


def _default(item: tuple[str, str | None]) -> str:
    """The XML of a parameter of the flow, from its name and its default, which may be missing."""
    name, value = item
    tags = _tags(name=name, data_type="discrete", default_value=value or "", description="")
    return _tags(parameter=tags)
