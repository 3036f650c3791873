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

NAMESPACE = 'xmlns:oml="http://openml.org/openml"'
UPLOADER = 2702
API = "/api/v1/xml/"
NO_EVALUATIONS, NO_SETUPS, BUSY, TOO_MANY_FOLDS = 542, 674, 107, 548


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
    """What the server holds.

    Attributes:
        flow: Id of the flow.
        defaults: Default values that the flow states, None for an empty one.
        evaluations: Evaluations by task.
        setups: Values by parameter, by setup; or the text of its parameters in XML.
        refuses_folds: Whether values on the folds are refused.
        ignores_task: Whether evaluations of all tasks are listed, whatever is asked for.
    """

    flow: int
    defaults: Mapping[str, str | None]
    evaluations: Mapping[int, Sequence[Evaluation]]
    setups: Mapping[int, Mapping[str, str] | str]
    refuses_folds: bool = False
    ignores_task: bool = False


@dataclass
class OpenMLServer:
    """Serves a content, counts what is asked for, and fails as told.

    Attributes:
        content: What it holds.
        faults: What goes wrong next, by a part of the address.
        requests: Paths that were asked for, below `API`.
        before_page: Called with the number of the page of evaluations, from 0, before it is sent.
    """

    content: Content
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    before_page: Callable[[int], None] = lambda page: None
    _port: int = 0

    def start(self) -> None:
        """Listen, on the same port as before."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True  # small answers wait 40 ms for each other otherwise

            def do_GET(self) -> None:
                owner._handle(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.block_on_close = False  # a handler may stop the server
        self._port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,))
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
        """Pages of evaluations that were asked for."""
        return [path for path in self.requests if is_page(path)]

    def count(self, part: str) -> int:
        """Number of requests with a part in their address."""
        return sum(part in path for path in self.requests)

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.removeprefix(API)
        self.requests.append(path)
        if is_page(path):
            self.before_page(len(self.pages) - 1)
        fault = self._next_fault(path)
        if self._stopping.is_set() or fault is Fault.RESET:
            _reset(handler)
        elif fault is Fault.HANG:
            self._stopping.wait()
            _reset(handler)
        elif fault is Fault.UNAVAILABLE:
            _send(handler, 503, "<html><p>Service unavailable<br></html>")
        elif fault is Fault.PROXY:
            _send(handler, 503, "<html><p>Service unavailable</p></html>")
        elif fault is Fault.BUSY:
            _send(handler, 412, _error(BUSY, "Database connection error"))
        elif fault is Fault.EMPTY:
            _send(handler, 200, f"<oml:evaluations {NAMESPACE}></oml:evaluations>")
        else:
            _send(handler, *self._answer(path), cut=fault is Fault.CUT)

    def _next_fault(self, path: str) -> Fault | None:
        for part, faults in self.faults.items():
            if part in path and faults:
                return faults.pop(0)
        return None

    def _answer(self, path: str) -> tuple[int, str]:
        match path.split("/"):
            case ["evaluation", "list", *filters]:
                return self._evaluations(_filters(filters))
            case ["user", "list", "user_id", ids]:
                return 200, _users(ids)
            case ["setup", "list", *filters]:
                return self._setups(_filters(filters))
            case ["flow", number] if int(number) == self.content.flow:
                return 200, _flow(self.content)
        return 412, _error(100, "Function not valid")

    def _evaluations(self, filters: Mapping[str, str]) -> tuple[int, str]:
        offset, limit = int(filters["offset"]), int(filters["limit"])
        per_fold = filters.get("per_fold") == "true"
        if per_fold and self.content.refuses_folds:
            return 412, _error(TOO_MANY_FOLDS, "Per fold queries are experimental")
        runs = set(map(int, filters["run"].split(","))) if "run" in filters else None
        if filters["function"] != "area_under_roc_curve":
            return 412, _error(NO_EVALUATIONS, "No results")
        entries = [
            _evaluation(self.content.flow, task, evaluation, per_fold)
            for task, evaluations in self.content.evaluations.items()
            for evaluation in evaluations
            if (self.content.ignores_task or filters.get("task") in (None, str(task)))
            and filters.get("flow") in (None, str(self.content.flow))
            and (runs is None or evaluation.run in runs)
            and (evaluation.folds or not per_fold)
        ][offset : offset + limit]
        if not entries:
            return 412, _error(NO_EVALUATIONS, "No results")
        return 200, f"<oml:evaluations {NAMESPACE}>{''.join(entries)}</oml:evaluations>"

    def _setups(self, filters: Mapping[str, str]) -> tuple[int, str]:
        ids = [int(i) for i in filters["setup"].split(",") if int(i) in self.content.setups]
        offset, limit = int(filters["offset"]), int(filters["limit"])
        entries = [
            _setup(self.content.flow, number, self.content.setups[number])
            for number in ids[offset : offset + limit]
        ]
        if not entries:
            return 412, _error(NO_SETUPS, "No results")
        return 200, f"<oml:setups {NAMESPACE}>{''.join(entries)}</oml:setups>"


@contextmanager
def serving(content: Content) -> Iterator[OpenMLServer]:
    """A running server, stopped in the end."""
    server = OpenMLServer(content)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def is_page(path: str) -> bool:
    """Whether a path asks for a page of evaluations."""
    return path.startswith("evaluation/list") and "per_fold" not in path


def _filters(parts: Sequence[str]) -> dict[str, str]:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _send(handler: BaseHTTPRequestHandler, status: int, text: str, *, cut: bool = False) -> None:
    body = gzip.compress(text.encode())
    handler.send_response(status)
    handler.send_header("Content-Type", "text/xml")
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2] if cut else body)


def _reset(handler: BaseHTTPRequestHandler) -> None:
    """End the connection as a crashed server does."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.connection.close()


def _error(code: int, message: str) -> str:
    return (
        f"<oml:error {NAMESPACE}><oml:code>{code}</oml:code>"
        f"<oml:message>{message}</oml:message></oml:error>"
    )


def _tags(**values: object) -> str:
    return "".join(
        f"<oml:{name}>{escape(str(value))}</oml:{name}>" for name, value in values.items()
    )


def _evaluation(flow: int, task: int, evaluation: Evaluation, per_fold: bool) -> str:
    text = evaluation.raw if evaluation.raw is not None else repr(evaluation.value)
    values = ",".join(map(repr, evaluation.folds))
    return "<oml:evaluation>{}</oml:evaluation>".format(
        _tags(
            run_id=evaluation.run,
            task_id=task,
            setup_id=evaluation.setup,
            flow_id=flow,
            flow_name="mlr.classif.svm(7)",
            data_id=1,
            data_name="data",
            function="area_under_roc_curve",
            upload_time="2017-07-16 13:36:20",
            uploader=UPLOADER,
            **({"values": f"[{values}]"} if per_fold else {"value": text}),
        )
    )


def _users(ids: str) -> str:
    users = "".join(
        f"<oml:user>{_tags(id=number, username='OpenML_Bot')}</oml:user>"
        for number in ids.split(",")
    )
    return f"<oml:users {NAMESPACE}>{users}</oml:users>"


def _setup(flow: int, number: int, parameters: Mapping[str, str] | str) -> str:
    text = parameters
    if not isinstance(text, str):
        text = "".join(
            "<oml:parameter>{}</oml:parameter>".format(
                _tags(
                    id=number * 100 + k,
                    flow_id=flow,
                    flow_name="mlr.classif.svm",
                    full_name=f"mlr.classif.svm(7)_{name}",
                    parameter_name=name,
                    data_type="discrete",
                    default_value="",
                    value=value,
                )
            )
            for k, (name, value) in enumerate(parameters.items())
        )
    return f"<oml:setup>{_tags(setup_id=number, flow_id=flow)}{text}</oml:setup>"


def _flow(content: Content) -> str:
    parameters = "".join(
        "<oml:parameter>{}</oml:parameter>".format(
            _tags(name=name, data_type="discrete", default_value=value or "", description="")
        )
        for name, value in content.defaults.items()
    )
    head = _tags(id=content.flow, name="mlr.classif.svm", version=7)
    return f"<oml:flow {NAMESPACE}>{head}{parameters}</oml:flow>"
