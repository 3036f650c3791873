"""Strategies after a search space was changed: the lines of algorithm 1, and the others.

"Line" is a line of algorithm 1 of Stoll et al. (2020).
"""

from dataclasses import replace

import by_hand
import numpy as np
import pytest
from by_hand import UNIT_SQUARE, run_trials
from histories import minimised
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest

import hpobench_ordered as hbo
from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.methods._tpe import count_needed_evaluations
from hpobench_ordered.methods.tpe import TPE
from hpobench_ordered.registry import method_spec

OLD = hbo.SearchSpace(
    [
        hbo.Parameter.number("a", 0, 1),
        hbo.Parameter.number("b", 0, 10),
        hbo.Parameter.choice("kind", ("p", "q", "r")),
        hbo.Parameter.number("removed", 0, 1),
    ]
)
NEW = hbo.SearchSpace(
    [
        hbo.Parameter.number("a", 0, 1),
        hbo.Parameter.number("b", 0, 20),
        hbo.Parameter.choice("kind", ("s", "r", "q")),
        hbo.Parameter.number("new", 0, 1),
    ]
)
A, B, KIND, LAST = range(4)
"""Columns of both spaces; the last one is `removed` or `new`."""
OLD_P, NEW_S = 0, 0
"""Codes of the kind that was removed, and of the new one."""

TRANSFER = ("transfer-tpe", "transfer-gp")
BEST_FIRST = ("best-first", "transfer-tpe-best-first", "gp-best-first", "transfer-gp-best-first")

each_transfer = pytest.mark.parametrize("name", TRANSFER)
each_best_first = pytest.mark.parametrize("name", BEST_FIRST)


def make_old_step(n: int = 40) -> hbo.Evaluations:
    """Evaluations with the optimum at a = 0.2; removed kinds have lower losses, at a = 0.9."""
    values = OLD.decode(OLD.sample_unit(np.random.default_rng(0), n))
    is_removed = values[:, KIND] == OLD_P
    optimum = np.where(is_removed, 0.9, 0.2)
    losses = (values[:, A] - optimum) ** 2 - 5.0 * is_removed
    return minimised("before", {}, values, losses, OLD)


def is_allowed(old: hbo.Evaluations) -> BoolArray:
    """Whether the new space allows each old configuration."""
    return old.values[:, KIND] != OLD_P


def select(old: hbo.Evaluations, rows: BoolArray | IntArray) -> hbo.Evaluations:
    """The old evaluations in some rows."""
    return replace(old, values=old.values[rows], objective=old.objective[rows])


def best_allowed(old: hbo.Evaluations) -> FloatArray:
    """Coded values of the best configuration that the new space allows."""
    allowed = select(old, is_allowed(old))
    return allowed.values[np.argmin(allowed.losses)]


def make_method(
    name: str, old: hbo.Evaluations, *, seed: int = 0, space: hbo.SearchSpace = NEW
) -> hbo.Method:
    """A method by its name, with evaluations on the old space as its history."""
    return by_hand.make_method(method_spec(name).method, [old], space=space, seed=seed, budget=100)


def make_without_random_suggestions(name: str, old: hbo.Evaluations) -> hbo.Method:
    """A method of which, other than usual, no suggestion is random."""
    method = make_method(name, old)
    method.random_fraction = 0.0
    return method


def ask_many(method: hbo.Method, count: int) -> FloatArray:
    """Coded values of suggestions, without telling any result."""
    return NEW.values([method.ask() for _ in range(count)])


# -- transfer of a ranking: algorithm 1 ------------------------------------------------------------


@each_transfer
def test_suggestions_follow_old_ranking(name):
    """The optimum of the old evaluations that the new space allows is at a = 0.2."""
    a = ask_many(make_without_random_suggestions(name, make_old_step()), 100)[:, A]
    assert np.median(a) == pytest.approx(0.2, abs=0.15)


@each_transfer
def test_old_configurations_outside_are_discarded(name):
    # By line 2 of algorithm 1: some configurations have a choice that the new space lacks.
    old = make_old_step()
    allowed = select(old, is_allowed(old))
    suggestions = ask_many(make_method(name, old), 20)
    assert_array_equal(suggestions, ask_many(make_method(name, allowed), 20))


@each_transfer
def test_removed_hyperparameter_has_no_influence(name):
    # By line 3 of algorithm 1, hyperparameters that the new space lacks are dropped: the last one.
    old = make_old_step()
    other_values = old.values.copy()
    other_values[:, LAST] = np.random.default_rng(5).random(len(old))
    suggestions = ask_many(make_method(name, old), 20)
    changed = ask_many(make_method(name, replace(old, values=other_values)), 20)
    assert_array_equal(changed, suggestions)


@each_transfer
def test_only_ranks_of_losses_matter(name):
    # By line 4 of algorithm 1, losses are replaced by their ranks.
    old = make_old_step()
    # An increasing function of the losses.
    stretched = replace(old, objective=np.exp(5.0 * old.losses))
    suggestions = ask_many(make_method(name, old), 20)
    assert_array_equal(ask_many(make_method(name, stretched), 20), suggestions)


@each_transfer
def test_reversed_ranks_change_suggestions(name):
    # By line 4 of algorithm 1, suggestions follow the ranks of the old losses.
    old = make_old_step()
    reversed_ranks = replace(old, objective=-old.losses)
    suggestions = ask_many(make_method(name, old), 20)
    assert not np.array_equal(ask_many(make_method(name, reversed_ranks), 20), suggestions)


def share_near_old_optimum(method: hbo.Method) -> float:
    """Share of 900 suggestions whose a is at most 0.3 from the old optimum, 0.2."""
    a = ask_many(method, 900)[:, A]
    return float(np.mean(np.abs(a - 0.2) < 0.3))


def test_third_of_suggestions_is_random():
    # By line 7 of algorithm 1, a suggestion is random with probability 1/3.
    old = make_old_step()
    share = share_near_old_optimum(make_method("transfer-tpe", old))
    without_random = make_without_random_suggestions("transfer-tpe", old)
    share_of_ranking = share_near_old_optimum(without_random)
    share_of_random = 0.5  # of a from 0 to 1, those up to 0.5 are near 0.2
    expected = 2 / 3 * share_of_ranking + 1 / 3 * share_of_random
    assert share == pytest.approx(expected, abs=0.06)


@each_transfer
def test_new_ranges_are_drawn_by_share(name):
    # By lines 10 to 14 of algorithm 1, a value is from the part of its range that is new with the
    # probability of that part.
    values = ask_many(make_without_random_suggestions(name, make_old_step()), 600)
    # b went to 10 and now to 20; of the kinds s, r and q, s is new.
    assert_allclose(np.mean(values[:, B] > 10), 0.5, atol=0.08)
    assert_allclose(np.mean(values[:, KIND] == NEW_S), 1 / 3, atol=0.08)


@each_transfer
def test_new_ranges_are_drawn_uniformly(name):
    # By lines 10 to 14 of algorithm 1, values from the new part of a range are uniform there.
    values = ask_many(make_without_random_suggestions(name, make_old_step()), 600)
    # b went to 10 and now to 20; the last hyperparameter is new.
    new_part_of_b = values[values[:, B] > 10, B]
    assert kstest((new_part_of_b - 10) / 10, "uniform").pvalue > 1e-3
    assert kstest(values[:, LAST], "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("name", "trials_before_model"),
    [("transfer-tpe", count_needed_evaluations(NEW.dimension)), ("transfer-gp", 3)],
)
def test_model_of_new_space_takes_over(name, trials_before_model):
    """The optimum was at a = 0.2 and now is at 0.85: suggestions move from one to the other.

    Lines 16 to 18 of algorithm 1.
    """

    def compute_losses(values: FloatArray) -> FloatArray:
        return (values[:, A] - 0.85) ** 2

    method = make_without_random_suggestions(name, make_old_step())
    a = run_trials(method, compute_losses, trials=60)[:, A]
    assert np.median(np.abs(a[:trials_before_model] - 0.2)) < 0.3
    assert np.median(np.abs(a[-20:] - 0.85)) < 0.2


# -- best first ------------------------------------------------------------------------------------


@each_best_first
def test_best_old_configuration_comes_first(name):
    """The best of those that the new space allows; a, b and the kind are in both spaces."""
    old = make_old_step()
    a, b, kind, _ = best_allowed(old)
    first = make_method(name, old).ask()
    # The new space codes the kinds differently, so they are compared by name.
    assert (first["a"], first["b"], first["kind"]) == (a, b, OLD["kind"].choices[int(kind)])


@each_best_first
def test_new_hyperparameter_of_first_is_random(name):
    """The first suggestion is the best old configuration, which has no value of it."""
    old = make_old_step()
    # The first suggestion of methods with 150 seeds.
    firsts = [make_method(name, old, seed=seed).ask() for seed in range(150)]
    assert kstest([first["new"] for first in firsts], "uniform").pvalue > 1e-3


@each_best_first
def test_failed_old_evaluations_come_last(name):
    """If the best old evaluation had failed, the second best would be suggested first."""
    old = make_old_step()
    best_first = np.argsort(old.losses)
    # Rows of the best two that the new space allows.
    best, second, *_ = best_first[is_allowed(old)[best_first]]
    objective = old.objective.copy()
    objective[best] = np.nan
    first = make_method(name, replace(old, objective=objective)).ask()
    assert first["a"] == old.values[second, A]


# -- only optimise new hyperparameters -------------------------------------------------------------

each_only_new = pytest.mark.parametrize("name", ["only-optimize-new", "gp-only-optimize-new"])


def compute_losses_of_new(values: FloatArray) -> FloatArray:
    """Losses that depend on the new hyperparameter alone, the last column; it is best at 0.6."""
    return (values[:, LAST] - 0.6) ** 2


@each_only_new
def test_shared_hyperparameters_keep_best_values(name):
    """Those of the best old configuration, in all trials."""
    # What the method `best-first` begins with.
    best = ask_many(make_method("best-first", make_old_step()), 1)
    values = run_trials(make_method(name, make_old_step()), compute_losses_of_new, trials=30)
    # All columns but the last, which is the new hyperparameter.
    assert_array_equal(np.unique(values[:, :LAST], axis=0), best[:, :LAST])


@each_only_new
def test_new_hyperparameter_is_optimised(name):
    """It alone; the loss depends on nothing else."""
    values = run_trials(make_method(name, make_old_step()), compute_losses_of_new, trials=30)
    # The loss has its optimum where the new hyperparameter, the last column, is 0.6.
    distances = np.abs(values[:, LAST] - 0.6)
    assert distances.min() < 0.05
    assert np.median(distances[-12:]) < 0.2


@each_only_new
def test_best_is_repeated_if_nothing_new(name):
    """There is no new hyperparameter that could be optimised."""
    # A new space of the first hyperparameter alone, which the old one has, too.
    only_a = hbo.SearchSpace(NEW.parameters[:1])
    method = make_method(name, make_old_step(), space=only_a)
    assert len({method.ask()["a"] for _ in range(3)}) == 1


# -- drop unimportant hyperparameters --------------------------------------------------------------

each_drop = pytest.mark.parametrize("name", ["drop-unimportant", "gp-drop-unimportant"])


def make_old_step_that_depends_on_a() -> hbo.Evaluations:
    """Old evaluations whose losses are the distance of a from 0.3."""
    old = make_old_step(60)
    return replace(old, objective=np.abs(old.values[:, A] - 0.3))


@each_drop
def test_unimportant_hyperparameters_are_fixed(name):
    """b and the kind, which had no influence on the old losses; a had all of it."""
    old = make_old_step_that_depends_on_a()
    values = run_trials(make_method(name, old), lambda values: values[:, A], trials=25)
    # b keeps the best old value; the kind keeps one value.
    assert set(values[:, B]) == {best_allowed(old)[B]}
    assert len(set(values[:, KIND])) == 1


@each_drop
def test_important_and_new_hyperparameters_vary(name):
    """The old losses depend on a alone, so that b and the kind are fixed."""
    old = make_old_step_that_depends_on_a()
    # 25 trials, in which the loss is a.
    values = run_trials(make_method(name, old), lambda values: values[:, A], trials=25)
    # The best value of a, its bound, is suggested more than once; of the new hyperparameter, no
    # value is.
    assert len(set(values[:, A])) > 20
    assert len(set(values[:, LAST])) == 25


# -- histories of no use ---------------------------------------------------------------------------


def make_unrelated_step() -> hbo.Evaluations:
    """Evaluations on a space of x and y, which the new space lacks."""
    return minimised("before", {}, np.full((3, 2), 0.5), np.arange(3.0), UNIT_SQUARE)


def make_tpe() -> TPE:
    return by_hand.make_method(TPE, space=NEW, budget=100)


@pytest.mark.parametrize("name", [*TRANSFER, *BEST_FIRST, "only-optimize-new", "drop-unimportant"])
def test_unrelated_spaces_cause_warning(name):
    with pytest.warns(UserWarning, match="shares no hyperparameter with the one of 'before'"):
        make_method(name, make_unrelated_step())


@pytest.mark.filterwarnings("ignore:the search space shares no hyperparameter")
@pytest.mark.parametrize(
    "name",
    [
        "transfer-tpe",
        "best-first",
        "transfer-tpe-best-first",
        "only-optimize-new",
        "drop-unimportant",
    ],
)
def test_equals_tpe_with_unrelated_space(name):
    suggestions = ask_many(make_method(name, make_unrelated_step()), 8)
    assert_array_equal(suggestions, ask_many(make_tpe(), 8))


def test_equals_tpe_with_all_outside():
    """If the new space allows no old configuration, there is nothing to transfer."""
    old = make_old_step()
    outside = select(old, ~is_allowed(old))
    suggestions = ask_many(make_method("transfer-tpe-best-first", outside), 8)
    assert_array_equal(suggestions, ask_many(make_tpe(), 8))


def test_single_old_configuration_comes_first():
    """No ranking can be transferred from one evaluation; the second suggestion is random."""
    old = make_old_step()
    first_allowed_row = np.flatnonzero(is_allowed(old))[:1]
    single = select(old, first_allowed_row)
    method = make_method("transfer-tpe-best-first", single, seed=1)

    first = method.ask()
    second = method.ask()

    value_of_a_before = single.values[0, A]
    assert first["a"] == value_of_a_before
    assert second["a"] != value_of_a_before
