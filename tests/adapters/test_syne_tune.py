"""History laid out as Syne Tune's transfer learning takes it."""

from dataclasses import fields, replace

import numpy as np
import pytest
from histories import minimised

from hpobench_ordered import load
from hpobench_ordered.adapters import TransferLearningTaskEvaluations, transfer_learning_evaluations
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.testing.toy import (
    conditional_space,
    numeric_space,
    numeric_space_before,
    random_history,
    toy_benchmark,
)


def test_layout_and_domains_are_those_of_syne_tune():
    history = random_history(toy_benchmark(conditional_space(), tasks=1).tasks, seed=0)
    laid_out = transfer_learning_evaluations(history, space=conditional_space())
    uniform, log = (
        {"sampler_cls": name, "sampler_kwargs": {}} for name in ("Uniform", "LogUniform")
    )
    assert laid_out["0"].objectives_names == ["loss"]
    assert laid_out["0"].configuration_space == {
        "kind": {"domain_cls": "Categorical", "domain_kwargs": {"categories": ["a", "b", "c"]}}
        | uniform,
        "level": {"domain_cls": "Ordinal", "domain_kwargs": {"categories": [1, 10, 100]}} | uniform,
        "n": {"domain_cls": "Integer", "domain_kwargs": {"lower": 1, "upper": 50}} | log,
        "x": {"domain_cls": "Float", "domain_kwargs": {"lower": 0.0, "upper": 1.0}} | uniform,
    }
    names = " ".join(field.name for field in fields(TransferLearningTaskEvaluations))
    assert names == "configuration_space hyperparameters objectives_names objectives_evaluations"


def test_rows_are_the_evaluations_inactive_values_the_default():
    space = conditional_space()
    (task,) = toy_benchmark(space, tasks=1).tasks
    (evaluations,) = random_history([task], seed=0)
    (laid_out,) = transfer_learning_evaluations([evaluations], space=space).values()
    rows = laid_out.hyperparameters.to_dict("records")
    assert np.isnan(evaluations.values).any()
    for row, config, loss in zip(
        rows, space.configs(evaluations.values), laid_out.objectives_evaluations, strict=True
    ):
        assert row == {"x": 0.5} | {k: v for k, v in config.items() if k != "fixed"}
        assert task.evaluate(row) == loss.item()


def test_recorded_evaluations_and_losses_of_a_maximised_objective():
    benchmark = load("yahpo-svm-1220")
    rng = np.random.default_rng(0)
    laid_out = transfer_learning_evaluations(benchmark, rng=rng, n=5, tasks=range(2))
    assert list(laid_out) == [task.name for task in benchmark.tasks[:2]]
    for task in benchmark.tasks[:2]:
        one = laid_out[task.name]
        assert list(one.hyperparameters) == list(one.configuration_space)
        assert one.objectives_names == [benchmark.objective.name]
        assert one.objectives_evaluations.shape == (5, 1, 1, 1)
        expected = [-task.evaluate(row) for row in one.hyperparameters.to_dict("records")]
        np.testing.assert_allclose(one.objectives_evaluations.ravel(), expected)


def test_what_does_not_belong_together_is_refused():
    benchmark = toy_benchmark(numeric_space(), tasks=1)
    history = random_history(benchmark.tasks, seed=0)
    elsewhere = minimised("t", {}, np.zeros((1, 2)), np.zeros(1), numeric_space_before())
    other, on = replace(history[0], task="other", direction="maximize"), {"space": numeric_space()}
    for source, options, said in (
        (benchmark, {}, "`rng`"),
        (history, {}, "`space`"),
        ([*history, *history], on, "more than one history"),
        ([elsewhere], on, "another search space"),
        ([*history, other], on, "its objective is to maximize"),
    ):
        with pytest.raises(EvaluationsError, match=said):
            transfer_learning_evaluations(source, **options)
