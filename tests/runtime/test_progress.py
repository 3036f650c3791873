"""Progress bars, where somebody can see them."""

import sys
from types import SimpleNamespace

import pytest

from hpobench_ordered import Ordered, run
from hpobench_ordered.runtime import progress
from hpobench_ordered.runtime.progress import show_progress


@pytest.fixture
def notebook_lines(monkeypatch):
    """The lines that a notebook displays, in their order."""
    lines: list[str] = []

    def display(line: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        lines.append(line)
        return SimpleNamespace(update=lines.append)

    shell = type("ZMQInteractiveShell", (), {})()
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    return lines


@pytest.fixture
def moved_notebook_lines(notebook_lines, monkeypatch):
    """The lines of a bar that moves from 0 to 3 of 3 runs and is shown at once."""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    with show_progress(True, unit="runs") as move:
        for done in range(4):
            move(done, 3)
    return notebook_lines


def test_notebook_shows_every_move(moved_notebook_lines):
    assert len(moved_notebook_lines) == 4
    assert 'value="1" max="3"' in moved_notebook_lines[1]
    assert "1 of 3 runs" in moved_notebook_lines[1]


def test_finished_bar_has_no_remaining_time(moved_notebook_lines):
    assert "left" in moved_notebook_lines[1]
    assert "3 of 3 runs" in moved_notebook_lines[-1]
    assert "left" not in moved_notebook_lines[-1]


def test_quick_runs_show_no_bar(notebook_lines):
    protocol = Ordered(trials=2, tasks=1)
    run(benchmarks=["forrester"], methods=["random-search"], seeds=[0], protocol=protocol)
    assert notebook_lines == []


def test_terminal_shows_bar(monkeypatch, capsys):
    monkeypatch.setattr(progress, "DELAY", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with show_progress(True, unit="runs") as move:
        move(1, 2)
        move(2, 2)
    assert "2/2" in capsys.readouterr().err


def test_output_to_file_has_no_bar(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with show_progress(True, unit="runs") as move:
        assert move is None


def test_function_is_called_in_place_of_bar(notebook_lines):
    calls: list[tuple[int, int]] = []
    with show_progress(lambda done, total: calls.append((done, total)), unit="runs") as move:
        move(1, 2)
    assert calls == [(1, 2)]
    assert notebook_lines == []
