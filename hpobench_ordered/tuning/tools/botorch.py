"""BoTorch's Gaussian processes, as its tutorials use them: of the task alone, and of several tasks.

Notation:
    n   number of evaluations so far
    d   number of tunable hyperparameters
    p   number of model features
"""

import warnings
from collections.abc import Iterable

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.methods._model_based import remove_failed_evaluations
from hpobench_ordered.space.parameters import Kind
from hpobench_ordered.tuning.tools.base import (
    EXTRA,
    ModelWithoutRepeats,
    describe_method,
    list_best_configs,
)

try:
    import torch
    from botorch import fit_gpytorch_mll
    from botorch.acquisition import AcquisitionFunction, qLogExpectedImprovement
    from botorch.exceptions.errors import ModelFittingError
    from botorch.models import MultiTaskGP, SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.utils.sampling import manual_seed
    from gpytorch.mlls import ExactMarginalLogLikelihood
except ImportError as error:
    raise MissingExtraError("botorch", extra=EXTRA, purpose="botorch") from error

RESTARTS = 10  # of the acquisition function's optimisation, as in BoTorch's tutorials
RAW_SAMPLES = 512  # among which the restarts are chosen, as in BoTorch's tutorials
FIT_ITERATIONS = 200  # of several tasks; without a limit a fit takes thousands, and ten seconds


class BoTorch(ModelWithoutRepeats):
    """BoTorch as its tutorials use it.

    `SingleTaskGP` (its default kernel, priors and standardised outcomes) on
    `SearchSpace.features`, fitted by `fit_gpytorch_mll`; `qLogExpectedImprovement` maximised over
    the unit cube by `optimize_acqf` with 10 restarts from 512 raw samples; double precision.
    Integers are rounded afterwards. Categorical hyperparameters, and which ones are active, are
    taken from the best of 512 random configurations; `optimize_acqf` then chooses the numbers.
    """

    def rank_candidates(self, features: FloatArray, losses: FloatArray) -> Iterable[FloatArray]:
        """Yield what maximises the acquisition function, and random configurations after it.

        Nothing is yielded where no model can be fitted.
        """
        with manual_seed(int(self.rng.integers(2**31))), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of restarts that did not converge
            try:
                acquisition = self.fit_acquisition(features, losses)
            except ModelFittingError:
                return
            has_choices = any(p.kind is Kind.CATEGORICAL for p in self.space.parameters)
            if has_choices:
                # `optimize_acqf` cannot choose: choices are those of the best random candidate.
                random_candidates = self._rank_random_configs(acquisition)
                yield from self._maximise(acquisition, start=random_candidates[0])
                yield from random_candidates
            else:
                yield from self._maximise(acquisition, start=None)
                # Reached only if all that was optimised has been tried.
                yield from self._rank_random_configs(acquisition)

    def fit_acquisition(self, features: FloatArray, losses: FloatArray) -> AcquisitionFunction:
        """Fit the model and return the acquisition function, which is to be maximised."""
        outcomes = -torch.from_numpy(losses).unsqueeze(1)  # BoTorch maximises
        model = SingleTaskGP(torch.from_numpy(features), outcomes)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return qLogExpectedImprovement(model, best_f=outcomes.max())

    def _maximise(self, acquisition: AcquisitionFunction, start: FloatArray | None) -> FloatArray:
        """Maximise the acquisition function over the active numbers.

        Args:
            acquisition: The function, of features.
            start: A unit vector (d,). Categorical and inactive hyperparameters keep its values;
                None if there are no such hyperparameters.

        Returns:
            The result of every restart, canonical unit vectors (restarts, d), the best first.
        """
        feature_of_number = self._map_numbers_to_features()
        if start is None:
            unit_to_complete = np.zeros(self.space.dimension)
            n_features = self.space.dimension
            fixed_features = None
        else:
            unit_to_complete = start
            (features_of_start,) = self.space.features(start[None])
            n_features = len(features_of_start)
            feature_of_number = {
                j: feature for j, feature in feature_of_number.items() if not np.isnan(start[j])
            }
            fixed = set(range(n_features)) - set(feature_of_number.values())
            fixed_features = {feature: float(features_of_start[feature]) for feature in fixed}

        bounds = torch.tensor([[0.0] * n_features, [1.0] * n_features], dtype=torch.double)
        points, scores = optimize_acqf(
            acquisition,
            bounds=bounds,
            q=1,  # one configuration is suggested at a time
            return_best_only=False,
            num_restarts=RESTARTS,
            raw_samples=RAW_SAMPLES,
            fixed_features=fixed_features,
        )

        best_first = scores.flatten().argsort(descending=True)
        best_points = points[best_first, 0].numpy()  # (restarts, p): index 0 is the only one of q
        unit = np.tile(unit_to_complete, (len(best_points), 1))
        for j, feature in feature_of_number.items():
            unit[:, j] = best_points[:, feature]
        return self.space.canonical(unit)

    def _rank_random_configs(self, acquisition: AcquisitionFunction) -> FloatArray:
        """Draw random configurations in the unit cube, (RAW_SAMPLES, d), the best first."""
        unit = self.space.sample_unit(self.rng, RAW_SAMPLES)
        with torch.no_grad():
            scores = acquisition(torch.from_numpy(self.space.features(unit)).unsqueeze(1))
        return unit[np.argsort(-scores.numpy(), kind="stable")]

    def _map_numbers_to_features(self) -> dict[int, int]:
        """Index of the feature of every numeric hyperparameter, by the hyperparameter's index.

        A categorical hyperparameter has a feature for each of its choices.
        """
        columns = {}
        next_column = 0
        for index, parameter in enumerate(self.space.parameters):
            if parameter.kind is Kind.CATEGORICAL:
                next_column += len(parameter.choices)
            else:
                columns[index] = next_column
                next_column += 1
        return columns


class BoTorchMultiTask(BoTorch):
    """BoTorch's `MultiTaskGP` over the last tasks and the current one, told the best of the last.

    Of each of the last 8 tasks it sees the first 25 evaluations that did not fail, all losses
    standardised task by task. It starts with the best configurations of the last 3 tasks. A fit
    ends after `FIT_ITERATIONS` iterations.
    """

    tasks_of_model = 8
    evaluations_of_task = 25
    first_suggestions = 3

    def prepare(self) -> None:
        """Choose the evaluations that the model sees, and what is suggested first."""
        super().prepare()
        self._features_of_tasks = []
        self._losses_of_tasks = []
        history = remove_failed_evaluations(self.history)
        for evaluations in history[-self.tasks_of_model :]:
            values = evaluations.values[: self.evaluations_of_task]
            self._features_of_tasks.append(self.space.features(self.space.encode(values)))
            self._losses_of_tasks.append(evaluations.losses[: self.evaluations_of_task])

        self._first = list_best_configs(self.history, self.first_suggestions)
        # After fewer earlier tasks, random configurations take the place of their best ones.
        self.random_trials = self.first_suggestions - len(self._first)

    def ask(self) -> Config:
        """Suggest the best configurations of the last tasks, then what the model chooses."""
        return self._first.pop(0) if self._first else super().ask()

    def rank_candidates(self, features: FloatArray, losses: FloatArray) -> Iterable[FloatArray]:
        """As for one task, on features with the number of the task as a last column."""
        self._current = len(self._features_of_tasks)
        with_task = []
        for number, features_of_task in enumerate([*self._features_of_tasks, features]):
            task_column = np.full(len(features_of_task), number)
            with_task.append(np.c_[features_of_task, task_column])

        standardised = []
        for losses_of_task in (*self._losses_of_tasks, losses):
            deviation = losses_of_task.std() or 1.0  # 1 where all losses are the same
            standardised.append((losses_of_task - losses_of_task.mean()) / deviation)

        yield from super().rank_candidates(np.concatenate(with_task), np.concatenate(standardised))

    def fit_acquisition(self, features: FloatArray, losses: FloatArray) -> AcquisitionFunction:
        """Fit a model to all tasks, and return the acquisition function of the current one.

        The last feature is the number of the task.
        """
        outcomes = -torch.from_numpy(losses).unsqueeze(1)  # BoTorch maximises
        is_current = features[:, -1] == self._current
        model = MultiTaskGP(
            torch.from_numpy(features), outcomes, task_feature=-1, output_tasks=[self._current]
        )
        fit_gpytorch_mll(
            ExactMarginalLogLikelihood(model.likelihood, model),
            optimizer_kwargs={"options": {"maxiter": FIT_ITERATIONS}},
        )
        return qLogExpectedImprovement(model, best_f=outcomes[is_current].max())


GP = describe_method(
    "botorch",
    BoTorch,
    packages=["botorch", "gpytorch", "torch"],
    summary="BoTorch's SingleTaskGP and log expected improvement on each task by itself.",
)
MULTI_TASK = describe_method(
    "botorch-multi-task",
    BoTorchMultiTask,
    packages=["botorch", "gpytorch", "torch"],
    summary="BoTorch's MultiTaskGP over the last eight tasks, after the best of the last three.",
    uses_history=True,
)
