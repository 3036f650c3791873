"""Bars for what takes long, where somebody can see them."""

import sys
from types import SimpleNamespace

import pytest

from hpobench_ordered import Ordered, run
from hpobench_ordered.runtime import progress as _progress
from hpobench_ordered.runtime.progress import watched


class Notebook:
    """Stands for IPython in a notebook: remembers what is displayed."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def install(self, patch: pytest.MonkeyPatch) -> None:
        shell = type("ZMQInteractiveShell", (), {})()
        module = SimpleNamespace(get_ipython=lambda: shell)
        patch.setitem(sys.modules, "IPython", module)
        patch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=self.show))

    def show(self, line: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        self.lines.append(line)
        return SimpleNamespace(update=self.lines.append)


@pytest.fixture
def notebook(monkeypatch):
    stand_in = Notebook()
    stand_in.install(monkeypatch)
    return stand_in


def test_a_notebook_shows_a_bar_after_a_while(notebook, monkeypatch):
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    with watched(True, what="runs") as move:
        for done in range(4):
            move(done, 3)
    assert len(notebook.lines) == 4
    assert 'value="1" max="3"' in notebook.lines[1] and "1 of 3 runs" in notebook.lines[1]
    assert "3 of 3 runs" in notebook.lines[-1] and "left" not in notebook.lines[-1]


def test_what_is_quick_shows_none(notebook):
    protocol = Ordered(trials=2, tasks=1)
    run(benchmarks=["forrester"], methods=["random-search"], seeds=[0], protocol=protocol)
    assert notebook.lines == []


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "DELAY", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with watched(True, what="runs") as move:
        move(1, 2)
        move(2, 2)
    assert "2/2" in capsys.readouterr().err
    monkeypatch.undo()
    with watched(True, what="runs") as move:  # nobody sees it in a file
        assert move is None


def test_a_function_is_called_instead(notebook):
    seen: list[tuple[int, int]] = []
    with watched(lambda done, total: seen.append((done, total)), what="runs") as move:
        move(1, 2)
    assert seen == [(1, 2)]
