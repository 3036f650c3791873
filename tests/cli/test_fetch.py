"""The command fetch."""

import pytest
from cli_results import FAILURE, MISUSE, assert_fails


def test_fetch_refuses_other_files(cli, tmp_path):
    """A local copy must have the content of the published file, which its hash tells."""
    (tmp_path / "copy.json").write_text("{}")

    result = cli("fetch", "xgboost-mnist", "--from", "copy.json")

    assert_fails(result, FAILURE, "copy.json is not the published")


@pytest.fixture
def fetched_files(cli, shared):
    """Copies published files to the cache: those of xgboost-mnist and yahpo-rpart-1220."""
    file = shared / "data" / "othpo" / "aggregated_experiments.json.gz"
    folder = shared / "data" / "yahpo" / "yahpo_data-1.0.2"
    assert cli("fetch", "xgboost-mnist", "--from", str(file)).returncode == 0
    assert cli("fetch", "yahpo-rpart-1220", "--from", str(folder)).returncode == 0


@pytest.mark.slow
def test_surrogates_to_be_fetched_have_brackets(cli):
    assert "forest [nearest]" in cli("list", "xgboost-mnist").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("fetched_files")
def test_fetched_surrogates_have_no_brackets(cli):
    assert "forest nearest" in cli("list", "xgboost-mnist").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("fetched_files")
def test_fetched_scenario_has_its_space(cli):
    """The search space is in the files: minbucket is a hyperparameter of rpart."""
    assert "minbucket" in cli("info", "yahpo-rpart-1220").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("fetched_files")
def test_fetched_scenario_knows_its_instances(cli):
    """YAHPO's scenario rpart has an instance 1220, but none 1221."""
    assert_fails(cli("info", "yahpo-rpart-1221"), MISUSE, "unknown instance", "did you mean '1220'")
