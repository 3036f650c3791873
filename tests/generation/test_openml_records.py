"""OpenML's records: listed by a stub of its client, stored by task, and read as configurations."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.benchmarks.openml_flows import (
    make_ranger_space,
    make_svm_space,
    make_xgboost_space,
)
from hpobench_ordered.errors import DownloadError, MissingExtraError, StoreError
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
FLOW_DEFAULTS = {"kernel": None, "cost": None, "gamma": "", "degree": "NA", "scale": "TRUE"}


def write_setup_as_mlr(config: dict[str, Any], flow: int) -> dict[str, str]:
    """Write a configuration as mlr records it: as texts, without values that are its defaults."""
    defaults = MLR_DEFAULTS[flow]
    return {
        name: format_as_r(value) for name, value in config.items() if value != defaults.get(name)
    }


def format_as_r(value: Any) -> str:
    """Format a value as R's `as.character` does: "TRUE", and 15 significant digits."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value)


def sample_configs(space: SearchSpace, n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Draw n random configurations of a search space."""
    unit_values = space.sample_unit(np.random.default_rng(seed), n)
    return space.configs(space.decode(unit_values))


def list_as_client(*records: tuple[int, float | None, Any]) -> pd.DataFrame:
    """List records as OpenML's client does.

    Args:
        records: The run, its value, and what its setup states, by parameter, or NaN.
    """
    rows = []
    for run, value, stated in records:
        parameters = stated
        if isinstance(stated, dict):
            parameters = {f"mlr.classif.svm(7)_{name}": text for name, text in stated.items()}
        rows.append((run, 500 + run, value, parameters))
    return pd.DataFrame(rows, columns=["run_id", "setup_id", "value", "parameters"])


@pytest.fixture
def listings():
    """The listing of each task: two with 4 and 3 random configurations, and an empty one."""
    configs = sample_configs(make_svm_space(), 7)
    records = [
        (run, run / 10, write_setup_as_mlr(config, SVM_FLOW) | {"scale": "NA"})
        for run, config in enumerate(configs)
    ]
    return {37: list_as_client(*records[:4]), 9946: list_as_client(*records[4:]), 3: pd.DataFrame()}


@pytest.fixture
def asked_tasks(listings, monkeypatch):
    """Replace OpenML's client by a stub that has these listings; return the tasks it is asked for.

    An error in place of a listing is raised.
    """
    openml = pytest.importorskip("openml")
    calls: list[int] = []

    def list_evaluations_setups(
        *, function: str, flows: list[int], tasks: list[int]
    ) -> pd.DataFrame:
        """Stand for the client's function, which asks OpenML page by page."""
        assert function == "area_under_roc_curve"
        assert flows == [SVM_FLOW]
        (task,) = tasks
        calls.append(task)
        if isinstance(listings[task], Exception):
            raise listings[task]
        return listings[task]

    flow = SimpleNamespace(parameters=FLOW_DEFAULTS)
    monkeypatch.setattr(openml.flows, "get_flow", lambda number: flow)
    monkeypatch.setattr(openml.evaluations, "list_evaluations_setups", list_evaluations_setups)
    return calls


@pytest.fixture
def download(asked_tasks, tmp_path):
    """A function that downloads the records of tasks into the same folder at each call."""

    def download(*tasks: int) -> FlowRecords:
        space = make_svm_space()
        return download_records(
            flow_id=SVM_FLOW,
            tasks=tasks,
            space=space,
            folder=tmp_path,
            setups=MlrSetups(space, MLR_DEFAULTS[SVM_FLOW]),
        )

    return download


def test_records_become_evaluations(download):
    """Each record is a row with its run, setup and value; a task may have none."""
    records = download(37, 9946, 3)

    assert records.frame["task"].tolist() == ["37"] * 4 + ["9946"] * 3
    assert records.frame["run"].tolist() == list(range(7))
    assert records.frame["training"].tolist() == list(range(500, 507))
    assert records.frame["value"].tolist() == [run / 10 for run in range(7)]
    assert records.frame["spread"].isna().all()
    assert records.dropped == dict.fromkeys(Dropped, 0)


def test_setups_become_configurations(download):
    """Configurations are those of which the listing was made, up to the digits that R writes."""
    space = make_svm_space()

    configs = download(37, 9946).frame.filter(like="config.")

    configs.columns = configs.columns.str.removeprefix("config.")
    expected = space.values(sample_configs(space, 7))
    np.testing.assert_allclose(space.values(configs), expected, rtol=1e-13)


def test_finished_tasks_are_not_asked_for_again(download, listings, asked_tasks):
    """The download fails at the second task; started again, it goes on with that."""
    listing = listings[9946]
    listings[9946] = ConnectionError("no network")
    with pytest.raises(DownloadError, match=r"task 9946 .*no network.* start again to continue"):
        download(37, 9946)
    listings[9946] = listing

    records = download(37, 9946)

    assert len(records.frame) == 7
    assert asked_tasks == [37, 9946, 9946]


def test_malformed_answer_names_the_task(download, listings):
    """The client raises an error of Python's if it cannot read an answer."""
    listings[37] = TypeError("string indices must be integers")

    with pytest.raises(DownloadError, match=r"task 37 .*string indices.* other tasks"):
        download(37)


def test_damaged_file_is_named(download, tmp_path):
    download(37)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:100])

    with pytest.raises(StoreError, match=r"task-37\.parquet is damaged .*delete it"):
        download(37)


def test_unusable_records_are_counted(download, listings):
    """Of these records only the first and the last can be used."""
    linear = {"kernel": "linear"}  # cost has a default
    listings[37] = list_as_client(
        (0, 0.5, linear),
        (1, np.nan, linear),
        (2, None, linear),
        (3, 0.5, np.nan),  # a setup that OpenML does not know
        (4, 0.5, {"cost": "2"}),  # the radial kernel's gamma has no default
        (5, 0.5, {"gamma": "0.5", "cost": "many"}),
        (6, 0.5, {"kernel": "linear", "cost": "1000"}),  # the upper bound is 998.49
        (7, 0.5, {"kernel": "laplace"}),
        (8, 0.5, {"kernel": "linear", "cost": "3"}),
        (8, 0.5, {"kernel": "linear", "cost": "3"}),  # pages may overlap
    )

    records = download(37)

    assert records.frame["run"].tolist() == [0, 8]
    assert records.dropped == {
        Dropped.NOT_FINITE: 2,
        Dropped.MISSING_SETUP: 1,
        Dropped.MISSING_PARAMETER: 1,
        Dropped.UNPARSABLE: 1,
        Dropped.OUT_OF_BOUNDS: 2,
    }


def test_missing_client_names_its_extra(monkeypatch, download):
    monkeypatch.setitem(sys.modules, "openml", None)  # importing it fails

    with pytest.raises(MissingExtraError, match=r"\[train\]"):
        download(37)


# -- answers of OpenML, read by the client itself --------------------------------------------------

NAMESPACE = 'xmlns:oml="http://openml.org/openml"'
EVALUATIONS = f"""<oml:evaluations {NAMESPACE}><oml:evaluation>
<oml:run_id>62</oml:run_id><oml:task_id>37</oml:task_id><oml:setup_id>7</oml:setup_id>
<oml:flow_id>5891</oml:flow_id><oml:flow_name>mlr.classif.svm(7)</oml:flow_name>
<oml:data_id>1</oml:data_id><oml:data_name>diabetes</oml:data_name>
<oml:function>area_under_roc_curve</oml:function><oml:upload_time>2017</oml:upload_time>
<oml:uploader>2702</oml:uploader><oml:value>0.8</oml:value></oml:evaluation></oml:evaluations>"""
USERS = f"""<oml:users {NAMESPACE}><oml:user><oml:id>2702</oml:id><oml:username>bot</oml:username>
</oml:user></oml:users>"""
SETUPS = f"""<oml:setups {NAMESPACE}><oml:setup><oml:setup_id>7</oml:setup_id>
<oml:flow_id>5891</oml:flow_id><oml:parameter><oml:id>1</oml:id><oml:flow_id>5891</oml:flow_id>
<oml:flow_name>mlr.classif.svm</oml:flow_name>
<oml:full_name>mlr.classif.svm(7)_kernel</oml:full_name>
<oml:parameter_name>kernel</oml:parameter_name><oml:data_type>discrete</oml:data_type>
<oml:default_value>radial</oml:default_value><oml:value>linear</oml:value></oml:parameter>
</oml:setup></oml:setups>"""


def test_answers_are_read_by_the_client(monkeypatch, tmp_path):
    """Only the requests are stubs: the client makes its tables from XML, as OpenML sends it."""
    openml = pytest.importorskip("openml")

    def answer(call: str, method: str) -> str:
        """Stand for the request of an address."""
        answers = {"evaluation": EVALUATIONS, "user": USERS, "setup": SETUPS}
        return answers[call.partition("/")[0]]

    flow = SimpleNamespace(parameters=FLOW_DEFAULTS)
    monkeypatch.setattr(openml.flows, "get_flow", lambda number: flow)
    monkeypatch.setattr(openml._api_calls, "_perform_api_call", answer)

    frame = download_records(
        flow_id=SVM_FLOW,
        tasks=[37],
        space=make_svm_space(),
        folder=tmp_path,
        setups=MlrSetups(make_svm_space(), MLR_DEFAULTS[SVM_FLOW]),
    ).frame

    (row,) = frame[["run", "training", "value", "config.kernel", "config.cost"]].to_numpy().tolist()
    assert row == [62, 7, 0.8, "linear", 1.0]


# -- setups ----------------------------------------------------------------------------------------

SETUP_OF_RANGER = {
    "num.trees": "1e+02",
    "sample.fraction": ".5",
    "mtry": "'0.5'",
    "min.node.size": "1",
    "respect.unordered.factors": "FALSE",
    "replace": "[true]",
}
CONFIG_OF_RANGER = {
    "num.trees": 100,
    "sample.fraction": 0.5,
    "mtry": 0.5,
    "min.node.size": 1.0,
    "respect.unordered.factors": False,
    "replace": True,
}


@pytest.mark.parametrize(
    ("flow", "space"),
    [(5891, make_svm_space()), (6767, make_xgboost_space()), (6794, make_ranger_space())],
    ids=["SVM", "XGBoost", "ranger"],
)
@given(seed=st.integers(0, 2**32 - 1))
def test_configurations_stated_by_mlr_are_read(flow, space, seed):
    """A configuration written as mlr records it is read again, up to the 15 digits of R."""
    (config,) = sample_configs(space, 1, seed)
    setups = MlrSetups(space, MLR_DEFAULTS[flow])

    read_config = setups.read_config(write_setup_as_mlr(config, flow), task=37)

    assert isinstance(read_config, dict)  # else the reason why it was dropped
    np.testing.assert_allclose(space.row(read_config), space.row(config), rtol=1e-14)
    assert list(map(type, read_config.values())) == list(map(type, config.values()))


def test_ways_to_write_values():
    """Numbers have exponents, no leading zero, or quotes; truth values are R's or JSON's."""
    assert MlrSetups(make_ranger_space()).read_config(SETUP_OF_RANGER, task=37) == CONFIG_OF_RANGER


@pytest.mark.parametrize("text", [" radial", '"radial"', "'radial'", '["radial"]', "Radial"])
def test_ways_to_write_choices(text):
    config = MlrSetups(make_svm_space()).read_config(
        {"kernel": text, "cost": "1", "gamma": "1"}, task=37
    )

    assert config == {"kernel": "radial", "cost": 1.0, "gamma": 1.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUE", Dropped.UNPARSABLE),
        ("[1, 2]", Dropped.UNPARSABLE),
        ("-Inf", Dropped.UNPARSABLE),
        ("0.0009856", 0.000986),
        ("0.0009854", Dropped.OUT_OF_BOUNDS),
        ("998.4924374", 998.492437),
        ("998.4924376", Dropped.OUT_OF_BOUNDS),
    ],
)
def test_ways_to_write_numbers(text, expected):
    """The bounds of the cost, 0.000986 and 998.492437, are themselves rounded numbers.

    So a value a little beyond one of them is read as this bound, if it rounds to it.
    """
    read = MlrSetups(make_svm_space()).read_config({"kernel": "linear", "cost": text}, task=37)

    if isinstance(expected, float):
        expected = {"kernel": "linear", "cost": expected}
    assert read == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("5.0", 5), ("6", Dropped.OUT_OF_BOUNDS), ("2.5", Dropped.UNPARSABLE)]
)
def test_ways_to_write_integers(text, expected):
    """The degree is from 2 to 5."""
    setup = {"kernel": "polynomial", "cost": "1", "gamma": "1", "degree": text}

    read = MlrSetups(make_svm_space()).read_config(setup, task=37)

    assert (read["degree"] if isinstance(read, dict) else read) == expected


def test_inactive_hyperparameters_are_ignored():
    """A linear kernel has no gamma and no degree: unusable values of them do not matter."""
    setup = {"kernel": "linear", "cost": "1", "gamma": "?", "degree": "900"}

    assert MlrSetups(make_svm_space()).read_config(setup, task=37) == {
        "kernel": "linear",
        "cost": 1.0,
    }


@pytest.mark.parametrize(("stated", "task", "gamma"), [({}, 37, 1 / 8), ({"gamma": "2"}, 3, 2.0)])
def test_converters_use_data_of_task(stated, task, gamma):
    """Converters turn recorded numbers into hyperparameters, given the task.

    Here gamma, if it is not recorded, is one over the number of columns, 8 in task 37.
    """
    columns = {37: 8, 3: 36}

    def convert_gamma(gamma: float | None, task: int) -> float:
        return 1 / columns[task] if gamma is None else gamma

    setups = MlrSetups(make_svm_space(), MLR_DEFAULTS[SVM_FLOW], {"gamma": convert_gamma})

    config = setups.read_config({"cost": "2"} | stated, task)

    assert config == {"kernel": "radial", "cost": 2.0, "gamma": gamma}


def test_missing_values_of_setup_are_the_flows():
    """A setup or flow says by None, "", "NA" or "NULL" that it has no value.

    So the kernel and gamma are the flow's, the cost is the setup's, and neither has a degree.
    """
    flow = {"kernel": "linear", "cost": "NA", "degree": None, "gamma": "1"}
    setup = {"kernel": "NULL", "cost": "3", "degree": "", "gamma": None}

    merged = merge_stated_values(setup, flow)

    assert merged == {"kernel": "linear", "cost": "3", "gamma": "1"}
