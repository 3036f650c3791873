from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered.experiment.failures import Failure, Reason
from hpobench_ordered.experiment.overview import Overview
from hpobench_ordered.reporting import Report, ReportInput, write_report
from hpobench_ordered.reporting.scoring import runs_of

ORDERED = "ordered(trials=6, tasks=None)"
OTHER = "leave-one-out(trials=4)"
HOSTILE = 'a_b & 5% </script><img src=x onerror="alert(1)"> ü|'
"""Name of a method, as nobody should choose it."""

METHODS = ("random-search", "bo", HOSTILE, "cts")


def _trials(benchmark: str, protocol: str, trials: int, entropy: int) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [METHODS, range(4), range(3), range(1, trials + 1)],
        names=["method", "seed", "task", "trial"],
    )
    frame = pd.DataFrame(index=index).reset_index()
    loss = np.random.default_rng(entropy).random(len(frame))
    loss += frame["method"].map(dict(zip(METHODS, (0.4, 0.2, 0.1, 0.0), strict=True)))
    return frame.assign(
        benchmark=benchmark,
        surrogate="forest",
        protocol=protocol,
        task_name=frame["task"].map("<i>{}</i>".format),
        loss=loss,
        value=-loss,
        regret=loss + 0.5,
        fallbacks=0,
    )


@pytest.fixture(scope="session")
def page_input() -> ReportInput:
    """Three benchmarks and two protocols; a method failed once, another everywhere on one."""
    trials = pd.concat(
        [
            _trials("newsvendor@1", ORDERED, 6, 1),
            _trials("xgboost-mnist@1", ORDERED, 6, 2),
            _trials("own@1", ORDERED, 6, 3),
            _trials("newsvendor@1", OTHER, 4, 4),
        ],
        ignore_index=True,
    )
    runs = runs_of(trials)
    runs = runs.assign(key=[f"key-{n}" for n in range(len(runs))], method_version="")
    failed = (runs["method"] == HOSTILE) & (runs["seed"] == 1) & (runs["benchmark"] == "own@1")
    missing = (runs["method"] == "cts") & (runs["seed"] > 0) & (runs["benchmark"] == "own@1")
    runs.loc[failed, "state"] = "failed"
    runs.loc[missing, "state"] = "missing"
    done = runs[runs["state"] == "done"]
    bad = runs[failed].iloc[0]
    failure = Failure(
        **bad.drop("state").to_dict(),
        reason=Reason.RAISED,
        message="<b onclick=alert(2)>bad</b>",
        task="<u>1</u>",
        when="trial 3",
        traceback="Traceback\n</pre><script>alert(3)</script>",
    )
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
    group = ["benchmark", "surrogate", "protocol", "method", "seed"]
    return ReportInput(
        trials.merge(done[group]),
        Overview(runs, 2, (failure,), (session,)),
        done.assign(suggestions=18, seconds=1.0, method_seconds=0.5),
    )


@pytest.fixture(scope="session")
def page_report(page_input: ReportInput, tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder: Path = tmp_path_factory.mktemp("written") / "report"
    return write_report(page_input, folder)
