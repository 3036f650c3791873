"""The papers ablr, abrac and distbo: each task is left out, and all others are its history."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from reproduction_support import InventedEvidence, make_figure

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.papers import Paper, checks, paper, reproduce
from hpobench_ordered.papers.ablr.learned_contexts import LearnedContexts
from hpobench_ordered.papers.abrac.posteriors import fit_belief
from hpobench_ordered.papers.evidence import Measure
from hpobench_ordered.papers.figures import progress
from hpobench_ordered.papers.paper import (
    Claim,
    MethodComparison,
    Outcome,
    Setting,
    experiments,
)

PAPER_NAMES = ("ablr", "abrac", "distbo")


@pytest.mark.parametrize(("name", "last_figure"), [("ablr", 10), ("abrac", 9), ("distbo", 15)])
def test_every_figure_exists(name, last_figure):
    """A paper has all its figures here, from the first to the last one."""
    titles = [exhibit.title for exhibit in paper(name).exhibits]
    assert titles == [f"Figure {number}" for number in range(1, last_figure + 1)]


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_every_benchmark_leaves_tasks_out(name):
    """The protocol on every benchmark of a paper is leave-one-out."""
    chosen = paper(name)
    for benchmark in experiments(chosen.exhibits):
        assert isinstance(chosen.setting_of(benchmark).protocol, hbo.LeaveOneOut)


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_methods_are_registered_or_the_papers(name):
    """Every method of a paper's experiments is in the package, or of the paper alone."""
    chosen = paper(name)
    for methods in experiments(chosen.exhibits).values():
        assert set(methods) <= {*hbo.list_methods(), *chosen.methods}


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_benchmarks_have_surrogate_of_setting(name):
    """The setting of a paper names one of the benchmark's surrogates, or None: its default."""
    chosen = paper(name)
    for benchmark in experiments(chosen.exhibits):
        surrogates = [option.name for option in benchmark_spec(benchmark).surrogates]
        assert chosen.setting_of(benchmark).surrogate in (None, *surrogates)


# -- a reproduction on two left-out tasks ----------------------------------------------------------

TASKS, SEEDS, TRIALS = 2, 2, 5


def make_small_paper(*claims: Claim) -> Paper:
    """A paper that compares bo with random-search on two tasks of forrester.

    Figure 1 has curves for each task, and the claims; figure 2 has means over tasks, and times.
    """
    two_methods = [MethodComparison("forrester", ("random-search", "bo"))]
    draw_by_task = partial(progress, by_task=True, times=False)
    draw_means_over_tasks = partial(progress, times=True)
    return Paper(
        name="small",
        citation="Someone (2020), Something",
        setting=Setting(hbo.LeaveOneOut(trials=TRIALS, tasks=TASKS), seeds=tuple(range(SEEDS))),
        exhibits=(
            make_figure(1, two_methods, draw_by_task, *claims),
            make_figure(2, two_methods, draw_means_over_tasks),
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
    """The reproduction of the small paper, with four claims.

    Two are on times, the third on each task, and the fourth was chosen when results were known.
    """
    bo_is_ahead = checks.ahead(
        ("bo",), ("random-search",), trial=TRIALS, measure=Measure.RANK, by_task=False
    )
    bo_is_ahead_by_task = checks.ahead(
        ("bo",), ("random-search",), trial=TRIALS, measure=Measure.RANK, by_task=True
    )
    small_paper = make_small_paper(
        is_cheaper("random-search", "bo"),
        is_cheaper("bo", "random-search"),
        Claim("2", "by task", bo_is_ahead_by_task),
        Claim("2", "all", bo_is_ahead, afterwards=True),
    )
    return reproduce(small_paper, folder=folder)


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
    """One claim says that random-search is cheaper than bo, the other one says the opposite.

    Short runs on a busy machine may not tell which of them holds.
    """
    first, second, *_on_other_measures = result.claims

    verdicts = {first.verdict, second.verdict}
    assert verdicts in ({"holds", "fails"}, {"undecided"})


@pytest.mark.slow
def test_claim_by_task_has_finding_per_task(result):
    """A claim on each task, here the third of four, has a finding for each; others have one."""
    numbers_of_findings = [len(claim.findings) for claim in result.claims]

    assert numbers_of_findings == [1, 1, TASKS, 1]


@pytest.mark.slow
def test_figure_by_task_has_all_tasks(curves_by_task):
    assert set(curves_by_task["benchmark"]) == {"forrester, 0", "forrester, 1"}


@pytest.mark.slow
def test_mean_ranks_of_two_methods_add_to_3(curves_by_task):
    """On each task, after each trial, one method has rank 1 and the other rank 2, or both 1.5."""
    ranks = curves_by_task[curves_by_task["measure"] == "rank"]

    sums = ranks.groupby(["benchmark", "trial"])["mean"].sum()

    assert sums.tolist() == pytest.approx([1 + 2] * (TASKS * TRIALS))


@pytest.mark.slow
def test_regret_never_grows(curves_by_task):
    """A curve shows the regret of the best trial so far."""
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
    """Figure 1 has curves for each task, and figure 2 their means over tasks."""
    labels = ["measure", "method", "trial"]
    expected = curves_by_task.groupby(labels)["mean"].mean()

    without_times = curves_over_tasks[curves_over_tasks["measure"] != "time"]
    means = without_times.set_index(labels)["mean"].sort_index()

    np.testing.assert_allclose(means, expected)


@pytest.mark.slow
def test_summary_counts_claims_chosen_afterwards(folder, result):
    """The last of four claims was chosen when results were known, and is counted separately."""
    *chosen_before, chosen_afterwards = [claim.outcome for claim in result.claims]
    summary = (folder / "summary.md").read_text(encoding="utf-8")

    hold = chosen_before.count(Outcome.HOLDS)
    fail = chosen_before.count(Outcome.FAILS)
    are_undecided = chosen_before.count(Outcome.UNDECIDED)
    hold_afterwards = 1 if chosen_afterwards is Outcome.HOLDS else 0
    assert (
        f"{hold} of 3 hold everywhere, {fail} fail somewhere, and {are_undecided} are undecided. "
        f"Of those chosen afterwards {hold_afterwards} of 1"
    ) in summary
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


def suggest_and_tell(spec: hbo.MethodSpec, losses: list[float]) -> list[object]:
    """Tell a method these losses one after another; returns the configurations it suggests.

    It tunes the third task of forrester, with the same seed and history each time.
    """
    benchmark = hbo.load("forrester")
    trials = len(losses)
    assignment = hbo.LeaveOneOut(trials=trials).assignment(
        benchmark, spec, position=2, evaluated=(), rng=np.random.default_rng(0)
    )
    method = spec.method(
        space=benchmark.space,
        rng=np.random.default_rng(1),
        history=assignment.history,
        context=assignment.task.context,
        budget=trials,
    )
    configs = []
    for loss in losses:
        config = method.ask()
        method.tell(config, loss)
        configs.append(config)
    return configs


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
    configs = suggest_and_tell(spec, [0, 1, 2, 3])
    other_configs = suggest_and_tell(spec, [9, 1, 0, 3])

    n = independent_trials
    assert configs[:n] == other_configs[:n]
    assert configs[n] != other_configs[n]


@pytest.mark.parametrize(
    ("mean_difference", "outcome"),
    [
        (-20.0, Outcome.HOLDS),
        (-1.0, Outcome.UNDECIDED),
        (0.5, Outcome.UNDECIDED),
        (20.0, Outcome.FAILS),
    ],
)
def test_difference_within_two_errors_is_undecided(mean_difference, outcome):
    """A difference that is smaller than two standard errors between seeds decides nothing.

    One of two seeds is 3 below the mean difference, the other one 3 above it. So two standard
    errors are 6.
    """
    noise_of_seeds = np.array([-3.0, 3.0])[:, None, None]
    regret_of_random_search = np.full((2, 3, 4), 50.0)  # seeds, tasks, trials
    regret_of_bo = regret_of_random_search + mean_difference + noise_of_seeds
    evidence = InventedEvidence()
    evidence.add_runs("forrester", "random-search", regret=regret_of_random_search)
    evidence.add_runs("forrester", "bo", regret=regret_of_bo)
    bo_is_not_behind = checks.not_behind("bo", "random-search", trial=4, measure=Measure.REGRET)

    (finding,) = bo_is_not_behind(
        evidence, [MethodComparison("forrester", ("random-search", "bo"))]
    )

    assert finding.outcome is outcome


@pytest.fixture(scope="module")
def belief():
    """The model that the method abrac fits to task 2 of forrester: its mean, basis functions, ...

    It is fitted to eight random evaluations, and one that the method chose.
    """
    return fit_belief("forrester", task=2, method="abrac", fixed=8, own=1)


@pytest.mark.slow
def test_posterior_is_close_to_evaluations(belief):
    """The model's mean misses the values that it was fitted to by little, on average.

    Compared with the function's standard deviation, it is less than a third.
    """
    mean_at_points = np.interp(belief.points, belief.x, belief.mean)

    mean_error = np.abs(mean_at_points - belief.values).mean()
    assert mean_error < 0.3 * belief.truth.std()


@pytest.mark.slow
def test_posterior_has_fixed_and_own_evaluations(belief):
    """The model is fitted to eight random evaluations of task 2, and one that the method chose."""
    assert len(belief.points) == 8 + 1

    configurations = belief.points[:, None]  # of one hyperparameter
    values = hbo.load("forrester").tasks[2].evaluate_many(configurations)
    np.testing.assert_allclose(belief.values, values)


@pytest.mark.slow
def test_posterior_uses_some_basis_functions(belief):
    """Of its basis functions, the model uses those whose weights are not negligible.

    Weights are relative to the largest.
    """
    number_of_functions = belief.bases.shape[1]

    assert belief.weights.max() == 1
    assert 1 <= belief.used <= number_of_functions


@pytest.fixture(scope="module")
def assignment():
    """What a method is to tune: the third task of openml-svm.

    Its history is 10 evaluations of each other task.
    """
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
    """A method on openml-svm whose contexts of tasks are learned on openml-xgboost.

    Both benchmarks have tasks on the same data sets.
    """
    make_method = LearnedContexts("openml-xgboost", surrogate="nearest")
    return make_method(
        space=hbo.load("openml-svm", surrogate="nearest").space,
        rng=np.random.default_rng(0),
        history=assignment.history,
        context=assignment.task.context,
        budget=3,
    )


@pytest.mark.slow
def test_contexts_are_embeddings(method_with_learned_contexts):
    """A context that is learned for a task is its embedding, four numbers."""
    for task in method_with_learned_contexts.history:
        assert set(task.context) == {"e_0", "e_1", "e_2", "e_3"}


@pytest.mark.slow
def test_learned_contexts_differ_by_task(method_with_learned_contexts):
    """Each task has learned numbers of its own: 13 tasks of the history, and the current one."""
    method = method_with_learned_contexts

    distinct_contexts = {tuple(task.context.values()) for task in method.history}
    distinct_contexts.add(tuple(method.context.values()))

    assert len(distinct_contexts) == 13 + 1


@pytest.mark.slow
def test_learned_contexts_keep_tasks(method_with_learned_contexts, assignment):
    tasks = [task.task for task in method_with_learned_contexts.history]
    assert tasks == [task.task for task in assignment.history]
