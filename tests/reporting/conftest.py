"""A report of random results, with texts that nobody should be able to break its page with."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from reporting_support import COLUMNS_OF_RUN, HOSTILE, OTHER, made_up_trials, overview_runs

from hpobench_ordered.experiment.overview import Overview
from hpobench_ordered.experiment.records import Failure, Reason
from hpobench_ordered.reporting.write import ReportInput, write_report


@pytest.fixture(scope="session")
def page_input():
    """Three benchmarks and two protocols; a method failed once, another everywhere on one."""
    names = ("newsvendor@1", "xgboost-mnist@1", "own@1")
    parts = [made_up_trials(name, entropy=number) for number, name in enumerate(names, 1)]
    parts.append(made_up_trials("newsvendor@1", protocol=OTHER, trials=4, entropy=4, seeds=4))
    trials = pd.concat(parts, ignore_index=True)
    runs = overview_runs(trials)
    is_own = runs["benchmark"] == "own@1"
    failed = is_own & (runs["method"] == HOSTILE) & (runs["seed"] == 1)
    missing = is_own & (runs["method"] == "cts") & (runs["seed"] > 0)
    runs.loc[failed, "state"] = "failed"
    runs.loc[missing, "state"] = "missing"
    done = runs[runs["state"] == "done"]

    failure: dict[str, Any] = {
        "reason": Reason.RAISED,
        "message": "<b onclick=alert(2)>bad</b>",
        "task": "<u>1</u>",
        "when": "trial 3",
        "traceback": "Traceback\n</pre><script>alert(3)</script>",
    }
    bad = {f.name: runs[failed].iloc[0].get(f.name, "") for f in fields(Failure)} | failure
    session = {
        "started": "2026-01-02T03:04:05+00:00",
        "experiment": "0123456789abcdef0123",
        "workers": 2,
        "backend": "processes",
        "time_limit": 300.0,
        "python": "3.11.7",
        "platform": "Linux-6.18.44-some-long-name-x86_64-with-glibc2.36-and-more",
        "cores": 2,
        "processor": "<s>fast</s>",
        "memory": 8 * 2**30,
        "packages": {"numpy": "2.0"},
    }
    return ReportInput(
        trials.merge(done[COLUMNS_OF_RUN]),
        Overview(runs, 2, (Failure(**bad),), (session,)),
        done.assign(suggestions=18, seconds=1.0, method_cpu_seconds=0.5),
        limits={"own@1 (forest)": ["<em>rough</em> near the edge"]},
    )


@pytest.fixture(scope="session")
def page_report(page_input, tmp_path_factory):
    """A written report: of three benchmarks under one protocol, and of one under another."""
    folder: Path = tmp_path_factory.mktemp("written") / "report"
    return write_report(page_input, folder)
