"""The papers whose tasks are left out one by one."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.reproduction import Paper, checks, paper, reproduce
from hpobench_ordered.reproduction.evidence import Measure
from hpobench_ordered.reproduction.figures import progress
from hpobench_ordered.reproduction.paper import (
    Claim,
    MethodComparison,
    PaperFigure,
    Setting,
    experiments,
)

BENCHMARK, METHODS = "forrester", ("random-search", "bo")
NEEDS = (MethodComparison(BENCHMARK, METHODS),)


@pytest.mark.parametrize(
    ("name", "figures"), [("ablr", range(1, 11)), ("abrac", range(1, 10)), ("distbo", range(1, 16))]
)
def test_every_figure_exists(name, figures):
    chosen = paper(name)
    assert [one.title for one in chosen.exhibits] == [f"Figure {n}" for n in figures]
    for benchmark, methods in experiments(chosen.exhibits).items():
        setting, spec = chosen.setting_of(benchmark), benchmark_spec(benchmark)
        assert isinstance(setting.protocol, hbo.LeaveOneOut)
        assert {*methods} <= {*hbo.list_methods(), *chosen.methods}
        assert setting.surrogate in (None, *(option.name for option in spec.surrogates))


def small(*claims: Claim, seeds: int = 2) -> Paper:
    figure = PaperFigure(
        1, "caption.", "says.", NEEDS, partial(progress, by_task=True, times=False), claims
    )
    whole = replace(figure, number=2, make=partial(progress, times=True), claims=())
    return Paper(
        name="small",
        citation="Someone (2020), Something",
        setting=Setting(hbo.LeaveOneOut(trials=5, tasks=2), tuple(range(seeds))),
        exhibits=(figure, whole),
        notes="Regret.",
    )


@pytest.mark.slow
def test_figures_are_of_all_targets(tmp_path):
    faster = Claim("1", "cheaper", checks.cheaper("random-search", ("bo",), factor=1))
    slower = Claim("1", "dearer", checks.cheaper("bo", ("random-search",), factor=1))
    rank = partial(checks.ahead, ("bo",), ("random-search",), trial=5, measure=Measure.RANK)
    claims = (
        faster,
        slower,
        Claim("2", "by task", rank(by_task=True)),
        Claim("2", "all", rank(), afterwards=True),
    )
    result = reproduce(small(*claims), folder=tmp_path)
    # Which one it is takes more than four short runs to tell on a busy machine.
    assert {claim.verdict for claim in result.claims[:2]} == {"yes", "no"}
    assert [len(claim.findings) for claim in result.claims] == [1, 1, 2, 1]
    table = pd.read_csv(tmp_path / "figure-1.csv")
    assert set(table["benchmark"]) == {"forrester, 0", "forrester, 1"}
    ranks = table[table["measure"] == "rank"].groupby(["benchmark", "trial"])["mean"].sum()
    assert ranks.tolist() == pytest.approx([3.0] * 10)
    regret = table[table["measure"] == "regret"].groupby(["benchmark", "method"])["mean"]
    assert (regret.diff().dropna() <= 0).all() and (table["low"] <= table["mean"]).all()
    whole = pd.read_csv(tmp_path / "figure-2.csv")
    assert (whole.loc[whole["measure"] == "time", "milliseconds"] > 0).all()
    mean = table.groupby(["measure", "method", "trial"])["mean"].mean()
    chosen = whole[whole["measure"] != "time"].set_index(["measure", "method", "trial"])
    np.testing.assert_allclose(chosen["mean"].sort_index(), mean)
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    held = [claim.verdict for claim in result.claims].count("yes")
    last = int(result.claims[-1].verdict == "yes")
    counts = f"{held - last} of 3 hold everywhere. Of those chosen afterwards {last} of 1 do."
    assert counts in summary and "| all (chosen afterwards) |" in summary
    assert "forrester: seeds 0 to 1; protocol leave-one-out: trials 5, tasks 2." in summary


def test_trials_in_flight_are_for_ordered_tasks(tmp_path):
    with pytest.raises(ExperimentError, match="not leave-one-out"):
        reproduce(small(), folder=tmp_path, workers_simulated=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "independent_trials"),
    [
        (paper("abrac").methods["mt-gp-bo"], 3),  # the paper's random trials
        # Its second trial does not depend on the loss of the first: standardised, it is 0.
        (method_spec("gp-transfer-subsample"), 2),
    ],
    ids=["paper", "without random trials"],
)
def test_first_trials_do_not_depend_on_losses(spec, independent_trials):
    benchmark = hbo.load("forrester")
    assignment = hbo.LeaveOneOut(trials=4).assignment(
        benchmark, spec, position=2, evaluated=(), rng=np.random.default_rng(0)
    )

    def suggest(spec: hbo.MethodSpec, losses: list[float]) -> list[object]:
        """Configurations that the method suggests when told these losses one after another."""
        method = spec.method(
            space=benchmark.space,
            rng=np.random.default_rng(1),
            history=assignment.history,
            context=assignment.task.context,
            budget=4,
        )
        configs = []
        for loss in losses:
            config = method.ask()
            method.tell(config, loss)
            configs.append(config)
        return configs

    configs = suggest(spec, [0, 1, 2, 3])
    configs_after_others = suggest(spec, [9, 1, 0, 3])

    pairs = zip(configs, configs_after_others, strict=True)
    is_independent_of_losses = [config == other for config, other in pairs]
    assert is_independent_of_losses.index(False) == independent_trials


# Two seeds, 3 below and 3 above the mean: two standard errors of the difference are 6.
@pytest.mark.parametrize(("mean_difference", "holds"), [(-1.0, True), (0.5, True), (20.0, False)])
def test_not_behind_within_two_standard_errors(constructed, mean_difference, holds):
    noise_of_seeds = np.array([-3.0, 3.0])[:, None, None]
    regret_of_random_search = np.full((2, 3, 4), 50.0)  # seeds, tasks, trials
    regret_of_bo = regret_of_random_search + mean_difference + noise_of_seeds
    evidence = constructed({})
    evidence._arrays = {
        ("forrester", "bo", None): {"regret": regret_of_bo},
        ("forrester", "random-search", None): {"regret": regret_of_random_search},
    }
    check = checks.not_behind("bo", "random-search", trial=4, measure=Measure.REGRET)

    (finding,) = check(evidence, [MethodComparison("forrester", ("random-search", "bo"))])

    assert finding.holds is holds


@pytest.mark.slow
def test_posterior_is_close_to_evaluations():
    from hpobench_ordered.reproduction.papers.abrac.posteriors import fit_belief

    belief = fit_belief("forrester", 2, "abrac", fixed=8, own=1)

    mean_at_points = np.interp(belief.points, belief.x, belief.mean)
    assert np.abs(mean_at_points - belief.values).mean() < 0.3 * belief.truth.std()


@pytest.mark.slow
def test_posterior_has_fixed_and_own_evaluations():
    from hpobench_ordered.reproduction.papers.abrac.posteriors import fit_belief

    belief = fit_belief("forrester", 2, "abrac", fixed=8, own=1)

    assert len(belief.points) == 8 + 1
    target = hbo.load("forrester").tasks[2]
    np.testing.assert_allclose(belief.values, target.evaluate_many(belief.points[:, None]))


@pytest.mark.slow
def test_posterior_uses_some_basis_functions():
    from hpobench_ordered.reproduction.papers.abrac.posteriors import fit_belief

    belief = fit_belief("forrester", 2, "abrac", fixed=8, own=1)

    assert belief.weights.max() == 1  # relative to the largest
    assert 1 <= belief.used <= belief.bases.shape[1]


@pytest.mark.slow
def test_contexts_are_embeddings_learned_elsewhere():
    from hpobench_ordered.reproduction.papers.ablr.learned_contexts import LearnedContexts

    source, here = "openml-xgboost", hbo.load("openml-svm", surrogate="nearest")
    protocol = hbo.LeaveOneOut(trials=3, history=10)
    spec = replace(paper("ablr").methods["ablr-xgboost-embeddings"])
    rng = np.random.default_rng(0)
    work = protocol.assignment(here, spec, position=2, evaluated=(), rng=rng)
    make = LearnedContexts(source, "nearest")
    made = make(
        space=here.space, rng=rng, history=work.history, context=work.task.context, budget=3
    )
    contexts = [tuple(task.context.values()) for task in made.history]
    assert len({*contexts, tuple(made.context.values())}) == 14
    assert all(set(task.context) == {"e_0", "e_1", "e_2", "e_3"} for task in made.history)
    assert [task.task for task in made.history] == [task.task for task in work.history]
