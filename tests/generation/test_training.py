"""Trainings as jobs: order, files, continuing after a stop, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from joblib import parallel_config

from hpobench_ordered.errors import StoreError
from hpobench_ordered.generation._training import TrainingJob, run_trainings

SIX_JOBS = [
    TrainingJob(where, {"x": x, "mode": "a"}) for where, x in product(("37", "4"), (1, 2, 3))
]
"""Three configurations at each of two places, 37 and 4; a place is, say, a task."""


@dataclass(frozen=True)
class StubTrainer:
    """Trains by a formula, and leaves an empty file, a mark, for every call."""

    marks: Path
    """Folder of the marks."""
    name: str = "stub"

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Leave a mark of the call; the loss is the place, a number as text, plus a third of x."""
        x = config["x"]
        mark = f"{where}-{x}-{time.monotonic_ns()}"  # a name of its own for each call
        (self.marks / mark).touch()
        return {"loss": int(where) + x / 3, "parts": [x, None, True]}

    def count_calls(self) -> int:
        return len(list(self.marks.iterdir()))


@pytest.fixture
def folder(tmp_path):
    """The folder where trainings are stored; it does not exist yet."""
    return tmp_path / "outcomes"


@pytest.fixture
def stub(tmp_path):
    """A trainer that has not been called yet; its marks are in a folder of their own."""
    (tmp_path / "marks").mkdir()
    return StubTrainer(tmp_path / "marks")


def test_outcomes_are_in_the_order_of_jobs(stub, folder):
    """Outcomes come in the order of jobs, here the reversed one.

    The stub's loss tells which job it is of.
    """
    jobs = SIX_JOBS[::-1]

    outcomes = run_trainings(stub, jobs, folder)

    # The stub's loss is the place, a number as text, plus a third of x.
    losses = [int(job.where) + job.config["x"] / 3 for job in jobs]
    assert [outcome["loss"] for outcome in outcomes] == losses


def test_file_has_job_trainer_and_outcome(stub, folder):
    """A training is stored with all that decides whether it can be used again."""
    job = TrainingJob("37", {"x": 1, "mode": "a"})

    (outcome,) = run_trainings(stub, [job], folder)

    (file,) = (folder / "37").iterdir()
    assert json.loads(file.read_bytes()) == {
        "where": "37",
        "config": {"x": 1, "mode": "a"},
        "trainer": {"name": "stub"},  # its identity
        "outcome": outcome,
    }


def test_workers_do_not_matter(stub, tmp_path):
    """Two workers give the same outcomes as one."""
    outcomes = run_trainings(stub, SIX_JOBS, tmp_path / "one")

    with parallel_config(backend="threading"):  # processes could not import this module
        outcomes_of_two = run_trainings(stub, SIX_JOBS, tmp_path / "two", workers=2)

    assert outcomes_of_two == outcomes


@pytest.mark.parametrize("lost", [[], [2, 5], [0, 1, 2, 3, 4, 5]])
def test_missing_trainings_are_done(stub, folder, lost):
    """If files of some of the six trainings are lost, only these trainings are done again.

    Progress is told first when stored trainings were counted, then after each other one.
    """
    outcomes = run_trainings(stub, SIX_JOBS, folder)
    files = sorted(folder.rglob("*.json"))
    for index in lost:
        files[index].unlink()
    progress: list[tuple[int, int]] = []

    outcomes_again = run_trainings(
        stub, SIX_JOBS, folder, progress=lambda step, done, total: progress.append((done, total))
    )

    assert outcomes_again == outcomes
    assert stub.count_calls() == len(SIX_JOBS) + len(lost)
    stored = 6 - len(lost)
    assert progress == [(done, 6) for done in range(stored, 6 + 1)]


FIRST_JOB = SIX_JOBS[0]


def test_equal_jobs_are_trained_once(stub, folder):
    """Both jobs get the outcome of the one training."""
    first, second = run_trainings(stub, [FIRST_JOB, FIRST_JOB], folder)

    assert stub.count_calls() == 1
    assert first == second


@pytest.mark.parametrize(
    ("job", "name_of_trainer", "number_of_trainings"),
    [
        (FIRST_JOB, "stub", 1),
        (TrainingJob("37", {"mode": "a", "x": 1}), "stub", 1),  # in another order
        (TrainingJob("38", {"x": 1, "mode": "a"}), "stub", 2),
        (TrainingJob("37", {"x": 1.5, "mode": "a"}), "stub", 2),
        (FIRST_JOB, "other", 2),
    ],
)
def test_place_config_and_trainer_identify_training(
    stub, folder, job, name_of_trainer, number_of_trainings
):
    """A job that equals an earlier one in place, configuration and trainer is not trained again.

    With the earlier job, `FIRST_JOB`, that makes one training; else there are two. That job is at
    place 37, with x = 1 and mode = a, in any order.
    """
    run_trainings(stub, [FIRST_JOB], folder)

    run_trainings(replace(stub, name=name_of_trainer), [job], folder)

    assert stub.count_calls() == number_of_trainings


class FailingAtFifth(StubTrainer):
    """A stub that fails at the fifth of the six jobs."""

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train like the stub, but fail at the fifth of `SIX_JOBS`."""
        fifth_job = SIX_JOBS[4]
        if where == fifth_job.where and config == fifth_job.config:
            raise MemoryError
        return super().__call__(config, where)


def test_failure_keeps_finished_trainings(stub, folder):
    """The fifth of six jobs fails, and the sixth is not begun; then only these are trained."""
    with pytest.raises(MemoryError):
        run_trainings(FailingAtFifth(stub.marks), SIX_JOBS, folder)
    assert stub.count_calls() == 4

    run_trainings(stub, SIX_JOBS, folder)

    assert stub.count_calls() == 4 + 2


@pytest.mark.parametrize("content", [b"", b"{}", b'{"outcome": {"loss": 0.'])
def test_damaged_file_starts_nothing(stub, folder, content):
    """A stored training whose file is empty, cut, or other JSON ends everything with an error."""
    last_job = SIX_JOBS[-1]
    run_trainings(stub, [last_job], folder)
    (file,) = folder.rglob("*.json")
    file.write_bytes(content)

    with pytest.raises(StoreError, match=rf"{file.name}.*delete it"):
        run_trainings(stub, SIX_JOBS, folder)

    # The one training before the damage.
    assert stub.count_calls() == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is POSIX")
def test_kill_loses_only_the_current_training(tmp_path):
    """A process that trains four jobs is killed during the third, and started again."""
    script = textwrap.dedent("""
        import os, sys, time
        from pathlib import Path
        from hpobench_ordered.generation._training import TrainingJob, run_trainings

        folder, seconds_of_third = Path(sys.argv[1]), float(sys.argv[2])

        class SlowAtThird:
            identity = {"name": "slow"}
            def __call__(self, config, where):
                if where == "3":
                    (folder / "reached").touch()
                    time.sleep(seconds_of_third)
                return {"size": int(where)}

        jobs = [TrainingJob(where, {"x": 0.5}) for where in "1234"]
        outcomes = run_trainings(SlowAtThird(), jobs, folder / "kept")
        print([outcome["size"] for outcome in outcomes])
    """)
    command = [sys.executable, "-c", script, str(tmp_path)]
    process = subprocess.Popen([*command, "600"])
    deadline = time.monotonic() + 60
    while not (tmp_path / "reached").exists() and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    files = sorted((tmp_path / "kept").rglob("*.json"))
    assert [file.parent.name for file in files] == ["1", "2"]
    written_at = [file.stat().st_mtime_ns for file in files]

    result = subprocess.run([*command, "0"], capture_output=True, text=True, check=True)

    assert result.stdout == "[1, 2, 3, 4]\n"
    # The stored trainings were not repeated.
    assert [file.stat().st_mtime_ns for file in files] == written_at
