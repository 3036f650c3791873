"""The table of which method to use: it follows from the results, and pages hold it."""

import pytest

from hpobench_ordered.reporting.recommendations import read_recommendations

pytestmark = pytest.mark.usefixtures("builders")


@pytest.mark.slow
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


def test_short_times_are_called_microseconds():
    """A method whose suggestions take at most 0.1 ms suggests in microseconds."""
    import recommend

    milliseconds = {"zero-shot": 0.05, "bo": 7.0}

    assert recommend.suggests_in_microseconds("zero-shot", milliseconds)
    assert not recommend.suggests_in_microseconds("bo", milliseconds)
    assert not recommend.suggests_in_microseconds("not measured", milliseconds)
