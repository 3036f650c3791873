"""The table of which method to use: it follows from the results, and pages hold it."""

from dataclasses import replace

import pytest

from hpobench_ordered.reporting.recommendations import read_recommendations

pytestmark = pytest.mark.usefixtures("builders")


@pytest.mark.long  # they change with reference results, which are made for releases
def test_stored_recommendations_follow_from_results():
    """The stored recommendations are what reference results and times of suggestions give now.

    After a failure, run `python docs/_build/recommend.py`, which stores them anew.
    """
    import recommend

    recommendations = recommend.recommend_methods(recommend.read_milliseconds())

    assert recommendations == read_recommendations()


def test_readme_holds_stored_recommendations(root):
    """After a failure, run `python docs/_build/recommend.py`, which writes them to the README."""
    import recommend

    readme = (root / "README.md").read_text()

    filled_anew = recommend.fill_readme(readme, read_recommendations())

    assert filled_anew == readme


@pytest.mark.parametrize("name", ["leaderboard.md", "methods/index.md", "tuning.md"])
def test_page_holds_recommendations(name, root):
    """A table, with a row for each situation, replaces the marker in the page."""
    import recommend

    source_of_page = (root / "docs" / name).read_text()

    page = recommend.fill_page(source_of_page, methods_folder="methods/")

    assert recommend.MARKER not in page
    for recommendation in read_recommendations():
        assert f"| {recommendation.situation} |" in page


def test_times_are_read_from_their_page(tmp_path):
    """Of three times in milliseconds, the first is that of a suggestion after 200 evaluations."""
    import recommend

    page = tmp_path / "times.md"
    page.write_text("| [`bo`](methods/bo.md) | 7.05 | 17.7 | 58.8 |\n")

    assert recommend.read_milliseconds(page) == {"bo": 7.05}


def test_cheaper_method_takes_half_of_the_time():
    """A method is cheaper than another one if it takes at most half of its time."""
    import recommend

    milliseconds = {"half": 1.0, "more than half": 1.1, "slow": 2.0}

    assert recommend.is_cheaper("half", "slow", milliseconds)
    assert not recommend.is_cheaper("more than half", "slow", milliseconds)
    assert not recommend.is_cheaper("not measured", "slow", milliseconds)


def test_best_configurations_first_are_history():
    """Of other tools, one begins with the best configurations of earlier tasks."""
    import recommend

    assert recommend.ignores_history("optuna-tpe*", {})
    assert not recommend.ignores_history("optuna-tpe-best-first*", {})


def test_other_tools_are_runners_up():
    """Without earlier tasks, a tool is next to bo; it is not recommended, as it has no page."""
    of_situation = {item.situation: item for item in read_recommendations()}

    recommendation = of_situation["no earlier tasks"]

    assert recommendation.method == "bo"
    assert recommendation.next_method == "optuna-gp*"
    assert recommendation.recommended == ("bo",)


def test_close_ranks_have_two_decimals():
    """Two decimals tell 7.27 and 7.32 apart; otherwise ranks have one."""
    recommendation = read_recommendations()[0]

    close = replace(recommendation, rank=7.274, next_rank=7.321, next_method="bo")
    far = replace(recommendation, rank=7.274, next_rank=8.321, next_method="bo")

    assert close.evidence.startswith("mean rank 7.27 among")
    assert "; next bo, 7.32;" in close.evidence
    assert far.evidence.startswith("mean rank 7.3 among")
    assert far.evidence.endswith("; next bo, 8.3; better than all others by the test")


def test_next_method_within_error_is_recommended_too():
    """Of two methods that the test does not tell apart both are named, with what each needs."""
    leader = replace(read_recommendations()[0], next_method="fsbo")

    alone = replace(leader, within_error=())
    together = replace(leader, within_error=("fsbo", "rgpe"))

    assert alone.recommended == (leader.method,)
    assert together.row[1] == f"{leader.method} or fsbo"
    assert together.needs.startswith("fsbo: ")


def test_short_times_are_called_microseconds():
    """A method whose suggestions take at most 0.1 ms suggests in microseconds."""
    import recommend

    milliseconds = {"zero-shot": 0.05, "bo": 7.0}

    assert recommend.suggests_in_microseconds("zero-shot", milliseconds)
    assert not recommend.suggests_in_microseconds("bo", milliseconds)
    assert not recommend.suggests_in_microseconds("not measured", milliseconds)
