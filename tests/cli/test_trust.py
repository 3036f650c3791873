"""The commands fetch and verify."""

import pytest
from cli_results import assert_fails

from hpobench_ordered.benchmarks.yahpo import remote_files


def test_verify_has_a_line_for_each_benchmark(cli):
    result = cli("verify", "newsvendor", "svm-a", "forrester", "openml-ranger")
    assert result.returncode == 0
    # "-": there is nothing to verify of openml-ranger, which has not been generated.
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ok"] * 3 + ["-"]


def test_fetch_refuses_other_files(cli, tmp_path):
    (tmp_path / "copy.json").write_text("{}")
    result = cli("fetch", "xgboost-mnist", "--from", "copy.json")
    assert_fails(result, 1, "copy.json is not the published")


@pytest.fixture
def fetched(cli, shared):
    """Fetches a file, and a folder of files, from local copies."""
    file = shared / "data" / "othpo" / "aggregated_experiments.json.gz"
    folder = shared / "data" / "yahpo" / "yahpo_data-1.0.2"
    assert cli("fetch", "xgboost-mnist", "--from", str(file)).returncode == 0
    assert cli("fetch", "yahpo-rpart-1220", "--from", str(folder)).returncode == 0


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_fetched_files_can_be_used(cli):
    # Brackets are around surrogates whose files are not fetched.
    assert "forest [nearest]" not in cli("list").stdout
    assert "minbucket" in cli("info", "yahpo-rpart-1220").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_fetched_scenario_knows_its_instances(cli):
    assert_fails(cli("info", "yahpo-rpart-1221"), 2, "unknown instance", "did you mean '1220'")


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_verify_checks_fetched_files(cli):
    assert cli("verify", "xgboost-mnist", "yahpo-rpart-1220").returncode == 0


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_verify_finds_damaged_fetched_file(cli, tmp_path):
    (tmp_path / "cache" / remote_files("rpart")["model.onnx"].name).write_bytes(b"damage")
    result = cli("verify")
    assert result.returncode == 1
    (damaged,) = [line for line in result.stdout.splitlines() if line.startswith("damaged")]
    assert damaged.startswith("damaged  yahpo-SCENARIO-INSTANCE")
    assert "rbv2_rpart/model.onnx is damaged" in damaged
