import numpy as np
import pytest

from hpobench_ordered import Method, Ordered
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.experiment.plan import plan


class Mine(Method):
    """A method of one's own."""

    def ask(self):  # type: ignore[no-untyped-def]
        return self.space.sample(self.rng)

    def tell(self, config, loss):  # type: ignore[no-untyped-def]
        pass


def test_one_cell_for_each_combination_in_a_fixed_order(small_plan) -> None:  # type: ignore[no-untyped-def]
    cells = small_plan()
    assert len(cells) == 6
    assert [c.key for c in cells] == [c.key for c in small_plan()]
    assert len({c.key for c in cells}) == 6


def test_the_key_tells_everything_apart_that_matters(small_plan) -> None:  # type: ignore[no-untyped-def]
    keys = [
        small_plan(methods=["random-search"], seeds=[0], **change)[0].key
        for change in (
            {},
            {"protocol": Ordered(trials=5, tasks=3)},
            {"protocol": Ordered(trials=4, tasks=2)},
            {"benchmarks": ["xgboost-mnist"]},
            {"benchmarks": ["xgboost-mnist"], "surrogates": {"xgboost-mnist": "nearest"}},
        )
    ]
    assert len(set(keys)) == len(keys)


def test_methods_share_random_numbers_seeds_and_tasks_do_not(small_plan) -> None:  # type: ignore[no-untyped-def]
    first, second = small_plan(seeds=[0])
    assert first.rng(0).random() == second.rng(0).random()
    (other,) = small_plan(seeds=[1], methods=["random-search"])
    drawn = [cell.rng(t).random() for cell in (first, other) for t in (0, 1)]
    assert len(set(drawn)) == 4


def test_own_class() -> None:
    (cell,) = plan(benchmarks=["newsvendor"], methods=[Mine], seeds=[0], protocol=Ordered())
    assert cell.method.name.endswith(".Mine")
    assert cell.method.summary == "A method of one's own."


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"benchmarks": ["newsvendr"]}, UnknownNameError, "did you mean 'newsvendor'"),
        ({"benchmarks": ["newsvendor@7"]}, UnknownNameError, "newsvendor@1"),
        ({"methods": ["random"]}, UnknownNameError, "did you mean 'random-search'"),
        ({"methods": ["bo", "bo"]}, ExperimentError, "same name"),
        ({"methods": [np.random.Generator]}, ExperimentError, "subclass of"),
        ({"seeds": [-1]}, ExperimentError, "0 or larger"),
        ({"seeds": []}, ExperimentError, "needs a benchmark, a method and a seed"),
        ({"surrogates": {"newsvendor": "forest"}}, UnknownNameError, "'table'"),
        ({"surrogates": {"xgboost-mnist": "forest"}}, ExperimentError, "not in the experiment"),
    ],
)
def test_nonsense_is_refused(small_plan, change, error, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        small_plan(**change)


@pytest.mark.parametrize("settings", [{"trials": 0}, {"tasks": 0}])
def test_protocol_needs_something_to_do(settings) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ExperimentError, match="at least 1"):
        Ordered(**settings)
