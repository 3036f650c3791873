"""Bayesian optimisation as the authors of othpo ran it: its priors, and how it pairs losses."""

import dataclasses
import math

import by_hand
import numpy as np
import pytest
from by_hand import SPACE_OF_TWELVE

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods._gp.model import GaussianProcess, Priors
from hpobench_ordered.papers import paper, reproduce
from hpobench_ordered.papers.othpo.authors_bo import METHODS, WORKERS, AuthorsBO, approximate_gamma

NUMBER = hbo.SearchSpace([hbo.Parameter.number("x", 0, 1)])


def tell_first_four(method: AuthorsBO) -> list[float]:
    """Tell the losses 0 to 3 of the first four configurations, with four trials in flight."""
    configs = [method.ask() for _ in range(4)]
    for loss in range(4):
        method.tell(configs[loss], float(loss))
        configs.append(method.ask())
    return method.evaluated_losses().tolist()


def draw_history() -> tuple[hbo.Evaluations, ...]:
    """Ten random evaluations of each of newsvendor's first two tasks."""
    bench = hbo.load("newsvendor")
    rng = np.random.default_rng(1)
    return tuple(bench.evaluations(task, rng=rng, n=10) for task in (0, 1))


def test_prior_has_mode_and_curvature_of_gamma():
    """The normal prior of log x has the mode of a gamma prior of x, and its curvature there.

    The gamma distribution of shape 3 and rate 6 has the density x^2 exp(-6 x), without its
    constant. The curvature is estimated by second differences, with the step h.
    """
    prior = approximate_gamma(3.0, 6.0)
    h = 1e-3

    def log_density(log_x: float) -> float:
        return 2 * log_x - 6 * math.exp(log_x)

    at_mode = log_density(prior.mean)
    below, above = log_density(prior.mean - h), log_density(prior.mean + h)
    assert at_mode > max(below, above)
    curvature = (below - 2 * at_mode + above) / h**2
    curvature_of_normal = -1 / prior.sd**2
    assert curvature == pytest.approx(curvature_of_normal, rel=1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_priors_reach_the_model(name, monkeypatch):
    """Every fit of the model has other priors than the default ones of this package."""
    priors: list[Priors] = []
    fit = GaussianProcess.fit

    def record(X, y, **settings):
        priors.append(settings["priors"])
        return fit(X, y, **settings)

    monkeypatch.setattr(GaussianProcess, "fit", record)
    task = hbo.load("newsvendor").tasks[2]
    history = draw_history()
    method = METHODS[name].method(
        space=task.space,
        rng=np.random.default_rng(0),
        history=history,
        context=task.context,
        budget=8,
    )
    for loss in range(7):
        method.tell(method.ask(), float(loss))

    assert priors  # the model was fitted
    assert Priors() not in priors


def test_one_worker_keeps_losses_in_order():
    """If each loss is told before the next configuration is asked for, losses keep their order."""
    method = by_hand.make_method(AuthorsBO, space=NUMBER)
    for loss in range(3):
        method.tell(method.ask(), float(loss))

    assert method.evaluated_losses().tolist() == [0.0, 1.0, 2.0]


def test_losses_of_trials_in_flight_change_places():
    """The four losses of trials in flight are paired with these trials in a random order.

    With each seed all four losses are there, always in the same order; over 20 seeds, each of them
    is the first one.
    """

    def draw_order(seed: int) -> list[float]:
        method = by_hand.make_method(AuthorsBO, space=SPACE_OF_TWELVE, seed=seed)
        return tell_first_four(method)

    orders = [draw_order(seed) for seed in range(20)]

    told_losses = [0.0, 1.0, 2.0, 3.0]
    for losses in orders:
        assert sorted(losses) == told_losses
    assert {losses[0] for losses in orders} == set(told_losses)
    assert draw_order(seed=0) == orders[0]


def test_other_papers_have_no_authors_bo():
    """Only for othpo is the authors' Bayesian optimisation rebuilt; other papers refuse it."""
    with pytest.raises(ExperimentError, match="of abrac is not rebuilt"):
        paper("abrac").require_authors_bo()


@pytest.fixture
def paper_of_ten_trials():
    """The paper othpo with its authors' Bayesian optimisation, and ten trials instead of 25.

    Figure 17 shows the tenth trial.
    """
    with_authors_bo = paper("othpo").require_authors_bo()
    setting = with_authors_bo.setting
    protocol = dataclasses.replace(setting.protocol, trials=10)
    return dataclasses.replace(
        with_authors_bo, setting=dataclasses.replace(setting, protocol=protocol)
    )


@pytest.mark.slow
def test_figure_shows_authors_methods(paper_of_ten_trials, tmp_path):
    """Figures show the authors' methods by the names of ours."""
    result = reproduce(paper_of_ten_trials, folder=tmp_path, figures=[17], seeds=[0])

    names = {cell.method.name for cell in result.cells}
    assert {"authors-simple-ordered", "authors-transfer-bo", "cts"} <= names
    assert f"workers_simulated={WORKERS}" in result.cells[0].describe()["protocol"]
    assert b"simple-ordered" in (tmp_path / "figure-17.csv").read_bytes()
