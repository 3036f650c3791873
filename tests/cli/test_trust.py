"""The commands fetch and verify."""

import pytest
from cli_results import FAILURE, MISUSE, assert_fails

from hpobench_ordered.benchmarks.yahpo import remote_files


def test_verify_has_a_line_for_each_benchmark(cli):
    """Each line begins with "ok", or with "-" where there is nothing to verify.

    No artifact of openml-ranger has been generated, so that it has no files.
    """
    result = cli("verify", "newsvendor", "svm-a", "forrester", "openml-ranger")

    assert result.returncode == 0, result.stderr
    verdicts = [line.split()[0] for line in result.stdout.splitlines()]
    assert verdicts == ["ok", "ok", "ok", "-"]


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


@pytest.mark.slow
@pytest.mark.usefixtures("fetched_files")
def test_verify_checks_fetched_files(cli):
    assert cli("verify", "xgboost-mnist", "yahpo-rpart-1220").returncode == 0


@pytest.mark.slow
@pytest.mark.usefixtures("fetched_files")
def test_verify_finds_damaged_fetched_file(cli, tmp_path):
    """The network of the YAHPO scenario rpart was fetched, and is damaged in the cache.

    All benchmarks of a scenario, one for each instance, share its files, so they share a line.
    """
    network_file = remote_files("rpart")["model.onnx"]
    (tmp_path / "cache" / network_file.name).write_bytes(b"damage")

    result = cli("verify")

    assert result.returncode == FAILURE
    lines = result.stdout.splitlines()
    (line_of_damage,) = [line for line in lines if line.startswith("damaged")]
    assert line_of_damage.startswith("damaged  yahpo-SCENARIO-INSTANCE")
    assert "rbv2_rpart/model.onnx is damaged" in line_of_damage
