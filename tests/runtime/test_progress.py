"""Progress bars, where somebody can see them."""

import sys
from types import SimpleNamespace

import pytest

from hpobench_ordered import Ordered, run
from hpobench_ordered.runtime import progress
from hpobench_ordered.runtime.progress import show_progress


@pytest.fixture
def notebook_lines(monkeypatch):
    """The lines that a notebook displays, in their order, as if the tests ran in one."""
    lines: list[str] = []

    def display(line: str, *, display_id: bool) -> SimpleNamespace:
        """Record the first line; `update` of what is returned records those that replace it."""
        assert display_id  # without it, lines could not be replaced
        lines.append(line)
        return SimpleNamespace(update=lines.append)

    class ZMQInteractiveShell:
        """IPython's shell has a class of this name in notebooks only."""

    ipython = SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    return lines


@pytest.fixture
def lines_of_four_moves(notebook_lines, monkeypatch):
    """The lines of a bar that moves to 0, 1, 2 and 3 of 3 runs."""
    monkeypatch.setattr(progress, "DELAY", 0.0)  # seconds until a bar is shown
    with show_progress(True, unit="runs") as move:
        for finished in range(4):
            move(finished, 3)
    return notebook_lines


def test_notebook_shows_every_move(lines_of_four_moves):
    """The second line, after one of three runs, has a bar at 1 of 3, and says so."""
    _, line_after_one_run, _, _ = lines_of_four_moves

    assert 'value="1" max="3"' in line_after_one_run
    assert "1 of 3 runs" in line_after_one_run


def test_finished_bar_has_no_remaining_time(lines_of_four_moves):
    """A bar that is not finished says, for instance, "2 s left"."""
    _, line_after_one_run, _, last_line = lines_of_four_moves

    assert "left" in line_after_one_run
    assert "3 of 3 runs" in last_line
    assert "left" not in last_line


def test_quick_runs_show_no_bar(notebook_lines):
    """A bar is shown after two seconds, which these runs do not take."""
    protocol = Ordered(trials=2, tasks=1)

    run(benchmarks=["forrester"], methods=["random-search"], seeds=[0], protocol=protocol)

    assert notebook_lines == []


def test_terminal_shows_bar(monkeypatch, capsys):
    """If standard error is a terminal, the bar with its counts is written there."""
    monkeypatch.setattr(progress, "DELAY", -1.0)  # a bar is shown at once, not after some seconds
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)  # as if it were a terminal

    with show_progress(True, unit="runs") as move:
        move(1, 2)
        move(2, 2)

    assert "2/2" in capsys.readouterr().err


def test_output_to_file_has_no_bar(monkeypatch):
    """There is no bar without a terminal, and so no function that would move it."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)

    with show_progress(True, unit="runs") as move:
        assert move is None


def test_function_is_called_in_place_of_bar(notebook_lines):
    """A user's own function can show the progress: it is called with each move."""
    calls: list[tuple[int, int]] = []

    def record_call(finished: int, total: int) -> None:
        calls.append((finished, total))

    with show_progress(record_call, unit="runs") as move:
        move(1, 2)

    assert calls == [(1, 2)]
    assert notebook_lines == []
