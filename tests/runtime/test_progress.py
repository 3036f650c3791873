"""Bars for what takes long, where somebody can see them."""

import sys
from types import SimpleNamespace

import pytest

from hpobench_ordered import Ordered, run
from hpobench_ordered.runtime import progress as _progress
from hpobench_ordered.runtime.progress import show_progress


@pytest.fixture
def lines(monkeypatch):
    """What a notebook displays."""
    shown: list[str] = []

    def display(line: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(line)
        return SimpleNamespace(update=shown.append)

    shell = type("ZMQInteractiveShell", (), {})()
    module = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    return shown


def test_a_notebook_shows_a_bar_after_a_while(lines, monkeypatch):
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    with show_progress(True, unit="runs") as move:
        for done in range(4):
            move(done, 3)
    assert len(lines) == 4
    assert 'value="1" max="3"' in lines[1] and "1 of 3 runs" in lines[1]
    assert "3 of 3 runs" in lines[-1] and "left" not in lines[-1]


def test_what_is_quick_shows_none(lines):
    protocol = Ordered(trials=2, tasks=1)
    run(benchmarks=["forrester"], methods=["random-search"], seeds=[0], protocol=protocol)
    assert lines == []


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "DELAY", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show_progress(True, unit="runs") as move:
        move(1, 2)
        move(2, 2)
    assert "2/2" in capsys.readouterr().err
    monkeypatch.undo()
    with show_progress(True, unit="runs") as move:  # nobody sees it in a file
        assert move is None


def test_a_function_is_called_instead(lines):
    seen: list[tuple[int, int]] = []
    with show_progress(lambda done, total: seen.append((done, total)), unit="runs") as move:
        move(1, 2)
    assert seen == [(1, 2)]
