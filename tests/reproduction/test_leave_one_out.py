"""The papers whose tasks are left out one by one."""

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
    Outcome,
    PaperFigure,
    Setting,
    experiments,
)

PAPERS = ("ablr", "abrac", "distbo")


@pytest.mark.parametrize(("name", "last_figure"), [("ablr", 10), ("abrac", 9), ("distbo", 15)])
def test_every_figure_exists(name, last_figure):
    """From figure 1 of the paper to its last one."""
    titles = [exhibit.title for exhibit in paper(name).exhibits]
    assert titles == [f"Figure {number}" for number in range(1, last_figure + 1)]


@pytest.mark.parametrize("name", PAPERS)
def test_every_benchmark_leaves_tasks_out(name):
    chosen = paper(name)
    for benchmark in experiments(chosen.exhibits):
        assert isinstance(chosen.setting_of(benchmark).protocol, hbo.LeaveOneOut)


@pytest.mark.parametrize("name", PAPERS)
def test_methods_are_registered_or_the_papers(name):
    chosen = paper(name)
    for methods in experiments(chosen.exhibits).values():
        assert set(methods) <= {*hbo.list_methods(), *chosen.methods}


@pytest.mark.parametrize("name", PAPERS)
def test_benchmarks_have_surrogate_of_setting(name):
    """No surrogate in the setting stands for the benchmark's default."""
    chosen = paper(name)
    for benchmark in experiments(chosen.exhibits):
        surrogates = [option.name for option in benchmark_spec(benchmark).surrogates]
        assert chosen.setting_of(benchmark).surrogate in (None, *surrogates)


# -- a reproduction on two left-out tasks ----------------------------------------------------------

METHODS = ("random-search", "bo")
TASKS, SEEDS, TRIALS = 2, 2, 5


def make_small_paper(*claims: Claim) -> Paper:
    """A paper that compares two methods: figure 1 by task, figure 2 over tasks, with times."""
    needs = (MethodComparison("forrester", METHODS),)
    by_task = partial(progress, by_task=True, times=False)
    over_tasks = partial(progress, times=True)
    return Paper(
        name="small",
        citation="Someone (2020), Something",
        setting=Setting(hbo.LeaveOneOut(trials=TRIALS, tasks=TASKS), tuple(range(SEEDS))),
        exhibits=(
            PaperFigure(1, "caption.", "says.", needs, by_task, claims),
            PaperFigure(2, "caption.", "says.", needs, over_tasks),
        ),
        notes="Regret.",
    )


def is_cheaper(method: str, other: str) -> Claim:
    """The claim that a method takes less time than another."""
    return Claim("1", "cheaper", checks.cheaper(method, (other,), factor=1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the small paper is reproduced."""
    return tmp_path_factory.mktemp("leave-one-out")


@pytest.fixture(scope="module")
def result(folder):
    """The small paper with four claims: two on times, one by task, one chosen afterwards."""
    bo_is_ahead = partial(
        checks.ahead, ("bo",), ("random-search",), trial=TRIALS, measure=Measure.RANK
    )
    small = make_small_paper(
        is_cheaper("random-search", "bo"),
        is_cheaper("bo", "random-search"),
        Claim("2", "by task", bo_is_ahead(by_task=True)),
        Claim("2", "all", bo_is_ahead(), afterwards=True),
    )
    return reproduce(small, folder=folder)


@pytest.fixture(scope="module")
def curves_by_task(folder, result):
    """What figure 1 shows: measures by task, method and trial; `result` has written it."""
    return pd.read_csv(folder / "figure-1.csv")


@pytest.fixture(scope="module")
def curves_over_tasks(folder, result):
    """What figure 2 shows: measures by method and trial, and times; `result` has written it."""
    return pd.read_csv(folder / "figure-2.csv")


@pytest.mark.slow
def test_opposite_claims_on_times_do_not_both_hold(result):
    # Four short runs on a busy machine may not tell which method is cheaper.
    verdicts_on_times = sorted(claim.verdict for claim in result.claims[:2])
    assert verdicts_on_times in (["fails", "holds"], ["undecided", "undecided"])


@pytest.mark.slow
def test_claim_by_task_has_finding_per_task(result):
    numbers_of_findings = [len(claim.findings) for claim in result.claims]

    # Of four claims, the third is by task.
    assert numbers_of_findings == [1, 1, TASKS, 1]


@pytest.mark.slow
def test_figure_by_task_has_all_tasks(curves_by_task):
    assert set(curves_by_task["benchmark"]) == {"forrester, 0", "forrester, 1"}


@pytest.mark.slow
def test_mean_ranks_of_two_methods_add_to_3(curves_by_task):
    ranks = curves_by_task[curves_by_task["measure"] == "rank"]

    sums = ranks.groupby(["benchmark", "trial"])["mean"].sum()

    assert sums.tolist() == pytest.approx([1 + 2] * (TASKS * TRIALS))


@pytest.mark.slow
def test_regret_never_grows(curves_by_task):
    regret = curves_by_task[curves_by_task["measure"] == "regret"]

    steps = regret.groupby(["benchmark", "method"])["mean"].diff().dropna()

    assert (steps <= 0).all()


@pytest.mark.slow
def test_lower_ends_are_below_means(curves_by_task):
    assert (curves_by_task["low"] <= curves_by_task["mean"]).all()


@pytest.mark.slow
def test_figure_shows_times(curves_over_tasks):
    milliseconds = curves_over_tasks.loc[curves_over_tasks["measure"] == "time", "milliseconds"]
    assert (milliseconds > 0).all()


@pytest.mark.slow
def test_figure_over_tasks_has_means_of_tasks(curves_by_task, curves_over_tasks):
    labels = ["measure", "method", "trial"]
    expected = curves_by_task.groupby(labels)["mean"].mean()

    without_times = curves_over_tasks[curves_over_tasks["measure"] != "time"]
    means = without_times.set_index(labels)["mean"].sort_index()

    np.testing.assert_allclose(means, expected)


@pytest.mark.slow
def test_summary_counts_claims_chosen_afterwards(folder, result):
    *chosen_before, chosen_afterwards = [claim.outcome for claim in result.claims]
    summary = (folder / "summary.md").read_text(encoding="utf-8")

    counts = (
        f"{chosen_before.count(Outcome.HOLDS)} of 3 hold everywhere, "
        f"{chosen_before.count(Outcome.FAILS)} fail somewhere, and "
        f"{chosen_before.count(Outcome.UNDECIDED)} are undecided. "
        f"Of those chosen afterwards {[chosen_afterwards].count(Outcome.HOLDS)} of 1"
    )
    assert counts in summary
    assert "| all (chosen afterwards) |" in summary


@pytest.mark.slow
@pytest.mark.usefixtures("result")
def test_summary_has_setting(folder):
    setting = "forrester: seeds 0 to 1; protocol leave-one-out: trials 5, tasks 2."
    assert setting in (folder / "summary.md").read_text(encoding="utf-8")


def test_trials_in_flight_are_for_ordered_tasks(tmp_path):
    with pytest.raises(ExperimentError, match="not leave-one-out"):
        reproduce(make_small_paper(), folder=tmp_path, workers_simulated=2)


# -- methods and checks ----------------------------------------------------------------------------


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
    """Told other losses, a method suggests the same configurations up to some trial."""
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
    # The place of the first that differs is the number of those before it.
    assert is_independent_of_losses.index(False) == independent_trials


@pytest.mark.parametrize(
    ("mean_difference", "outcome"),
    [
        (-20.0, Outcome.HOLDS),
        (-1.0, Outcome.UNDECIDED),
        (0.5, Outcome.UNDECIDED),
        (20.0, Outcome.FAILS),
    ],
)
def test_difference_within_two_errors_is_undecided(make_evidence_of, mean_difference, outcome):
    """Of two seeds, 3 below and 3 above the mean: two standard errors of the difference are 6."""
    noise_of_seeds = np.array([-3.0, 3.0])[:, None, None]
    regret_of_random_search = np.full((2, 3, 4), 50.0)  # seeds, tasks, trials
    regret_of_bo = regret_of_random_search + mean_difference + noise_of_seeds
    evidence = make_evidence_of({})
    default_protocol = None
    evidence._arrays = {
        ("forrester", "bo", default_protocol): {"regret": regret_of_bo},
        ("forrester", "random-search", default_protocol): {"regret": regret_of_random_search},
    }
    check = checks.not_behind("bo", "random-search", trial=4, measure=Measure.REGRET)

    (finding,) = check(evidence, [MethodComparison("forrester", ("random-search", "bo"))])

    assert finding.outcome is outcome


@pytest.mark.slow
def test_posterior_is_close_to_evaluations():
    """The method has eight random evaluations of task 2 of forrester, and one that it chose.

    Its mean misses them by less than a third of the function's deviation, on average.
    """
    from hpobench_ordered.reproduction.papers.abrac.posteriors import fit_belief

    belief = fit_belief("forrester", 2, "abrac", fixed=8, own=1)

    mean_at_points = np.interp(belief.points, belief.x, belief.mean)
    mean_error = np.abs(mean_at_points - belief.values).mean()
    assert mean_error < 0.3 * belief.truth.std()


@pytest.mark.slow
def test_posterior_has_fixed_and_own_evaluations():
    """Eight random evaluations of task 2 of forrester, and one that the method chose."""
    from hpobench_ordered.reproduction.papers.abrac.posteriors import fit_belief

    belief = fit_belief("forrester", 2, "abrac", fixed=8, own=1)

    assert len(belief.points) == 8 + 1
    target = hbo.load("forrester").tasks[2]
    np.testing.assert_allclose(belief.values, target.evaluate_many(belief.points[:, None]))


@pytest.mark.slow
def test_posterior_uses_some_basis_functions():
    """Those whose weights are not negligible."""
    from hpobench_ordered.reproduction.papers.abrac.posteriors import fit_belief

    belief = fit_belief("forrester", 2, "abrac", fixed=8, own=1)

    # Weights are relative to the largest.
    assert belief.weights.max() == 1
    assert 1 <= belief.used <= belief.bases.shape[1]


@pytest.fixture(scope="module")
def assignment():
    """The third task of openml-svm, and 10 evaluations of each other task."""
    benchmark = hbo.load("openml-svm", surrogate="nearest")
    return hbo.LeaveOneOut(trials=3, history=10).assignment(
        benchmark,
        paper("ablr").methods["ablr-xgboost-embeddings"],
        position=2,
        evaluated=(),
        rng=np.random.default_rng(0),
    )


@pytest.fixture(scope="module")
def method_with_learned_contexts(assignment):
    """A method on openml-svm whose contexts are learned on openml-xgboost."""
    from hpobench_ordered.reproduction.papers.ablr.learned_contexts import LearnedContexts

    make = LearnedContexts("openml-xgboost", "nearest")
    return make(
        space=hbo.load("openml-svm", surrogate="nearest").space,
        rng=np.random.default_rng(0),
        history=assignment.history,
        context=assignment.task.context,
        budget=3,
    )


@pytest.mark.slow
def test_contexts_are_embeddings(method_with_learned_contexts):
    for task in method_with_learned_contexts.history:
        assert set(task.context) == {"e_0", "e_1", "e_2", "e_3"}


@pytest.mark.slow
def test_learned_contexts_differ_by_task(method_with_learned_contexts):
    method = method_with_learned_contexts

    contexts = {tuple(task.context.values()) for task in method.history}
    contexts.add(tuple(method.context.values()))

    # Of 13 other tasks and the current one.
    assert len(contexts) == 14


@pytest.mark.slow
def test_learned_contexts_keep_tasks(method_with_learned_contexts, assignment):
    tasks = [task.task for task in method_with_learned_contexts.history]
    assert tasks == [task.task for task in assignment.history]
