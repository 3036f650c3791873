"""Downloading OpenML's records, against a server on the loopback interface through its client."""

import math
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

SVM_FLOW = 5891
"""The flow of mlr's SVM."""
PAGE_SIZE = 4
FIRST_SETUP = 500
NUMBER_OF_EVALUATIONS = {
    37: 10,  # several pages
    3485: 8,  # full pages
    10101: 0,
    9946: 3,  # one page
}
"""Numbers of evaluations of the tasks; each is a run, and has a setup, its hyperparameters."""
TASKS = tuple(NUMBER_OF_EVALUATIONS)


def write_setup_as_mlr(config: dict[str, Any], flow: int) -> dict[str, str]:
    """Write a configuration as mlr records it: as texts, without values that are its defaults."""
    defaults = MLR_DEFAULTS[flow]
    setup = {}
    for name, value in config.items():
        if value != defaults.get(name):
            setup[name] = format_as_r(value)
    return setup


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
    """Draw n random configurations of a search space."""
    unit_values = space.sample_unit(np.random.default_rng(seed), n)
    return space.configs(space.decode(unit_values))


@pytest.fixture(scope="module")
def content():
    """What the server holds: evaluations of random configurations of the SVM, and their setups.

    OpenML calls an evaluation a run, here numbered from 9000, and a configuration a setup, here
    numbered from 500. Each run has a setup of its own.
    """
    rng = np.random.default_rng(1)
    evaluations: dict[int, list[fake.Evaluation]] = {task: [] for task in TASKS}
    task_of_run = np.repeat(TASKS, list(NUMBER_OF_EVALUATIONS.values())).tolist()
    for run, task in enumerate(task_of_run):
        has_folds = run % 3 != 0  # a third of the evaluations have no values of folds
        folds = tuple(rng.random(10).tolist()) if has_folds else ()
        value = float(rng.random())
        evaluations[task].append(fake.Evaluation(9000 + run, FIRST_SETUP + run, value, folds))

    setups = {}
    for number, config in enumerate(sample_configs(svm_space(), len(task_of_run))):
        not_tuned = {"openml.seed": "1", "scale": "NA"}
        setups[FIRST_SETUP + number] = write_setup_as_mlr(config, SVM_FLOW) | not_tuned
    defaults = {"kernel": None, "cost": None, "gamma": "", "degree": "NA", "scale": "TRUE"}
    return fake.Content(SVM_FLOW, defaults, evaluations, setups)


@pytest.fixture(autouse=True, scope="module")
def client_uses_temporary_folders(tmp_path_factory):
    """Let OpenML's client keep configuration and cache in a temporary folder, and use no proxy."""
    folder = tmp_path_factory.mktemp("openml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("OPENML_CACHE_DIR", str(folder / "cache"))
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield


@pytest.fixture(scope="module")
def download_without_faults(content, tmp_path_factory):
    """What a download gives when nothing goes wrong: table, dropped records, and requests."""
    with fake.serving(content) as server:
        records = download(server, tmp_path_factory.mktemp("undisturbed") / "raw")
    return SimpleNamespace(frame=records.frame, dropped=records.dropped, requests=server.requests)


@pytest.fixture
def server(content):
    """A running server that holds what the fixture `content` made up."""
    with fake.serving(content) as running_server:
        yield running_server


@pytest.fixture
def download_all(server, tmp_path):
    """A function that downloads all tasks, or as its options say, from the server.

    It always uses the same folder, so that a second call continues the first.
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
    """Download records with a clock that does not wait; `options` may name some tasks only."""
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
        "flow_id": SVM_FLOW,
        "tasks": TASKS,
        "page_size": PAGE_SIZE,
        "space": space,
        "setups": MlrSetups(space, MLR_DEFAULTS[SVM_FLOW]),
    }
    return download_records(folder=folder, connection=connection, **(settings | options))


class TestDownload:
    @pytest.fixture
    def evaluations(self, content):
        """All evaluations that the server holds, in the order of tasks and runs."""
        evaluations = []
        for task in TASKS:
            evaluations += content.evaluations[task]
        return evaluations

    def test_all_evaluations_are_rows(self, download_without_faults, evaluations):
        """A row has the run, the setup, as `training`, and the value of an evaluation."""
        frame = download_without_faults.frame

        assert frame["run"].tolist() == [evaluation.run for evaluation in evaluations]
        assert frame["training"].tolist() == [evaluation.setup for evaluation in evaluations]
        assert frame["value"].tolist() == [evaluation.value for evaluation in evaluations]

    def test_no_usable_evaluation_is_dropped(self, download_without_faults):
        assert download_without_faults.dropped == dict.fromkeys(Dropped, 0)

    def test_rows_are_in_the_order_of_tasks(self, download_without_faults):
        expected = []
        for task, number in NUMBER_OF_EVALUATIONS.items():
            expected += [str(task)] * number

        assert download_without_faults.frame["task"].tolist() == expected

    def test_spread_is_over_folds(self, download_without_faults, evaluations):
        """The spread is the standard deviation over folds, or NaN without values of folds."""
        spreads = []
        for evaluation in evaluations:
            has_folds = len(evaluation.folds) > 0
            spreads.append(np.std(evaluation.folds, ddof=1) if has_folds else np.nan)

        np.testing.assert_allclose(download_without_faults.frame["spread"], spreads, rtol=1e-12)

    def test_setups_become_configurations(self, download_without_faults, evaluations):
        """Configurations are those that the server's setups were made of.

        They are equal up to the digits that R writes.
        """
        space = svm_space()

        configs = download_without_faults.frame.filter(like="config.")
        configs.columns = configs.columns.str.removeprefix("config.")

        expected = space.values(sample_configs(space, len(evaluations)))
        np.testing.assert_allclose(space.values(configs), expected, rtol=1e-13)

    def test_progress_counts_tasks_then_setups(self, download_all):
        """Evaluations of the four tasks are listed in turn; their 21 setups come at once."""
        progress: list[tuple[str, int, int]] = []

        download_all(progress=lambda step, done, total: progress.append((step, done, total)))

        assert progress[:5] == [
            ("evaluations", 0, 4),
            ("evaluations", 1, 4),
            ("evaluations", 2, 4),
            ("evaluations", 3, 4),
            ("evaluations", 4, 4),
        ]
        assert progress[-1] == ("setups", 21, 21)

    def test_another_task_may_be_added(self, server, download_all, download_without_faults):
        """A second download, of all tasks, does not ask again for the one of the first."""
        download_all(tasks=(37,))
        server.requests.clear()

        frame = download_all(tasks=TASKS).frame

        pd.testing.assert_frame_equal(frame, download_without_faults.frame)
        assert server.count("task/37/") == 0

    def test_selected_task_is_downloaded_alone(self, download_all):
        assert set(download_all(tasks=(37,)).frame["task"]) == {"37"}

    def test_many_setups_are_asked_in_parts(
        self, server, download_all, download_without_faults, monkeypatch
    ):
        """At most so many are asked for at once: here three of 21."""
        monkeypatch.setattr(openml_client, "IDS_PER_REQUEST", 3)

        frame = download_all().frame

        pd.testing.assert_frame_equal(frame, download_without_faults.frame)
        assert server.count("setup/list") == 21 / 3


class TestStoppedServer:
    """The server stops when it is asked for the third page of evaluations, and starts again."""

    @pytest.fixture
    def stopped_server(self, server, download_all):
        """The server, stopped when a download asked for the third page of evaluations.

        A page has four evaluations, so the third has numbers 8 to 11. Started again, the server
        works.
        """

        def stop_at_third_page(page: int) -> None:
            if page == 2:  # pages are counted from 0
                server.stop()

        server.before_page = stop_at_third_page
        with pytest.raises(DownloadError, match=r"evaluations 8 to 11 .* task 37 .*3 attempts.*"):
            download_all()
        server.before_page = lambda page: None  # stop no more
        return server

    def test_next_download_fails_while_stopped(self, stopped_server, download_all):
        """The error tells that the download can be continued. A stopped server gets no requests."""
        requests_before = list(stopped_server.requests)

        with pytest.raises(DownloadError, match="start again to continue"):
            download_all()

        assert stopped_server.requests == requests_before

    def test_download_continues_to_same_result(
        self, stopped_server, download_all, download_without_faults
    ):
        """A download that broke off is continued, and gives what one without faults gives."""
        stopped_server.start()

        resumed = download_all()

        pd.testing.assert_frame_equal(resumed.frame, download_without_faults.frame)
        assert resumed.dropped == download_without_faults.dropped

    def test_only_page_in_flight_is_asked_again(
        self, stopped_server, download_all, download_without_faults
    ):
        """After a stop, only the page that was not answered is asked for again.

        So the requests answered before the stop, and all after it, are together those of a download
        without faults.
        """
        requests_before = list(stopped_server.requests)
        assert len(stopped_server.pages) == 3
        stopped_server.requests.clear()
        stopped_server.start()

        download_all()

        request_for_page_in_flight = stopped_server.requests[0]
        number_answered = requests_before.index(request_for_page_in_flight)
        answered_before = requests_before[:number_answered]
        assert answered_before + stopped_server.requests == download_without_faults.requests


class TestDamagedFiles:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "damage",
        [
            pytest.param(lambda content: b"", id="empty"),
            pytest.param(lambda content: content[: len(content) // 2], id="cut"),
            pytest.param(lambda content: b"[]", id="other JSON"),
            pytest.param(lambda content: b"NaN", id="no JSON"),
        ],
    )
    def test_damaged_pages_are_named(self, download_all, tmp_path, damage):
        """Every stored page in turn is damaged, named by an error, and put back."""
        download_all()
        for path in list_pages(tmp_path / "raw"):
            intact_content = path.read_bytes()
            path.write_bytes(damage(intact_content))

            with pytest.raises(StoreError, match=f"{path.name} is damaged.*delete it"):
                download_all()

            path.write_bytes(intact_content)

    @pytest.mark.slow
    def test_only_deleted_page_is_downloaded_again(
        self, server, download_all, download_without_faults, tmp_path
    ):
        """Every stored page in turn is damaged, named by an error, deleted, and downloaded."""
        download_all()
        for path in list_pages(tmp_path / "raw"):
            path.write_bytes(b"")
            with pytest.raises(StoreError, match="delete it"):
                download_all()
            path.unlink()
            server.requests.clear()

            frame = download_all().frame

            pd.testing.assert_frame_equal(frame, download_without_faults.frame)
            # A page of evaluations takes four requests: a list without values of folds, one with
            # them, and after each list the names of users. Other pages take one.
            assert len(server.requests) in {1, 4}

    def test_pages_are_files(self, download_all, tmp_path):
        """Pages have four evaluations; the last page of each task is found to be empty."""
        download_all()

        pages_of_evaluations = 0
        for number in NUMBER_OF_EVALUATIONS.values():
            pages_with_evaluations = math.ceil(number / PAGE_SIZE)
            empty_page = 1
            pages_of_evaluations += pages_with_evaluations + empty_page
        pages_of_setups = 1
        pages_of_defaults = 1
        expected = pages_of_evaluations + pages_of_setups + pages_of_defaults
        assert len(list_pages(tmp_path / "raw")) == expected

    def test_other_settings_in_same_folder_are_refused(self, download_all):
        """A folder of pages of four evaluations cannot be continued with pages of five."""
        download_all(page_size=4)

        message = r"page_size.: 4}, not .*page_size.: 5}; choose another"
        with pytest.raises(StoreError, match=message):
            download_all(page_size=5)

    def test_exchanged_page_is_refused(self, download_all, tmp_path):
        """A page, whose file is named after its first row, has the content of the next page."""
        download_all()
        folder = tmp_path / "raw" / "evaluations-37"
        content_of_second_page = (folder / "00000004.json").read_bytes()
        (folder / "00000000.json").write_bytes(content_of_second_page)

        with pytest.raises(StoreError, match=r"00000000\.json is damaged"):
            download_all()

    def test_damaged_manifest_is_refused(self, download_all, tmp_path):
        download_all()
        (tmp_path / "raw" / "manifest.json").write_text("{")

        with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
            download_all()

    def test_unwritable_folder_asks_for_nothing(self, server, download_all, tmp_path):
        """If answers cannot be stored, the server is not asked at all."""
        (tmp_path / "raw").write_text("a file where the folder would be")

        with pytest.raises(StoreError, match="cannot store the download"):
            download_all()

        assert server.requests == []


def test_missing_client_names_its_extra(monkeypatch, download_all):
    """Importing OpenML's client fails, as if it were not installed."""
    monkeypatch.setitem(sys.modules, "openml", None)  # importing it fails

    with pytest.raises(MissingExtraError, match=r"\[train\]"):
        download_all()


PASSING_FAULTS = (
    fake.Fault.UNAVAILABLE,
    fake.Fault.RESET,
    fake.Fault.PROXY,
    fake.Fault.CUT,
    fake.Fault.BUSY,
)
"""What may go wrong with a request that is tried again."""


class TestFaults:
    @pytest.mark.parametrize(
        "part_of_address", ["evaluation/list", "user/list", "per_fold", "setup/list"]
    )
    def test_passing_faults_change_no_result(
        self, server, download_all, download_without_faults, part_of_address
    ):
        """All faults happen to one kind of request, which is tried often enough to pass."""
        faults = list(PASSING_FAULTS)
        server.faults = {part_of_address: faults}

        frame = download_all(tasks=(9946,), attempts=len(PASSING_FAULTS) + 1).frame

        # The server takes a fault off the list when it happens.
        assert faults == []
        frame_without_faults = download_without_faults.frame
        expected = frame_without_faults.query("task == '9946'").reset_index(drop=True)
        pd.testing.assert_frame_equal(frame, expected)

    @pytest.mark.parametrize(
        "part_of_address", ["evaluation/list", "user/list", "per_fold", "setup/list"]
    )
    def test_pauses_double_after_faults(self, server, download_all, part_of_address):
        """After each of five faults the pause is twice as long, from two seconds on."""
        server.faults = {part_of_address: list(PASSING_FAULTS)}
        clock = Clock()

        # So many requests a second that pauses for the pace are tiny.
        attempts = len(PASSING_FAULTS) + 1
        download_all(clock, tasks=(9946,), attempts=attempts, requests_per_second=1e9)

        pauses_after_faults = [seconds for seconds in clock.pauses if seconds > 1e-3]
        assert pauses_after_faults == pytest.approx([2, 4, 8, 16, 32])

    @pytest.mark.parametrize(
        ("part_of_address", "fault", "reason"),
        [
            ("flow/5891", fake.Fault.UNAVAILABLE, "HTTP 503"),
            ("evaluation/list", fake.Fault.UNAVAILABLE, "HTTP 503"),
            ("evaluation/list", fake.Fault.PROXY, "oml:error"),
            ("evaluation/list", fake.Fault.RESET, "no connection"),
            ("per_fold", fake.Fault.BUSY, "Database connection error"),
            ("setup/list", fake.Fault.CUT, "ChunkedEncodingError"),
            ("flow", fake.Fault.HANG, r"no answer within 0\.1 s"),
        ],
    )
    def test_lasting_faults_end_download(
        self, server, download_all, part_of_address, fault, reason
    ):
        """There are as many faults as attempts, three, all on one kind of request."""
        server.faults = {part_of_address: [fault] * 3}
        # Seconds; a hanging server never answers.
        timeout = 0.1 if fault is fake.Fault.HANG else 20.0

        with pytest.raises(DownloadError, match=f"in 3 attempts: .*{reason}.*start again"):
            download_all(tasks=(9946,), attempts=3, timeout=timeout)

        # The server takes a fault off the list when it happens: all three did.
        assert server.faults[part_of_address] == []

    def test_pauses_grow_up_to_a_limit(self, server, download_all):
        """Between ten attempts, pauses double up to a minute."""
        server.faults = {"flow": [fake.Fault.RESET] * 10}
        clock = Clock()

        with pytest.raises(DownloadError, match="10 attempts"):
            # So many requests a second that there are no other pauses to speak of.
            download_all(clock, attempts=10, requests_per_second=1e9)

        assert clock.pauses == pytest.approx([2, 4, 8, 16, 32, 60, 60, 60, 60])

    def test_the_pace_is_kept(self, server, download_all):
        """There are at least two seconds from one request to the next, on a clock without waiting.

        A list of evaluations takes two requests, as the client also asks for the names of users.
        """
        clock = Clock()

        download_all(clock, requests_per_second=0.5)

        # Pages are listed without and with values of folds; the empty last page of a task, once.
        lists_without_folds = len(server.pages)
        lists_with_folds = len(server.pages) - len(TASKS)
        requests_for_flow = 1
        requests_for_lists = 2 * (lists_without_folds + lists_with_folds)
        # After the last request, for setups, there is no pause.
        requests_with_pause = requests_for_flow + requests_for_lists
        assert clock.time() == pytest.approx(2 * requests_with_pause)

    def test_refusal_ends_the_download(self, server, download_all):
        """OpenML refuses a request for a flow that it does not have; it is not asked again."""
        with pytest.raises(DownloadError, match=r"refuses to give flow 1: .*Function not valid"):
            download_all(flow_id=1)

        assert len(server.requests) == 1

    def test_only_unreadable_setups_are_an_error(self, server, download_all, content):
        """If some setups could be read, the others would only be dropped and counted."""
        setups = dict.fromkeys(content.setups, "<oml:parameter>text</oml:parameter>")
        server.content = replace(content, setups=setups)

        with pytest.raises(DownloadError, match="cannot read any of 21 setups"):
            download_all()

    def test_evaluations_of_other_tasks_are_refused(self, server, download_all, content):
        """Asked for evaluations of one task, the server answers with those of all."""
        server.content = replace(content, ignores_task=True)

        with pytest.raises(DownloadError, match=r"task 3485, OpenML answered with others"):
            download_all(tasks=(3485,))

    def test_a_listing_without_entries_ends_a_task(
        self, server, download_all, download_without_faults
    ):
        """After the last page OpenML usually answers with an error, but here with an empty list.

        Task 37 has ten evaluations, so its last page begins before number 12.
        """
        after_last_page = "offset/12/task/37"
        server.faults = {after_last_page: [fake.Fault.EMPTY]}

        frame = download_all().frame

        pd.testing.assert_frame_equal(frame, download_without_faults.frame)
        # The server takes a fault off the list when it happens.
        assert server.faults[after_last_page] == []

    def test_download_without_folds_lacks_spread(
        self, server, download_all, download_without_faults, content
    ):
        """OpenML may refuse to give values of folds, over which the spread is the deviation."""
        server.content = replace(content, refuses_folds=True)

        frame = download_all().frame

        without_spread = download_without_faults.frame.assign(spread=np.nan)
        pd.testing.assert_frame_equal(frame, without_spread)


class TestConfigurationOfClient:
    """A download uses neither the user's key nor cache, and leaves the configuration as it was."""

    @pytest.fixture
    def cache(self, tmp_path):
        """The folder that the user's configuration names as the cache."""
        return tmp_path / "cache"

    @pytest.fixture
    def configuration(self, cache, monkeypatch):
        """The client's configuration, with a user's key, number of retries and cache."""
        import openml

        cache_before = openml.config.get_config_as_dict()["cachedir"]
        monkeypatch.setattr(openml.config, "apikey", "secret")
        monkeypatch.setattr(openml.config, "connection_n_retries", 7)
        openml.config.set_root_cache_directory(cache)
        yield openml.config
        openml.config.set_root_cache_directory(cache_before)

    def test_configuration_is_the_same_after_download(self, download_all, configuration):
        """A download sets options of OpenML's client, and then sets the user's again."""
        before = configuration.get_config_as_dict()

        download_all()

        assert configuration.get_config_as_dict() == before

    @pytest.fixture
    def fail_to_download(self, server, download_all):
        """A function whose download fails after three attempts; it raises no error."""

        def fail() -> None:
            """Download, and expect it to fail, as all three attempts at a request do."""
            server.faults = {"flow": [fake.Fault.RESET] * 3}
            with pytest.raises(DownloadError):
                download_all(attempts=3)

        return fail

    def test_configuration_is_the_same_after_error(self, fail_to_download, configuration):
        """A download that fails sets the user's options of OpenML's client again, too."""
        before = configuration.get_config_as_dict()

        fail_to_download()

        assert configuration.get_config_as_dict() == before

    @pytest.mark.usefixtures("configuration")
    @pytest.mark.parametrize("fixture_that_downloads", ["download_all", "fail_to_download"])
    def test_users_key_is_not_sent(self, request, server, fixture_that_downloads):
        """The user's key of OpenML, here "secret", is in no request.

        That holds for a download that succeeds and for one that fails.
        """
        download = request.getfixturevalue(fixture_that_downloads)

        download()

        assert server.count("secret") == 0

    @pytest.mark.usefixtures("configuration")
    @pytest.mark.parametrize("fixture_that_downloads", ["download_all", "fail_to_download"])
    def test_users_cache_is_not_used(self, request, cache, fixture_that_downloads):
        """The folder of the user's cache is not even made.

        That holds for a download that succeeds and for one that fails.
        """
        download = request.getfixturevalue(fixture_that_downloads)

        download()

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
    def count_dropped(self, server, content, download_all):
        """A function that downloads evaluations of a task, and counts the dropped ones by reason.

        Setups from 500 on can be read. Those from 600 on are `UNUSABLE_SETUPS`, of which only the
        first can be read.
        """

        def count(evaluations: Iterable[fake.Evaluation]) -> dict[Dropped, int]:
            """Let the server have these evaluations of task 37 alone; download and count them."""
            server.content = replace(
                content,
                evaluations={37: tuple(evaluations)},
                setups=UNUSABLE_SETUPS | content.setups,
            )
            number_of_reason = download_all(tasks=(37,)).dropped
            return {reason: number for reason, number in number_of_reason.items() if number > 0}

        return count

    def test_unusable_values_are_dropped(self, count_dropped):
        """Three values are not finite or no numbers; the first and the last are fine."""
        dropped = count_dropped(
            [
                make_evaluation(run=0, setup=500),
                make_evaluation(run=1, setup=501, text="nan"),
                make_evaluation(run=2, setup=502, text="inf"),
                make_evaluation(run=3, setup=503, text="?"),
                make_evaluation(run=4, setup=504),
            ]
        )

        assert dropped == {Dropped.NOT_FINITE: 2, Dropped.UNPARSABLE: 1}

    def test_evaluation_without_setup_is_dropped(self, count_dropped):
        """The setup 999 of the second evaluation does not exist."""
        dropped = count_dropped(
            [make_evaluation(run=0, setup=500), make_evaluation(run=1, setup=999)]
        )

        assert dropped == {Dropped.MISSING_SETUP: 1}

    def test_page_of_malformed_values_ends_nothing(self, count_dropped):
        """A page of which nothing is left is not the last: the evaluation after it is not lost."""
        malformed_page = []
        for run in range(PAGE_SIZE):
            malformed_page.append(make_evaluation(run, setup=500, text="?"))

        dropped = count_dropped([*malformed_page, make_evaluation(run=100, setup=501)])

        assert dropped == {Dropped.UNPARSABLE: PAGE_SIZE}

    def test_repeated_run_is_dropped(self, count_dropped):
        """Run 3 comes twice."""
        runs = [0, 1, 2, 3, 3, 4]

        dropped = count_dropped([make_evaluation(run, setup=500 + run) for run in runs])

        assert dropped == {Dropped.DUPLICATE: 1}

    def test_repeated_page_ends_listing(self, count_dropped):
        """A server that ignores the offset gives the same page five times: only two are read."""
        page = [make_evaluation(run, setup=500) for run in range(PAGE_SIZE)]

        dropped = count_dropped(page * 5)

        assert dropped == {Dropped.DUPLICATE: PAGE_SIZE}

    def test_unusable_setups_are_dropped(self, count_dropped):
        """Each of `UNUSABLE_SETUPS`, 600 to 607, has one evaluation; only 600 can be read."""
        evaluations = [make_evaluation(run, setup) for run, setup in enumerate(UNUSABLE_SETUPS)]

        dropped = count_dropped(evaluations)

        assert dropped == {
            Dropped.MISSING_PARAMETER: len([601, 607]),
            Dropped.UNPARSABLE: len([602, 605, 606]),
            Dropped.OUT_OF_BOUNDS: len([603, 604]),
        }


def test_flows_defaults_come_before_the_learners(server, content, download_all):
    """A setup lacks values that are defaults: those of the flow, or else those of mlr's learner.

    The setup here states nothing, as "NA" stands for a missing value.
    """
    server.content = replace(
        content,
        evaluations={37: (make_evaluation(run=0, setup=600),)},
        setups={600: {"degree": "NA"}},
        defaults={"kernel": "polynomial", "gamma": "0.25", "cost": None},
    )

    (row,) = download_all(tasks=(37,)).frame.to_dict("records")

    # The flow's defaults
    assert row["config.kernel"] == "polynomial"
    assert row["config.gamma"] == 0.25
    # The learner's
    assert row["config.cost"] == 1.0
    assert row["config.degree"] == 3


def make_linear(cost: Any) -> dict[str, Any]:
    """A configuration of the linear kernel: stated, with a text as cost, or read, with a number."""
    return {"kernel": "linear", "cost": cost}


POLYNOMIAL_SETUP = {"kernel": "polynomial", "cost": "1", "gamma": "1"}
POLYNOMIAL_CONFIG = {"kernel": "polynomial", "cost": 1.0, "gamma": 1.0}


RANGER_SETUP = {
    "num.trees": "1e+02",
    "sample.fraction": ".5",
    "mtry": "'0.5'",
    "min.node.size": "1",
    "respect.unordered.factors": "FALSE",
    "replace": "TRUE",
}
RANGER_CONFIG = {
    "num.trees": 100,
    "sample.fraction": 0.5,
    "mtry": 0.5,
    "min.node.size": 1.0,
    "respect.unordered.factors": False,
    "replace": True,
}


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
        """A configuration written as mlr records it is read again, up to the 15 digits of R.

        `flow` is OpenML's number of a learner, and `space` the search space of its benchmark.
        """
        (config,) = sample_configs(space, 1, seed)
        read_setup = MlrSetups(space, MLR_DEFAULTS[flow])

        read_config = read_setup(write_setup_as_mlr(config, flow), task=37)

        assert isinstance(read_config, dict)  # else the reason why it was dropped
        np.testing.assert_allclose(space.row(read_config), space.row(config), rtol=1e-14)
        types = [type(value) for value in config.values()]
        assert [type(value) for value in read_config.values()] == types

    @pytest.mark.parametrize(
        "text", ["radial", " radial", '"radial"', "'radial'", '["radial"]', "Radial"]
    )
    def test_ways_to_write_choices(self, text):
        """Setups write a choice with spaces, quotes, brackets or a capital letter."""
        read_setup = MlrSetups(svm_space())

        config = read_setup(POLYNOMIAL_SETUP | {"kernel": text}, task=37)

        assert config == POLYNOMIAL_CONFIG | {"kernel": "radial"}

    @pytest.mark.parametrize(
        "text", ["TRUE", "1L", "", "[1, 2]", "NaN", "-Inf", "{}", "[", "1e999"]
    )
    def test_texts_that_are_no_numbers(self, text):
        assert MlrSetups(svm_space())(make_linear(text), task=37) is Dropped.UNPARSABLE

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
    def test_values_that_round_to_bounds_are_read(self, text, expected):
        """The bounds of the cost, 0.000986 and 998.492437, are themselves rounded numbers.

        So a value a little beyond one of them is read as this bound, if it rounds to it.
        """
        read_setup = MlrSetups(svm_space())

        assert read_setup(make_linear(text), task=37) == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2", POLYNOMIAL_CONFIG | {"degree": 2}),
            ("5.0", POLYNOMIAL_CONFIG | {"degree": 5}),
            ("6", Dropped.OUT_OF_BOUNDS),
            ("2.5", Dropped.UNPARSABLE),
        ],
    )
    def test_ways_to_write_integers(self, text, expected):
        """The degree is from 2 to 5."""
        assert MlrSetups(svm_space())(POLYNOMIAL_SETUP | {"degree": text}, task=37) == expected

    def test_inactive_hyperparameters_are_ignored(self):
        """A linear kernel has no gamma and no degree: unusable values of them do not matter."""
        read_setup = MlrSetups(svm_space())
        setup = make_linear("1") | {"gamma": "?", "degree": "900"}

        assert read_setup(setup, task=37) == make_linear(1.0)

    @pytest.mark.parametrize("text", ["TRUE", "true", "True", '"TRUE"', "[true]"])
    def test_ways_to_write_true(self, text):
        """Of ranger's hyperparameters `replace` is true, in several spellings."""
        read_setup = MlrSetups(ranger_space())

        config = read_setup(RANGER_SETUP | {"replace": text}, task=37)

        assert config == RANGER_CONFIG | {"replace": True}

    def test_ways_to_write_numbers(self):
        """Numbers have exponents, no leading zero, or quotes."""
        read_setup = MlrSetups(ranger_space())

        config = read_setup(RANGER_SETUP, task=37)

        assert config == RANGER_CONFIG

    @pytest.mark.parametrize(
        ("setup", "task", "config"),
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
    def test_converters_use_data_of_task(self, setup, task, config):
        """Converters turn recorded numbers into hyperparameters, given the task.

        Here cost was recorded times the number of columns, and gamma, if it is not recorded, is one
        over this number: 8 in task 37 and 36 in task 3.
        """
        columns = {37: 8, 3: 36}

        def convert_gamma(gamma: float | None, task: int) -> float:
            return 1 / columns[task] if gamma is None else gamma

        def convert_cost(cost: float | None, task: int) -> float | None:
            return None if cost is None else cost / columns[task]

        converters = {"gamma": convert_gamma, "cost": convert_cost}
        read_setup = MlrSetups(svm_space(), MLR_DEFAULTS[SVM_FLOW], converters)

        assert read_setup(setup, task) == config

    def test_missing_values_of_setup_are_the_flows(self):
        """A setup or flow says by None, "", "NA" or "NULL" that it has no value.

        So the kernel and gamma are the flow's, the cost is the setup's, and neither has a degree.
        """
        flow = {"kernel": "linear", "cost": "NA", "degree": None, "gamma": "1"}
        setup = {"kernel": "NULL", "cost": "3", "degree": "", "gamma": None}

        merged = merge_stated_values(setup, flow)

        assert merged == {"kernel": "linear", "cost": "3", "gamma": "1"}
