"""History for Syne Tune's transfer learning, without depending on Syne Tune.

Its schedulers (`BoundingBox`, `ZeroShotTransfer`, quantiles) take a dictionary from the name of a
task to `TransferLearningTaskEvaluations` (syne_tune.optimizer.schedulers.transfer_learning, version
0.16); the class here has the same fields. To convert, where `theirs` is their class and
`config_space_from_json_dict` is from `syne_tune.config_space`:

    evaluated = transfer_learning_evaluations(benchmark, rng=rng, n=50, tasks=range(target))
    space = config_space_from_json_dict(next(iter(evaluated.values())).configuration_space)
    taken = {t: theirs(**(vars(e) | {"configuration_space": space})) for t, e in evaluated.items()}

The metric is a loss: `do_minimize=True`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.core.history import Evaluations, aligned, check_history
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    from pandas import DataFrame

OBJECTIVE = "loss"  # name of the objective of evaluations without a benchmark


@dataclass(frozen=True)
class TransferLearningTaskEvaluations:
    """Evaluations of one task, field by field as Syne Tune's class of that name.

    Attributes:
        configuration_space: The search space in the JSON that Syne Tune's
            `config_space_from_json_dict` reads, an entry per tunable hyperparameter.
        hyperparameters: A row per evaluation, a column per tunable hyperparameter, native values.
            Syne Tune knows no conditions: inactive hyperparameters have their default.
        objectives_names: Name of the objective, whose losses follow.
        objectives_evaluations: Losses, shape (num_evals, num_seeds, num_fidelities,
            num_objectives) = (n, 1, 1, 1).
    """

    configuration_space: dict[str, Any]
    hyperparameters: "DataFrame"
    objectives_names: list[str]
    objectives_evaluations: FloatArray


def transfer_learning_evaluations(
    evaluated: Benchmark | Sequence[Evaluations],
    *,
    space: SearchSpace | None = None,
    rng: np.random.Generator | None = None,
    n: int | None = None,
    tasks: Iterable[int] | None = None,
) -> dict[str, TransferLearningTaskEvaluations]:
    """Convert history to the format of Syne Tune's transfer learning.

    Args:
        evaluated: A benchmark, for its recorded evaluations or else random ones; or evaluations,
            such as a method's history.
        space: Search space of the evaluations; a benchmark has its own.
        rng: Chooses evaluations; needed with a benchmark.
        n: Evaluations a task of a benchmark; default: its number of recorded ones.
        tasks: Indices of the benchmark's tasks, such as those before the one to tune;
            default: all.

    Returns:
        Evaluations by the name of their task, in order.

    Raises:
        EvaluationsError: A benchmark without `rng` or with `space`, evaluations without `space` or
            with the other options, or which do not form a history, see `check_history`.
    """
    if isinstance(evaluated, Benchmark):
        if rng is None or space is not None:
            raise EvaluationsError("a benchmark needs `rng`, and has its own space")
        chosen = range(len(evaluated.tasks)) if tasks is None else tasks
        history = [evaluated.evaluations(t, rng=rng, n=n) for t in chosen]
        space, objective = evaluated.space, evaluated.objective.name
    else:
        if space is None or not (rng is None and n is None and tasks is None):
            raise EvaluationsError("evaluations need their `space`, and take no other option")
        history, objective = list(aligned(evaluated, space)), OBJECTIVE
    if history:
        check_history(history, space, history[0].direction)
    return {e.task: _laid_out(e, space, objective) for e in history}


def _laid_out(
    evaluations: Evaluations, space: SearchSpace, objective: str
) -> TransferLearningTaskEvaluations:
    import pandas as pd

    columns = {
        p.name: [p.default if np.isnan(x) else p.value(x) for x in column]
        for p, column in zip(space.parameters, evaluations.values.T.tolist(), strict=True)
    }
    return TransferLearningTaskEvaluations(
        configuration_space={p.name: _domain(p) for p in space.parameters},
        hyperparameters=pd.DataFrame(columns),
        objectives_names=[objective],
        objectives_evaluations=evaluations.losses[:, None, None, None].copy(),
    )


def _domain(parameter: Parameter) -> dict[str, Any]:
    """A hyperparameter as a domain in Syne Tune's JSON."""
    if parameter.choices:
        kind = "Ordinal" if parameter.kind is Kind.ORDINAL else "Categorical"
        domain: dict[str, Any] = {"categories": list(parameter.choices)}
    else:
        kind = "Integer" if parameter.kind is Kind.INTEGER else "Float"
        ends = parameter.value(parameter.lower), parameter.value(parameter.upper)
        domain = dict(zip(("lower", "upper"), ends, strict=True))
    sampler = "LogUniform" if parameter.log else "Uniform"
    described = {"domain_cls": kind, "domain_kwargs": domain, "sampler_cls": sampler}
    return described | {"sampler_kwargs": {}}
