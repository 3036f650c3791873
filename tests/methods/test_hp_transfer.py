"""After a search space was changed: each line of algorithm 1, and the other strategies."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from by_hand import SQUARE, make, play
from histories import minimised
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._tpe import needed
from hpobench_ordered.methods.tpe import TPE
from hpobench_ordered.registry import method_spec


def space_of(highest: float, kinds: str, last: str) -> hbo.SearchSpace:
    a, b = hbo.Parameter.number("a", 0, 1), hbo.Parameter.number("b", 0, highest)
    return hbo.SearchSpace(
        [a, b, hbo.Parameter.choice("kind", kinds), hbo.Parameter.number(last, 0, 1)]
    )


OLD, NEW = space_of(10, "pqr", "gone"), space_of(20, "srq", "new")
TRANSFER = ("transfer-tpe", "transfer-gp")
BEST_FIRST = ("best-first", "transfer-tpe-best-first", "gp-best-first", "transfer-gp-best-first")


def old_step(n: int = 40, *, best: float = 0.2, seed: int = 0) -> hbo.Evaluations:
    """Losses depend on a; those of kind p, which is no longer there, are lowest, at other a."""
    unit = OLD.sample_unit(np.random.default_rng(seed), n)
    values = OLD.decode(unit)
    is_p = values[:, 2] == 0
    losses = (values[:, 0] - np.where(is_p, 0.9, best)) ** 2 - 5.0 * is_p
    return minimised("before", {}, values, losses, OLD)


def rows(past: hbo.Evaluations, chosen: Any) -> hbo.Evaluations:
    return replace(past, values=past.values[chosen], objective=past.objective[chosen])


def best_inside(past: hbo.Evaluations) -> FloatArray:
    """The best configuration that the new space allows."""
    inside = rows(past, past.values[:, 2] != 0)
    return inside.values[np.argmin(inside.losses)]


def made(
    name: str, past: hbo.Evaluations, *, seed: int = 0, space: hbo.SearchSpace = NEW
) -> hbo.Method:
    return make(method_spec(name).method, [past], space=space, seed=seed, budget=100)


def asked(method: hbo.Method, count: int) -> FloatArray:
    """Suggestions without any result, coded as values."""
    return NEW.values([method.ask() for _ in range(count)])


def always(name: str, past: hbo.Evaluations, *, seed: int = 0) -> hbo.Method:
    """A method without its random fraction."""
    method = made(name, past, seed=seed)
    method.random_fraction = 0.0
    return method


@pytest.mark.parametrize("name", TRANSFER)
def test_line_2_configurations_with_values_that_are_gone_are_discarded(name):
    a = asked(always(name, old_step()), 100)[:, 0]
    assert np.abs(np.median(a) - 0.2) < 0.15
    past = old_step()
    without = rows(past, past.values[:, 2] != 0)
    assert_array_equal(asked(always(name, without), 20), asked(always(name, past), 20))


@pytest.mark.parametrize("name", TRANSFER)
def test_line_3_what_was_removed_has_no_influence(name):
    past = old_step()
    other = past.values.copy()
    other[:, 3] = np.random.default_rng(5).random(len(other))
    again = asked(made(name, replace(past, values=other)), 20)
    assert_array_equal(again, asked(made(name, past), 20))


@pytest.mark.parametrize("name", TRANSFER)
def test_line_4_ranks_count_and_not_losses(name):
    past = old_step()
    stretched = replace(past, objective=np.exp(5.0 * past.losses))
    assert_array_equal(asked(made(name, stretched), 20), asked(made(name, past), 20))
    upside_down = replace(past, objective=-past.losses)
    assert not np.array_equal(asked(made(name, upside_down), 20), asked(made(name, past), 20))


def test_line_7_a_third_is_drawn_from_the_prior():
    a = asked(made("transfer-tpe", old_step()), 900)[:, 0]
    follows = np.mean(np.abs(asked(always("transfer-tpe", old_step()), 900)[:, 0] - 0.2) < 0.3)
    assert_allclose(np.mean(np.abs(a - 0.2) < 0.3), (2 * follows + 0.5) / 3, atol=0.06)


@pytest.mark.parametrize("name", TRANSFER)
def test_lines_10_to_14_what_is_new_has_the_probability_of_its_share(name):
    values = asked(always(name, old_step()), 600)
    assert_allclose(np.mean(values[:, 1] > 10), 0.5, atol=0.08)
    assert_allclose(np.mean(values[:, 2] == 0), 1 / 3, atol=0.08)  # kind s
    for uniform in ((values[values[:, 1] > 10, 1] - 10) / 10, values[:, 3]):
        assert kstest(uniform, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", TRANSFER)
def test_lines_16_to_18_the_model_of_the_new_space_takes_over(name):
    first = needed(NEW.dimension) if name == "transfer-tpe" else 3
    a = play(always(name, old_step()), lambda values: (values[:, 0] - 0.85) ** 2, 60)[:, 0]
    assert np.median(np.abs(a[:first] - 0.2)) < 0.3
    assert np.median(np.abs(a[-20:] - 0.85)) < 0.2


@pytest.mark.parametrize("name", BEST_FIRST)
def test_the_best_old_configuration_comes_first(name):
    past = old_step()
    a, b, kind, _ = best_inside(past)
    first = [made(name, past, seed=seed).ask() for seed in range(150)]
    assert {(c["a"], c["b"], c["kind"]) for c in first} == {(a, b, "pqr"[int(kind)])}
    assert kstest([config["new"] for config in first], "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", BEST_FIRST)
def test_failed_old_evaluations_come_last(name):
    past = old_step()
    losses = past.losses.copy()
    inside = np.flatnonzero(past.values[:, 2] != 0)
    best, second = inside[np.argsort(losses[inside])[:2]]
    losses[best] = np.nan
    assert made(name, replace(past, objective=losses)).ask()["a"] == past.values[second, 0]


@pytest.mark.parametrize("name", ["only-optimize-new", "gp-only-optimize-new"])
def test_only_what_is_new_is_optimised(name):
    best = asked(made("best-first", old_step()), 1)
    values = play(made(name, old_step()), lambda values: (values[:, 3] - 0.6) ** 2, 30)
    assert_array_equal(np.unique(values[:, :3], axis=0), best[:, :3])
    assert np.abs(values[:, 3] - 0.6).min() < 0.05
    assert np.median(np.abs(values[-12:, 3] - 0.6)) < 0.2


@pytest.mark.parametrize("name", ["only-optimize-new", "gp-only-optimize-new"])
def test_where_nothing_is_new_the_best_is_repeated(name):
    method = made(name, old_step(), space=hbo.SearchSpace(NEW.parameters[:1]))
    assert len({method.ask()["a"] for _ in range(3)}) == 1


@pytest.mark.parametrize("name", ["drop-unimportant", "gp-drop-unimportant"])
def test_a_hyperparameter_without_effect_is_dropped(name):
    past = old_step(60)
    past = replace(past, objective=np.abs(past.values[:, 0] - 0.3))
    a, b, kind, new = play(made(name, past), lambda values: values[:, 0], 25).T
    assert set(b) == {best_inside(past)[1]} and len(set(kind)) == 1
    assert len(set(a)) > 20  # its bound, where the best is, more than once
    assert len(set(new)) == 25


@pytest.mark.parametrize("name", [*TRANSFER, *BEST_FIRST, "only-optimize-new", "drop-unimportant"])
def test_spaces_that_share_nothing_are_said_to(name):
    past = minimised("before", {}, np.full((3, 2), 0.5), np.arange(3.0), SQUARE)
    with pytest.warns(UserWarning, match="shares no hyperparameter with the one of 'before'"):
        method = made(name, past)
    if "gp" not in name:
        assert_array_equal(asked(method, 8), asked(make(TPE, space=NEW, budget=100), 8))


def test_a_history_that_lies_outside_is_of_no_use_and_one_configuration_is_no_ranking():
    past = old_step()
    is_p = past.values[:, 2] == 0
    plain = make(TPE, space=NEW, budget=100)
    outside = made("transfer-tpe-best-first", rows(past, is_p))
    assert_array_equal(asked(outside, 8), asked(plain, 8))
    single = rows(past, np.flatnonzero(~is_p)[:1])
    method = made("transfer-tpe-best-first", single)
    assert method.ask()["a"] == single.values[0, 0]
    method.ask()
