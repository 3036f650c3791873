"""The command line, called as a user calls it, in an empty folder."""

import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from hpobench_ordered.cli import main

Result = subprocess.CompletedProcess[str]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder; the cache is its subfolder `cache`, the user's benchmarks `own`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(tmp_path / "own"))
    return tmp_path


@pytest.fixture
def folder_of_user(folder):
    """The folder of benchmarks that the user generates; it does not exist at first."""
    return folder / "own"


@pytest.fixture
def cli(folder, monkeypatch):
    """A function that calls the command line in this process, in the empty working folder.

    It takes the words after `hpobench-ordered`, and environment variables by keyword.
    """

    def call(*words: str, **environment: str) -> Result:
        """Call the command line in this process, and catch its exit code and what it prints."""
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["hpobench-ordered", *words])
            for name, value in environment.items():
                patch.setenv(name, value)
            # The command line always ends with this exception, which holds the exit code.
            with pytest.raises(SystemExit) as caught:
                main()

        exit_code = int(caught.value.code or 0)  # None, too, stands for 0
        return Result(words, exit_code, out.getvalue(), err.getvalue())

    # `main` sets a handler of its own for this signal.
    handler_before = signal.getsignal(signal.SIGTERM)
    yield call
    signal.signal(signal.SIGTERM, handler_before)


@pytest.fixture
def process(folder):
    """A function that calls the command line in a process of its own.

    It is called in `folder`, the empty working folder, and takes what `cli` takes.
    """

    def call(*words: str, **environment: str) -> Result:
        """Call the command line in a new process, with further environment variables."""
        return subprocess.run(
            [sys.executable, "-m", "hpobench_ordered", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=False,
        )

    return call
