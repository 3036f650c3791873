"""Strategies after a change of the search space: algorithm 1 of Stoll et al. (2020), and others.

Lines are those of algorithm 1.
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
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.methods.tpe import TPE

OLD_SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("a", 0, 1),
        hbo.Parameter.number("b", 0, 10),
        hbo.Parameter.choice("kind", ("p", "q", "r")),
        hbo.Parameter.number("removed", 0, 1),
    ]
)
NEW_SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("a", 0, 1),
        hbo.Parameter.number("b", 0, 20),
        hbo.Parameter.choice("kind", ("s", "r", "q")),
        hbo.Parameter.number("new", 0, 1),
    ]
)
COLUMN_A, COLUMN_B, COLUMN_KIND, LAST_COLUMN = range(4)
"""Columns of coded values; the last one is `removed` in the old space and `new` in the new one."""
REMOVED_KIND = 0
"""Code in the old space of the kind that was removed, p."""
ADDED_KIND = 0
"""Code in the new space of the kind that was added, s."""

TRANSFER = ("transfer-tpe", "transfer-gp")
BEST_FIRST = ("best-first", "transfer-tpe-best-first", "gp-best-first", "transfer-gp-best-first")

each_transfer = pytest.mark.parametrize("name", TRANSFER)
each_best_first = pytest.mark.parametrize("name", BEST_FIRST)
without_best = pytest.mark.filterwarnings("ignore:the search space does not allow the best config")
"""Of tests in which the best old configuration has the kind that was removed."""


def make_old_step(n: int = 40) -> hbo.Evaluations:
    """Make evaluations on the old space, which are best at a = 0.2 for the allowed kinds.

    The removed kind has lower losses and its optimum at a = 0.9: a method that does not discard
    it is misled.
    """
    values = OLD_SPACE.decode(OLD_SPACE.sample_unit(np.random.default_rng(0), n))
    is_removed = values[:, COLUMN_KIND] == REMOVED_KIND
    optimum = np.where(is_removed, 0.9, 0.2)
    level = np.where(is_removed, -5.0, 0.0)
    losses = level + (values[:, COLUMN_A] - optimum) ** 2
    return minimised("before", {}, values, losses, OLD_SPACE)


def is_allowed(old: hbo.Evaluations) -> BoolArray:
    """Return for each old configuration whether the new space has its kind."""
    return old.values[:, COLUMN_KIND] != REMOVED_KIND


def select(old: hbo.Evaluations, rows: BoolArray | IntArray) -> hbo.Evaluations:
    """Return the old evaluations in the given rows."""
    return replace(old, values=old.values[rows], objective=old.objective[rows])


def find_best_allowed(old: hbo.Evaluations) -> FloatArray:
    """Coded values of the best configuration that the new space allows."""
    allowed = select(old, is_allowed(old))
    return allowed.values[np.argmin(allowed.losses)]


def make_method(
    name: str, old: hbo.Evaluations, *, seed: int = 0, space: hbo.SearchSpace = NEW_SPACE
) -> hbo.Method:
    """A method by its name, with evaluations on the old space as its history."""
    return by_hand.make_method(method_spec(name).method, [old], space=space, seed=seed, budget=100)


def make_without_random_suggestions(name: str, old: hbo.Evaluations) -> hbo.Method:
    """A method that makes no random suggestions; by default a third of them is random."""
    method = make_method(name, old)
    method.random_fraction = 0.0
    return method


def ask_many(method: hbo.Method, count: int) -> FloatArray:
    """Ask for suggestions without telling results; return their coded values, (count, 4)."""
    return NEW_SPACE.values([method.ask() for _ in range(count)])


# -- transfer of a ranking: algorithm 1 ------------------------------------------------------------


@each_transfer
def test_suggestions_follow_old_ranking(name):
    """Suggestions gather around a = 0.2, the optimum of the old evaluations that are allowed."""
    a = ask_many(make_without_random_suggestions(name, make_old_step()), 100)[:, COLUMN_A]
    assert np.median(a) == pytest.approx(0.2, abs=0.15)


@each_transfer
def test_old_configurations_outside_are_discarded(name):
    """Old configurations whose kind the new space lacks have no influence on suggestions.

    Line 2 of algorithm 1 discards them.
    """
    old = make_old_step()
    allowed = select(old, is_allowed(old))
    suggestions = ask_many(make_method(name, old), 20)
    assert_array_equal(suggestions, ask_many(make_method(name, allowed), 20))


@each_transfer
def test_removed_hyperparameter_has_no_influence(name):
    """Other old values of the removed hyperparameter, the last column, change no suggestion.

    Line 3 of algorithm 1 drops hyperparameters that the new space lacks.
    """
    old = make_old_step()
    other_values = old.values.copy()
    other_values[:, LAST_COLUMN] = np.random.default_rng(5).random(len(old))
    suggestions = ask_many(make_method(name, old), 20)
    changed = ask_many(make_method(name, replace(old, values=other_values)), 20)
    assert_array_equal(changed, suggestions)


@each_transfer
def test_only_ranks_of_losses_matter(name):
    """An increasing function of the old losses changes no suggestion, as it keeps their ranks.

    Line 4 of algorithm 1 replaces losses by their ranks.
    """
    old = make_old_step()
    stretched = replace(old, objective=np.exp(5.0 * old.losses))
    suggestions = ask_many(make_method(name, old), 20)
    assert_array_equal(ask_many(make_method(name, stretched), 20), suggestions)


def compute_share_near_old_optimum(method: hbo.Method) -> float:
    """Compute which share of 900 suggestions has an a within 0.3 of the old optimum, 0.2."""
    a = ask_many(method, 900)[:, COLUMN_A]
    return float(np.mean(np.abs(a - 0.2) < 0.3))


def test_third_of_suggestions_is_random():
    """A suggestion is random with probability 1/3, by line 7 of algorithm 1.

    Random ones are known by their share near the old optimum, which is lower.
    """
    old = make_old_step()
    method = make_method("transfer-tpe", old)
    share_near_optimum = compute_share_near_old_optimum(method)

    without_random = make_without_random_suggestions("transfer-tpe", old)
    share_of_others = compute_share_near_old_optimum(without_random)
    share_of_random = 0.5  # of a from 0 to 1, those up to 0.2 + 0.3 are near 0.2
    expected = 2 / 3 * share_of_others + 1 / 3 * share_of_random
    assert share_near_optimum == pytest.approx(expected, abs=0.06)


@each_transfer
def test_new_ranges_are_drawn_by_share(name):
    """A value is from the new part of its range with the probability that this part has.

    Lines 10 to 14 of algorithm 1.
    """
    values = ask_many(make_without_random_suggestions(name, make_old_step()), 600)
    # The range of b ended at 10, and now does at 20.
    has_new_b = values[:, COLUMN_B] > 10
    assert_allclose(has_new_b.mean(), 1 / 2, atol=0.08)
    # One of the three kinds was added.
    has_added_kind = values[:, COLUMN_KIND] == ADDED_KIND
    assert_allclose(has_added_kind.mean(), 1 / 3, atol=0.08)


@each_transfer
def test_new_ranges_are_drawn_uniformly(name):
    """Values are uniform in the new part of a range, by lines 10 to 14 of algorithm 1."""
    values = ask_many(make_without_random_suggestions(name, make_old_step()), 600)
    b = values[:, COLUMN_B]
    # The range of b ended at 10, and now does at 20.
    new_b_in_unit_interval = (b[b > 10] - 10) / 10
    assert kstest(new_b_in_unit_interval, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("name", "trials_before_model"),
    [("transfer-tpe", count_needed_evaluations(NEW_SPACE.dimension)), ("transfer-gp", 3)],
)
def test_model_of_new_space_takes_over(name, trials_before_model):
    """Suggestions move from the old optimum to the new one, by lines 16 to 18 of algorithm 1.

    The first `trials_before_model` are too few for a model of the new space.
    """
    old_optimum = 0.2
    new_optimum = 0.85

    def compute_losses(values: FloatArray) -> FloatArray:
        return (values[:, COLUMN_A] - new_optimum) ** 2

    method = make_without_random_suggestions(name, make_old_step())
    a = run_trials(method, compute_losses, trials=60)[:, COLUMN_A]
    distance_of_first = np.abs(a[:trials_before_model] - old_optimum)
    distance_of_last = np.abs(a[-20:] - new_optimum)
    assert np.median(distance_of_first) < 0.3
    assert np.median(distance_of_last) < 0.2


# -- best first ------------------------------------------------------------------------------------


@without_best
@each_best_first
def test_best_old_configuration_comes_first(name):
    """The first suggestion has the best old values of a, b and kind that the new space allows."""
    old = make_old_step()
    (best,) = OLD_SPACE.configs(find_best_allowed(old)[None])
    first = make_method(name, old).ask()
    assert first["a"] == best["a"]
    assert first["b"] == best["b"]
    assert first["kind"] == best["kind"]


@each_best_first
def test_best_that_is_not_allowed_is_named(name):
    """A warning names the best old configuration if the new space does not allow it.

    Its kind, p, was removed.
    """
    with pytest.warns(hbo.errors.HistoryWarning, match=r"'before' \(kind = 'p'\): the best of"):
        make_method(name, make_old_step())


@without_best
@each_best_first
def test_failed_old_evaluations_come_last(name):
    """If the best old evaluation is replaced by a failure, the second best is suggested first."""
    old = make_old_step()
    losses_of_allowed = np.where(is_allowed(old), old.losses, np.inf)
    best_row, second_row, *_ = np.argsort(losses_of_allowed)
    objective = old.objective.copy()
    objective[best_row] = np.nan
    first = make_method(name, replace(old, objective=objective)).ask()
    assert first["a"] == old.values[second_row, COLUMN_A]


# -- only optimise new hyperparameters -------------------------------------------------------------

each_only_new = pytest.mark.parametrize("name", ["only-optimize-new", "gp-only-optimize-new"])


def compute_losses_of_new(values: FloatArray) -> FloatArray:
    """Square the distance of the new hyperparameter, the last column, from its optimum, 0.6."""
    return (values[:, LAST_COLUMN] - 0.6) ** 2


@without_best
@each_only_new
def test_shared_hyperparameters_keep_best_values(name):
    """All suggestions have the shared values of the best old configuration.

    The method `best-first` suggests this configuration first. Only the new hyperparameter
    varies.
    """
    best = ask_many(make_method("best-first", make_old_step()), 1)
    values = run_trials(make_method(name, make_old_step()), compute_losses_of_new, trials=30)
    shared_values = values[:, :LAST_COLUMN]
    assert_array_equal(np.unique(shared_values, axis=0), best[:, :LAST_COLUMN])


@each_only_new
def test_new_hyperparameter_is_optimised(name):
    """Suggestions of the new hyperparameter, the last column, come close to its optimum, 0.6."""
    values = run_trials(make_method(name, make_old_step()), compute_losses_of_new, trials=30)
    distances = np.abs(values[:, LAST_COLUMN] - 0.6)
    distances_of_late_trials = distances[-12:]
    assert distances.min() < 0.05
    assert np.median(distances_of_late_trials) < 0.2


# -- drop unimportant hyperparameters --------------------------------------------------------------

each_drop = pytest.mark.parametrize("name", ["drop-unimportant", "gp-drop-unimportant"])


def make_old_step_that_depends_on_a() -> hbo.Evaluations:
    """Make old evaluations whose losses are the distance of a from 0.3."""
    old = make_old_step(60)
    return replace(old, objective=np.abs(old.values[:, COLUMN_A] - 0.3))


def select_a(values: FloatArray) -> FloatArray:
    """Use the column of a as the losses of configurations on the new space."""
    return values[:, COLUMN_A]


@each_drop
def test_unimportant_hyperparameters_are_fixed(name):
    """b and the kind had no influence on the old losses: each keeps a value in all 25 trials."""
    old = make_old_step_that_depends_on_a()
    values = run_trials(make_method(name, old), select_a, trials=25)
    best_old_b = find_best_allowed(old)[COLUMN_B]
    assert set(values[:, COLUMN_B]) == {best_old_b}
    assert len(set(values[:, COLUMN_KIND])) == 1


@each_drop
def test_important_and_new_hyperparameters_vary(name):
    """a had influence on the old losses, and the last hyperparameter is new: both vary."""
    old = make_old_step_that_depends_on_a()
    values = run_trials(make_method(name, old), select_a, trials=25)
    # The best value of a, its lower bound, may be suggested several times.
    assert len(set(values[:, COLUMN_A])) > 20
    assert len(set(values[:, LAST_COLUMN])) == 25


# -- histories of no use ---------------------------------------------------------------------------


def make_unrelated_step() -> hbo.Evaluations:
    """Evaluations on a space of x and y, which the new space lacks."""
    return minimised("before", {}, np.full((3, 2), 0.5), np.arange(3.0), UNIT_SQUARE)


def make_tpe() -> TPE:
    return by_hand.make_method(TPE, space=NEW_SPACE, budget=100)


@pytest.mark.parametrize("name", [*TRANSFER, *BEST_FIRST, "only-optimize-new", "drop-unimportant"])
def test_unrelated_spaces_cause_warning(name):
    """The history, of the task 'before', is on a space that shares no hyperparameter."""
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
    """Where the old space shares no hyperparameter with the new one, the method is TPE."""
    suggestions = ask_many(make_method(name, make_unrelated_step()), 8)
    assert_array_equal(suggestions, ask_many(make_tpe(), 8))


def test_equals_tpe_with_all_outside():
    """Where the new space allows no old configuration, nothing is transferred to TPE."""
    old = make_old_step()
    outside = select(old, ~is_allowed(old))
    with pytest.warns(hbo.errors.HistoryWarning, match="allows no configuration of 'before'"):
        method = make_method("transfer-tpe-best-first", outside)
    assert_array_equal(ask_many(method, 8), ask_many(make_tpe(), 8))
