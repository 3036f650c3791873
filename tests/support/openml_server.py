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
        return [p for p in self.requests if p.startswith("evaluation/list") and "per_fold" not in p]

    def count(self, part: str) -> int:
        """Number of requests with a part in their address."""
        return sum(part in path for path in self.requests)

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        path, before = handler.path.removeprefix(API), len(self.pages)
        self.requests.append(path)
        if len(self.pages) > before:
            self.before_page(before)
        fault = next((f.pop(0) for part, f in self.faults.items() if part in path and f), None)
        if fault is Fault.HANG:
            self._stopping.wait()
        if self._stopping.is_set() or fault is Fault.RESET:
            _reset(handler)
        elif fault is Fault.UNAVAILABLE:
            _send(handler, 503, "<html><p>Service unavailable<br></html>")
        elif fault is Fault.PROXY:
            _send(handler, 503, "<html><p>Service unavailable</p></html>")
        elif fault is Fault.BUSY:
            _send(handler, *_error(107, "Database connection error"))
        elif fault is Fault.EMPTY:
            _send(handler, 200, _document("evaluations", ""))
        else:
            _send(handler, *self._answer(path), cut=fault is Fault.CUT)

    def _answer(self, path: str) -> tuple[int, str]:
        match path.split("/"):
            case ["evaluation", "list", *filters]:
                return self._evaluations(dict(zip(filters[::2], filters[1::2], strict=True)))
            case ["user", "list", "user_id", ids]:
                bots = ({"id": number, "username": "OpenML_Bot"} for number in ids.split(","))
                return 200, _document("users", *(_tags(user=_tags(**bot)) for bot in bots))
            case ["setup", "list", *filters]:
                return self._setups(dict(zip(filters[::2], filters[1::2], strict=True)))
            case ["flow", number] if int(number) == self.content.flow:
                head = _tags(id=number, name="mlr.classif.svm", version=7)
                return 200, _document("flow", head, *map(_default, self.content.defaults.items()))
        return _error(100, "Function not valid")

    def _evaluations(self, filters: Mapping[str, str]) -> tuple[int, str]:
        content, per_fold = self.content, filters.get("per_fold") == "true"
        if per_fold and content.refuses_folds:
            return _error(548, "Per fold queries are experimental")
        runs = filters["run"].split(",") if "run" in filters else None
        entries = [
            _evaluation(content.flow, task, evaluation, per_fold)
            for task, evaluations in content.evaluations.items()
            for evaluation in evaluations
            if (content.ignores_task or filters.get("task") in (None, str(task)))
            and filters.get("flow") in (None, str(content.flow))
            and filters["function"] == "area_under_roc_curve"
            and (runs is None or str(evaluation.run) in runs)
            and (evaluation.folds or not per_fold)
        ]
        return _listing("evaluations", entries, filters, none=542)

    def _setups(self, filters: Mapping[str, str]) -> tuple[int, str]:
        flow, setups = self.content.flow, self.content.setups
        ids = (int(number) for number in filters["setup"].split(","))
        entries = [_setup(flow, number, setups[number]) for number in ids if number in setups]
        return _listing("setups", entries, filters, none=674)


@contextmanager
def serving(content: Content) -> Iterator[OpenMLServer]:
    """A running server, stopped in the end."""
    server = OpenMLServer(content)
    server.start()
    try:
        yield server
    finally:
        server.stop()


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


class _Xml(str):
    """Text that needs no escapes any more."""


def _tags(**values: object) -> _Xml:
    texts = {k: v if isinstance(v, _Xml) else escape(str(v)) for k, v in values.items()}
    return _Xml("".join(f"<oml:{name}>{text}</oml:{name}>" for name, text in texts.items()))


def _document(kind: str, *parts: str) -> str:
    return f'<oml:{kind} xmlns:oml="http://openml.org/openml">{"".join(parts)}</oml:{kind}>'


def _error(code: int, message: str) -> tuple[int, str]:
    return 412, _document("error", _tags(code=code, message=message))


def _listing(
    kind: str, entries: Sequence[str], filters: Mapping[str, str], *, none: int
) -> tuple[int, str]:
    """The page that is asked for; if it has no entries, the error of that number."""
    page = entries[int(filters["offset"]) :][: int(filters["limit"])]
    return (200, _document(kind, *page)) if page else _error(none, "No results")


def _evaluation(flow: int, task: int, evaluation: Evaluation, per_fold: bool) -> str:
    value = evaluation.raw if evaluation.raw is not None else repr(evaluation.value)
    found = (
        {"values": f"[{','.join(map(repr, evaluation.folds))}]"} if per_fold else {"value": value}
    )
    ids = {"run_id": evaluation.run, "task_id": task, "setup_id": evaluation.setup, "flow_id": flow}
    names = {"flow_name": "mlr.classif.svm(7)", "data_id": 1, "data_name": "data"}
    made = {"function": "area_under_roc_curve", "upload_time": "2017-07-16 13:36:20"}
    return _tags(evaluation=_tags(**ids, **names, **made, uploader=2702, **found))


def _setup(flow: int, number: int, parameters: Mapping[str, str] | str) -> str:
    head = _tags(setup_id=number, flow_id=flow)
    if isinstance(parameters, str):
        return _tags(setup=_Xml(head + parameters))
    of_flow = {"flow_id": flow, "flow_name": "mlr.classif.svm", "data_type": "discrete"}
    listed = [
        _tags(
            id=number * 100 + k,
            full_name=f"mlr.classif.svm(7)_{name}",
            parameter_name=name,
            default_value="",
            value=value,
            **of_flow,
        )
        for k, (name, value) in enumerate(parameters.items())
    ]
    return _tags(setup=_Xml(head + "".join(_tags(parameter=part) for part in listed)))


def _default(item: tuple[str, str | None]) -> str:
    name, value = item
    tags = _tags(name=name, data_type="discrete", default_value=value or "", description="")
    return _tags(parameter=tags)
