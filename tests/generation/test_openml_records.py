"""Downloading OpenML's records, against a server on the loopback interface through its client."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import openml_server as fake
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.benchmarks.openml_flows import ranger_space, svm_space, xgboost_space
from hpobench_ordered.errors import DownloadError, MissingExtraError, StoreError
from hpobench_ordered.generation._openml import client as openml_client
from hpobench_ordered.generation._openml.client import Connection
from hpobench_ordered.generation._openml.records import FlowRecords, download_records
from hpobench_ordered.generation._openml.setups import (
    MLR_DEFAULTS,
    Dropped,
    MlrSetups,
    merge_stated_values,
)
from hpobench_ordered.space import SearchSpace

FLOW = 5891
"""The flow of mlr's SVM."""
PAGE_SIZE = 4
FIRST_SETUP = 500
RUNS = {
    37: 10,  # several pages
    3485: 8,  # full pages
    10101: 0,
    9946: 3,  # one page
}
"""Numbers of evaluations of the tasks; each is a run, and has a setup, its hyperparameters."""
TASKS = tuple(RUNS)


def state_as_mlr(config: dict[str, Any], flow: int) -> dict[str, str]:
    """State a configuration as mlr does: as texts, without the values of the learner's defaults."""
    defaults = MLR_DEFAULTS[flow]
    stated = {}
    for name, value in config.items():
        if value != defaults.get(name):
            stated[name] = format_as_r(value)
    return stated


def format_as_r(value: Any) -> str:
    """Format a value as R's `as.character` does: "TRUE", and 15 significant digits."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value)


def list_pages(folder: Path) -> list[Path]:
    """Files of a download, each with the answer to one request, without its manifest."""
    return [path for path in folder.rglob("*.json") if path.name != "manifest.json"]


def sample_configs(space: SearchSpace, n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Random configurations."""
    unit_values = space.sample_unit(np.random.default_rng(seed), n)
    return space.configs(space.decode(unit_values))


@pytest.fixture(scope="module")
def content():
    """A server's evaluations of random configurations of the SVM, each with a setup of its own.

    Runs are numbered from 9000, and setups from 500.
    """
    rng = np.random.default_rng(1)
    evaluations: dict[int, list[fake.Evaluation]] = {task: [] for task in TASKS}
    task_of_run = np.repeat(TASKS, [RUNS[task] for task in TASKS]).tolist()
    for run, task in enumerate(task_of_run):
        has_folds = run % 3 != 0  # a third of the evaluations have no values of folds
        folds = tuple(rng.random(10).tolist()) if has_folds else ()
        value = float(rng.random())
        evaluations[task].append(fake.Evaluation(9000 + run, FIRST_SETUP + run, value, folds))

    setups = {}
    for number, config in enumerate(sample_configs(svm_space(), len(task_of_run))):
        not_tuned = {"openml.seed": "1", "scale": "NA"}
        setups[FIRST_SETUP + number] = state_as_mlr(config, FLOW) | not_tuned
    defaults = {"kernel": None, "cost": None, "gamma": "", "degree": "NA", "scale": "TRUE"}
    return fake.Content(FLOW, defaults, evaluations, setups)


@pytest.fixture(autouse=True, scope="module")
def client_uses_temporary_folders(tmp_path_factory):
    """Set where the client looks for configuration and cache when it is first imported."""
    folder = tmp_path_factory.mktemp("openml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("OPENML_CACHE_DIR", str(folder / "cache"))
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield


@pytest.fixture(scope="module")
def undisturbed(content, tmp_path_factory):
    """The result of a download without any fault, and the requests that it makes."""
    with fake.serving(content) as server:
        records = download(server, tmp_path_factory.mktemp("undisturbed") / "raw")
    return SimpleNamespace(frame=records.frame, dropped=records.dropped, requests=server.requests)


@pytest.fixture
def server(content):
    """A running server that has this content."""
    with fake.serving(content) as server:
        yield server


@pytest.fixture
def fetch(server, tmp_path):
    """A function that downloads all tasks, or as its options say, from the server.

    It always uses the same folder, so that a second call continues.
    """
    return partial(download, server, tmp_path / "raw")


@dataclass
class Clock:
    """A clock for tests that do not wait: time passes only by the pauses that it records."""

    pauses: list[float] = field(default_factory=list)

    def time(self) -> float:
        return sum(self.pauses)


def download(
    server: Any,
    folder: Path,
    clock: Clock | None = None,
    *,
    attempts: int = 3,
    timeout: float = 20.0,
    requests_per_second: float = 1.0,
    **options: Any,
) -> FlowRecords:
    """Download with a clock that does not wait, all tasks unless told otherwise."""
    clock = clock or Clock()
    space = svm_space()
    connection = Connection(
        server=server.address,
        attempts=attempts,
        timeout=timeout,
        requests_per_second=requests_per_second,
        clock=clock.time,
        sleep=clock.pauses.append,
    )
    settings = {
        "flow_id": FLOW,
        "tasks": TASKS,
        "page_size": PAGE_SIZE,
        "space": space,
        "setups": MlrSetups(space, MLR_DEFAULTS[FLOW]),
    }
    return download_records(folder=folder, connection=connection, **(settings | options))


class TestDownload:
    @pytest.fixture
    def evaluations(self, content):
        """All evaluations, in the order of tasks and runs."""
        evaluations = []
        for task in TASKS:
            evaluations += content.evaluations[task]
        return evaluations

    def test_all_evaluations_are_rows(self, undisturbed, evaluations):
        frame = undisturbed.frame

        assert frame["run"].tolist() == [evaluation.run for evaluation in evaluations]
        assert frame["training"].tolist() == [evaluation.setup for evaluation in evaluations]
        assert frame["value"].tolist() == [evaluation.value for evaluation in evaluations]

    def test_no_usable_evaluation_is_dropped(self, undisturbed):
        assert undisturbed.dropped == dict.fromkeys(Dropped, 0)

    def test_rows_are_in_the_order_of_tasks(self, undisturbed):
        expected = []
        for task, number_of_evaluations in RUNS.items():
            expected += [str(task)] * number_of_evaluations

        assert undisturbed.frame["task"].tolist() == expected

    def test_spread_is_over_folds(self, undisturbed, evaluations):
        """It is the standard deviation, or NaN for an evaluation without values of folds."""
        spreads = []
        for evaluation in evaluations:
            has_folds = len(evaluation.folds) > 0
            spreads.append(np.std(evaluation.folds, ddof=1) if has_folds else np.nan)

        np.testing.assert_allclose(undisturbed.frame["spread"], spreads, rtol=1e-12)

    def test_setups_become_configurations(self, undisturbed, evaluations):
        """Those that the server's content was made from, up to the digits that R writes."""
        space = svm_space()

        configs = undisturbed.frame.filter(like="config.")
        configs.columns = configs.columns.str.removeprefix("config.")

        expected = space.values(sample_configs(space, len(evaluations)))
        np.testing.assert_allclose(space.values(configs), expected, rtol=1e-13)

    def test_progress_counts_tasks_then_setups(self, fetch):
        progress: list[tuple[str, int, int]] = []

        fetch(progress=lambda *step: progress.append(step))

        assert progress[:5] == [
            ("evaluations", 0, 4),
            ("evaluations", 1, 4),
            ("evaluations", 2, 4),
            ("evaluations", 3, 4),
            ("evaluations", 4, 4),
        ]
        # Each of the 21 evaluations has a setup of its own.
        assert progress[-1] == ("setups", 21, 21)

    def test_another_task_may_be_added(self, server, fetch, undisturbed):
        fetch(tasks=(37,))
        server.requests.clear()

        frame = fetch(tasks=TASKS).frame

        pd.testing.assert_frame_equal(frame, undisturbed.frame)
        # The first task is not downloaded again.
        assert server.count("task/37/") == 0

    def test_selected_task_is_downloaded_alone(self, fetch):
        assert set(fetch(tasks=(37,)).frame["task"]) == {"37"}

    def test_many_setups_are_asked_in_parts(self, server, fetch, undisturbed, monkeypatch):
        """Here three at once, of 21 setups."""
        monkeypatch.setattr(openml_client, "IDS_PER_REQUEST", 3)

        frame = fetch().frame

        pd.testing.assert_frame_equal(frame, undisturbed.frame)
        assert server.count("setup/list") == 21 / 3


class TestStoppedServer:
    """The server stops when it is asked for the third page of evaluations, and starts again."""

    @pytest.fixture
    def stopped_server(self, server, fetch):
        """The server, after it stopped during a download; it is not started again."""

        def stop_at_third_page(page: int) -> None:
            if page == 2:  # pages are counted from 0
                server.stop()

        server.before_page = stop_at_third_page
        with pytest.raises(DownloadError, match=r"evaluations 8 to 11 .* task 37 .*3 attempts.*"):
            fetch()
        server.before_page = lambda page: None  # stop no more
        return server

    def test_next_download_fails_while_stopped(self, stopped_server, fetch):
        requests_before = list(stopped_server.requests)

        with pytest.raises(DownloadError, match="start again to continue"):
            fetch()

        # A stopped server gets no requests.
        assert stopped_server.requests == requests_before

    def test_download_continues_to_same_result(self, stopped_server, fetch, undisturbed):
        stopped_server.start()

        resumed = fetch()

        pd.testing.assert_frame_equal(resumed.frame, undisturbed.frame)
        assert resumed.dropped == undisturbed.dropped

    def test_only_page_in_flight_is_asked_again(self, stopped_server, fetch, undisturbed):
        """Requests before and after the stop, without the one that was not answered, are those of
        an undisturbed download.
        """
        requests_before = list(stopped_server.requests)
        assert len(stopped_server.pages) == 3
        stopped_server.requests.clear()
        stopped_server.start()

        fetch()

        first_request_after = stopped_server.requests[0]
        answered_before = requests_before[: requests_before.index(first_request_after)]
        assert answered_before + stopped_server.requests == undisturbed.requests


class TestDamagedFiles:
    @pytest.mark.slow
    @pytest.mark.parametrize("damage", ["empty", "cut", "list", "NaN"])
    def test_damaged_pages_are_named(self, fetch, tmp_path, damage):
        """Every stored page in turn is damaged, and put back."""
        fetch()
        for path in list_pages(tmp_path / "raw"):
            intact = path.read_bytes()
            half = intact[: len(intact) // 2]
            content_of_damage = {"empty": b"", "cut": half, "list": b"[]", "NaN": b"NaN"}
            path.write_bytes(content_of_damage[damage])

            with pytest.raises(StoreError, match=f"{path.name} is damaged.*delete it"):
                fetch()

            path.write_bytes(intact)

    @pytest.mark.slow
    def test_only_deleted_page_is_downloaded_again(self, server, fetch, undisturbed, tmp_path):
        """Every stored page in turn is damaged, named, deleted, and downloaded."""
        fetch()
        for path in list_pages(tmp_path / "raw"):
            path.write_bytes(b"")
            with pytest.raises(StoreError, match="delete it"):
                fetch()
            path.unlink()
            server.requests.clear()

            frame = fetch().frame

            pd.testing.assert_frame_equal(frame, undisturbed.frame)
            # A page takes one request; with evaluations three more, for users, folds, users.
            assert len(server.requests) in {1, 4}

    def test_pages_are_files(self, fetch, tmp_path):
        fetch()

        # Of four evaluations each, and an empty last one of each task
        pages_of_evaluations = (3 + 1) + (2 + 1) + (0 + 1) + (1 + 1)
        pages_of_setups = 1
        defaults = 1
        expected = pages_of_evaluations + pages_of_setups + defaults
        assert len(list_pages(tmp_path / "raw")) == expected

    def test_other_settings_in_same_folder_are_refused(self, fetch):
        fetch(page_size=4)

        message = r"page_size.: 4}, not .*page_size.: 5}; choose another"
        with pytest.raises(StoreError, match=message):
            fetch(page_size=5)

    def test_exchanged_page_is_refused(self, fetch, tmp_path):
        """A page, named after its first row, has the content of the next page."""
        fetch()
        folder = tmp_path / "raw" / "evaluations-37"
        content_of_second_page = (folder / "00000004.json").read_bytes()
        (folder / "00000000.json").write_bytes(content_of_second_page)

        with pytest.raises(StoreError, match=r"00000000\.json is damaged"):
            fetch()

    def test_damaged_manifest_is_refused(self, fetch, tmp_path):
        fetch()
        (tmp_path / "raw" / "manifest.json").write_text("{")

        with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
            fetch()

    def test_unwritable_folder_asks_for_nothing(self, server, fetch, tmp_path):
        (tmp_path / "raw").write_text("a file where the folder would be")

        with pytest.raises(StoreError, match="cannot store the download"):
            fetch()

        assert server.requests == []


def test_missing_client_names_its_extra(monkeypatch, fetch):
    monkeypatch.setitem(sys.modules, "openml", None)  # importing it fails

    with pytest.raises(MissingExtraError, match=r"\[train\]"):
        fetch()


PASSING_FAULTS = (
    fake.Fault.UNAVAILABLE,
    fake.Fault.RESET,
    fake.Fault.PROXY,
    fake.Fault.CUT,
    fake.Fault.BUSY,
)
"""What may go wrong with a request that is tried again."""


class TestFaults:
    @pytest.mark.parametrize("part", ["evaluation/list", "user/list", "per_fold", "setup/list"])
    def test_passing_faults_change_no_result(self, server, fetch, undisturbed, part):
        """All faults in turn on one kind of request, with enough attempts to get past them."""
        faults = list(PASSING_FAULTS)
        server.faults = {part: faults}

        frame = fetch(tasks=(9946,), attempts=len(PASSING_FAULTS) + 1).frame

        # The server takes a fault off the list when it happens.
        assert faults == []
        expected = undisturbed.frame.query("task == '9946'").reset_index(drop=True)
        pd.testing.assert_frame_equal(frame, expected)

    @pytest.mark.parametrize("part", ["evaluation/list", "user/list", "per_fold", "setup/list"])
    def test_pauses_double_after_faults(self, server, fetch, part):
        """From two seconds on, after each of five faults."""
        server.faults = {part: list(PASSING_FAULTS)}
        clock = Clock()

        # At such a pace, pauses between requests are tiny.
        attempts = len(PASSING_FAULTS) + 1
        fetch(clock, tasks=(9946,), attempts=attempts, requests_per_second=1e9)

        pauses_after_faults = [seconds for seconds in clock.pauses if seconds > 1e-3]
        assert pauses_after_faults == pytest.approx([2, 4, 8, 16, 32])

    @pytest.mark.parametrize(
        ("part", "fault", "reason"),
        [
            ("flow/5891", "UNAVAILABLE", "HTTP 503"),
            ("evaluation/list", "UNAVAILABLE", "HTTP 503"),
            ("evaluation/list", "PROXY", "oml:error"),
            ("evaluation/list", "RESET", "no connection"),
            ("per_fold", "BUSY", "Database connection error"),
            ("setup/list", "CUT", "ChunkedEncodingError"),
            ("flow", "HANG", r"no answer within 0\.1 s"),
        ],
    )
    def test_lasting_faults_end_download(self, server, fetch, part, fault, reason):
        """As many faults as attempts, each on one kind of request."""
        server.faults = {part: [fake.Fault[fault]] * 3}
        timeout = 0.1 if fault == "HANG" else 20.0  # seconds; a hanging server never answers

        with pytest.raises(DownloadError, match=f"in 3 attempts: .*{reason}.*start again"):
            fetch(tasks=(9946,), attempts=3, timeout=timeout)

        # The server takes a fault off the list when it happens: all three did.
        assert server.faults[part] == []

    def test_pauses_grow_up_to_a_limit(self, server, fetch):
        server.faults = {"flow": [fake.Fault.RESET] * 10}
        clock = Clock()

        with pytest.raises(DownloadError, match="10 attempts"):
            # At such a pace, there are no other pauses to speak of.
            fetch(clock, attempts=10, requests_per_second=1e9)

        # Seconds between ten attempts: they double up to a minute.
        assert clock.pauses == pytest.approx([2, 4, 8, 16, 32, 60, 60, 60, 60])

    def test_the_pace_is_kept(self, server, fetch):
        """One request every two seconds, on a clock that is moved by pauses alone.

        Listings count as two requests, as the client asks for users, too.
        """
        clock = Clock()

        fetch(clock, requests_per_second=0.5)

        # The last page of each task is empty; the others are listed once more, with folds.
        listings_of_evaluations = len(server.pages)
        listings_of_folds = len(server.pages) - len(TASKS)
        requests_for_flow = 1
        # After the last request, for setups, there is no pause.
        requests = requests_for_flow + 2 * (listings_of_evaluations + listings_of_folds)
        assert clock.time() == pytest.approx(2 * requests)

    def test_refusal_ends_the_download(self, server, fetch):
        """Unlike other faults, it is not tried again."""
        with pytest.raises(DownloadError, match=r"refuses to give flow 1: .*Function not valid"):
            fetch(flow_id=1)

        assert len(server.requests) == 1

    def test_only_unreadable_setups_are_an_error(self, server, fetch, content):
        """If some setups could be read, the others would be dropped and counted."""
        setups = dict.fromkeys(content.setups, "<oml:parameter>text</oml:parameter>")
        server.content = replace(content, setups=setups)

        with pytest.raises(DownloadError, match="cannot read any of 21 setups"):
            fetch()

    def test_evaluations_of_other_tasks_are_refused(self, server, fetch, content):
        """As the server's answer to a request for one task."""
        server.content = replace(content, ignores_task=True)

        with pytest.raises(DownloadError, match=r"task 3485, OpenML answered with others"):
            fetch(tasks=(3485,))

    def test_a_listing_without_entries_ends_a_task(self, server, fetch, undisturbed):
        """OpenML usually answers with an error after the last page, here with an empty list."""
        after_last_page = "offset/12/task/37"  # the task has 10 evaluations
        server.faults = {after_last_page: [fake.Fault.EMPTY]}

        frame = fetch().frame

        pd.testing.assert_frame_equal(frame, undisturbed.frame)
        assert server.faults[after_last_page] == []

    def test_folds_may_be_refused(self, server, fetch, undisturbed, content):
        server.content = replace(content, refuses_folds=True)

        frame = fetch().frame

        without_spread = undisturbed.frame.assign(spread=np.nan)  # the deviation over folds
        pd.testing.assert_frame_equal(frame, without_spread)


class TestConfigurationOfClient:
    """A download uses neither the user's key nor cache, and leaves the configuration as it was."""

    @pytest.fixture
    def cache(self, tmp_path):
        """The folder that the user's configuration names as the cache."""
        return tmp_path / "cache"

    @pytest.fixture
    def configuration(self, cache, monkeypatch):
        """The client's configuration with a user's key, number of retries and cache."""
        import openml

        cache_before = openml.config.get_config_as_dict()["cachedir"]
        monkeypatch.setattr(openml.config, "apikey", "secret")
        monkeypatch.setattr(openml.config, "connection_n_retries", 7)
        openml.config.set_root_cache_directory(cache)
        yield openml.config
        openml.config.set_root_cache_directory(cache_before)

    def test_is_put_back_after_download(self, fetch, configuration):
        before = configuration.get_config_as_dict()

        fetch()

        assert configuration.get_config_as_dict() == before

    @pytest.fixture
    def failing_fetch(self, server, fetch):
        """A function whose download fails after three attempts."""

        def fail() -> None:
            server.faults = {"flow": [fake.Fault.RESET] * 3}
            with pytest.raises(DownloadError):
                fetch(attempts=3)

        return fail

    def test_is_put_back_after_error(self, failing_fetch, configuration):
        before = configuration.get_config_as_dict()

        failing_fetch()

        assert configuration.get_config_as_dict() == before

    @pytest.mark.usefixtures("configuration")
    @pytest.mark.parametrize("download_fixture", ["fetch", "failing_fetch"])
    def test_users_key_is_not_sent(self, request, server, download_fixture):
        download_or_fail = request.getfixturevalue(download_fixture)

        download_or_fail()

        # The user's key is "secret".
        assert server.count("secret") == 0

    @pytest.mark.usefixtures("configuration")
    @pytest.mark.parametrize("download_fixture", ["fetch", "failing_fetch"])
    def test_users_cache_is_not_used(self, request, cache, download_fixture):
        download_or_fail = request.getfixturevalue(download_fixture)

        download_or_fail()

        assert not cache.exists()


def make_evaluation(run: int, setup: int, text: str | None = None) -> fake.Evaluation:
    """An evaluation of value 0.5, or one with a text in place of its value."""
    return fake.Evaluation(run, setup, 0.5, raw=text)


UNUSABLE_SETUPS: dict[int, Any] = {
    600: {"kernel": "linear"},  # fine: cost has a default
    601: {"cost": "2"},  # the radial kernel's gamma has no default
    602: {"gamma": "0.5", "cost": "many"},
    603: {"kernel": "linear", "cost": "1000"},  # the upper bound is 998.49
    604: {"kernel": "laplace"},
    605: "<oml:parameter><oml:id>?</oml:id></oml:parameter>",
    606: "<oml:parameter>text</oml:parameter>",
    607: "",  # a setup without parameters: all defaults, but gamma has none
}
"""Setups of which all but the first cannot be read; texts are XML."""


class TestUnusableRecords:
    @pytest.fixture
    def count_dropped(self, server, content, fetch):
        """A function that downloads evaluations of a task, and counts the dropped ones by reason.

        The setups from 500 on are fine, of those from 600 on only the first.
        """

        def count(evaluations: Iterable[fake.Evaluation]) -> dict[Dropped, int]:
            server.content = replace(
                content,
                evaluations={37: tuple(evaluations)},
                setups=UNUSABLE_SETUPS | content.setups,
            )
            dropped = fetch(tasks=(37,)).dropped
            return {reason: number for reason, number in dropped.items() if number > 0}

        return count

    def test_values_and_missing_setup_are_dropped(self, count_dropped):
        """Values that are not finite or no numbers, and an evaluation whose setup does not exist;
        two of six are fine.
        """
        dropped = count_dropped(
            [
                make_evaluation(0, 500),
                make_evaluation(1, 501, "nan"),
                make_evaluation(2, 502, "inf"),
                make_evaluation(3, 503, "?"),
                make_evaluation(4, 999),  # there is no such setup
                make_evaluation(5, 505),
            ]
        )

        assert dropped == {
            Dropped.NOT_FINITE: 2,
            Dropped.UNPARSABLE: 1,
            Dropped.MISSING_SETUP: 1,
        }

    def test_page_of_malformed_values_ends_nothing(self, count_dropped):
        """Evaluations after it are downloaded, too: the last one is fine, so it is not dropped."""
        malformed_page = [make_evaluation(run, 500, "?") for run in range(PAGE_SIZE)]

        dropped = count_dropped([*malformed_page, make_evaluation(100, 501)])

        assert dropped == {Dropped.UNPARSABLE: PAGE_SIZE}

    def test_repeated_run_is_dropped(self, count_dropped):
        runs = [0, 1, 2, 3, 3, 4]

        dropped = count_dropped([make_evaluation(run, 500 + run) for run in runs])

        assert dropped == {Dropped.DUPLICATE: 1}

    def test_repeated_page_ends_listing(self, count_dropped):
        """A server that ignores the offset gives the same page five times: only two are read."""
        page = [make_evaluation(run, 500) for run in range(PAGE_SIZE)]

        dropped = count_dropped(page * 5)

        assert dropped == {Dropped.DUPLICATE: PAGE_SIZE}

    def test_unusable_setups_are_dropped(self, count_dropped):
        """One evaluation of each setup; only the first of eight setups is fine."""
        evaluations = [make_evaluation(run, setup) for run, setup in enumerate(UNUSABLE_SETUPS)]

        dropped = count_dropped(evaluations)

        assert dropped == {
            Dropped.MISSING_PARAMETER: 2,  # 601 and 607
            Dropped.UNPARSABLE: 3,  # 602, 605 and 606
            Dropped.OUT_OF_BOUNDS: 2,  # 603 and 604
        }


def test_flows_defaults_come_before_the_learners(server, content, fetch):
    """A setup that states nothing has the flow's defaults, and else those of the learner."""
    server.content = replace(
        content,
        evaluations={37: (make_evaluation(0, 600),)},
        setups={600: {"degree": "NA"}},  # not stated
        defaults={"kernel": "polynomial", "gamma": "0.25", "cost": None},
    )

    (row,) = fetch(tasks=(37,)).frame.to_dict("records")

    # The flow's
    assert row["config.kernel"] == "polynomial"
    assert row["config.gamma"] == 0.25
    # The learner's
    assert row["config.cost"] == 1.0
    assert row["config.degree"] == 3


def make_linear(cost: Any) -> dict[str, Any]:
    """A configuration of the linear kernel: stated, with a text as cost, or read, with a number."""
    return {"kernel": "linear", "cost": cost}


STATED_POLYNOMIAL = {"kernel": "polynomial", "cost": "1", "gamma": "1"}
READ_POLYNOMIAL = {"kernel": "polynomial", "cost": 1.0, "gamma": 1.0}


class TestSetups:
    """Setups as configurations, without a server.

    They are read given the task, here 37, on whose data defaults may depend. What cannot be read is
    the reason why it is dropped.
    """

    @pytest.mark.parametrize(
        ("flow", "space"),
        [(5891, svm_space()), (6767, xgboost_space()), (6794, ranger_space())],
        ids=["SVM", "XGBoost", "ranger"],
    )
    @given(seed=st.integers(0, 2**32 - 1))
    def test_configurations_stated_by_mlr_are_read(self, flow, space, seed):
        """Of the flows of SVM, XGBoost and ranger, each with the search space of its benchmark."""
        (config,) = sample_configs(space, 1, seed)
        read_setup = MlrSetups(space, MLR_DEFAULTS[flow])

        read = read_setup(state_as_mlr(config, flow), 37)

        assert isinstance(read, dict)  # else the reason why it was dropped
        # Up to the 15 digits that R writes.
        np.testing.assert_allclose(space.row(read), space.row(config), rtol=1e-14)
        assert list(map(type, read.values())) == list(map(type, config.values()))

    @pytest.mark.parametrize(
        "text", ["radial", " radial", '"radial"', "'radial'", '["radial"]', "Radial"]
    )
    def test_ways_to_write_choices(self, text):
        """With spaces, quotes, brackets, or a capital letter."""
        read = MlrSetups(svm_space())(STATED_POLYNOMIAL | {"kernel": text}, 37)

        assert read == READ_POLYNOMIAL | {"kernel": "radial"}

    @pytest.mark.parametrize(
        "text", ["TRUE", "1L", "", "[1, 2]", "NaN", "-Inf", "{}", "[", "1e999"]
    )
    def test_texts_that_are_no_numbers(self, text):
        assert MlrSetups(svm_space())(make_linear(text), 37) is Dropped.UNPARSABLE

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("0.000986", make_linear(0.000986)),
            ("0.0009856", make_linear(0.000986)),
            ("0.0009854", Dropped.OUT_OF_BOUNDS),
            ("998.4924374", make_linear(998.492437)),
            ("998.4924376", Dropped.OUT_OF_BOUNDS),
            ("-1", Dropped.OUT_OF_BOUNDS),
        ],
    )
    def test_bounds_are_known_rounded(self, text, expected):
        """The bounds of the cost, 0.000986 and 998.492437, are rounded: values that round to one of
        them are read as it.
        """
        assert MlrSetups(svm_space())(make_linear(text), 37) == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2", READ_POLYNOMIAL | {"degree": 2}),
            ("5.0", READ_POLYNOMIAL | {"degree": 5}),
            ("6", Dropped.OUT_OF_BOUNDS),
            ("2.5", Dropped.UNPARSABLE),
        ],
    )
    def test_ways_to_write_integers(self, text, expected):
        """The degree is from 2 to 5."""
        assert MlrSetups(svm_space())(STATED_POLYNOMIAL | {"degree": text}, 37) == expected

    def test_inactive_hyperparameters_are_ignored(self):
        stated = make_linear("1") | {"gamma": "?", "degree": "900"}  # of other kernels

        assert MlrSetups(svm_space())(stated, 37) == make_linear(1.0)

    @pytest.mark.parametrize("text", ["TRUE", "true", "True", '"TRUE"', "[true]"])
    def test_ways_to_write_true(self, text):
        """`replace` is true, in several spellings; numbers, too, may be written otherwise."""
        stated = {
            "num.trees": "1e+02",
            "sample.fraction": ".5",
            "mtry": "'0.5'",
            "min.node.size": "1",
            "respect.unordered.factors": "FALSE",
            "replace": text,
        }

        assert MlrSetups(ranger_space())(stated, 37) == {
            "num.trees": 100,
            "sample.fraction": 0.5,
            "mtry": 0.5,
            "min.node.size": 1.0,
            "respect.unordered.factors": False,
            "replace": True,
        }

    @pytest.mark.parametrize(
        ("stated", "task", "expected"),
        [
            pytest.param(
                {"cost": "16"},
                37,
                {"kernel": "radial", "cost": 2.0, "gamma": 1 / 8},
                id="gamma is not stated",
            ),
            pytest.param(
                {"cost": "36", "gamma": "2"},
                3,
                {"kernel": "radial", "cost": 1.0, "gamma": 2.0},
                id="gamma is stated",
            ),
        ],
    )
    def test_converters_use_data_of_task(self, stated, task, expected):
        """Here cost is recorded times the number of columns, and gamma defaults to its inverse."""
        columns = {37: 8, 3: 36}

        def convert_gamma(gamma: float | None, task: int) -> float:
            return 1 / columns[task] if gamma is None else gamma

        def convert_cost(cost: float | None, task: int) -> float | None:
            return None if cost is None else cost / columns[task]

        converters = {"gamma": convert_gamma, "cost": convert_cost}
        read_setup = MlrSetups(svm_space(), MLR_DEFAULTS[5891], converters)

        assert read_setup(stated, task) == expected

    def test_missing_values_are_the_flows(self):
        """None, "", "NA" and "NULL" say that a value is not stated."""
        flow = {"kernel": "linear", "cost": "NA", "degree": None, "gamma": "1"}
        setup = {"kernel": "NULL", "cost": "3", "gamma": None, "degree": ""}

        merged = merge_stated_values(setup, flow)

        assert merged == {"kernel": "linear", "cost": "3", "gamma": "1"}
