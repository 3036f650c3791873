"""Other libraries' Bayesian optimisation behind this package's interface, to compare with.

BoTorch and scikit-learn are imported when a model is first needed: what they once found can be
read where they are not installed.

Notation:
    n   number of evaluations so far
    d   number of tunable hyperparameters
    p   number of model features
"""

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.methods.base import Method
from hpobench_ordered.space.parameters import Kind

if TYPE_CHECKING:
    from botorch.acquisition import AcquisitionFunction

RESTARTS = 10  # of the acquisition function's optimisation, as in BoTorch's tutorials
RAW_SAMPLES = 512  # among which the restarts are chosen, as in BoTorch's tutorials
CANDIDATES = 2000  # from which scikit-learn's model chooses


class Baseline(Method):
    """Random initial trials, drawn as random search does, then what a model suggests.

    No configuration is suggested twice: a model ranks several, and where all have been tried a
    random one is suggested. `fallbacks` counts these, and models that could not be fitted.
    """

    random_trials = 3

    def prepare(self) -> None:
        """Begin without evaluations."""
        self._tried: set[bytes] = set()  # coded configurations
        self._features: list[FloatArray] = []  # of each evaluation, (p,)
        self._losses: list[float] = []

    def ask(self) -> Config:
        """Suggest the most promising configuration that was not tried yet, or a random one."""
        if len(self._losses) < self.random_trials:
            return self._random()

        candidates = self.ranked(np.array(self._features), np.array(self._losses))
        for unit in candidates:
            values = self.space.decode(unit[None])
            if values.tobytes() not in self._tried:
                (config,) = self.space.configs(values)
                return config

        self.fallbacks += 1
        return self._random()

    def tell(self, config: Config, loss: float) -> None:
        """Keep a configuration, its features and its loss for the model."""
        values = self.space.row(config)[None]
        self._tried.add(values.tobytes())
        self._features.append(self.space.features(self.space.encode(values))[0])
        self._losses.append(loss)

    @abstractmethod
    def ranked(self, features: FloatArray, losses: FloatArray) -> Iterable[FloatArray]:
        """Yield canonical unit vectors (d,), the most promising first; features are (n, p)."""

    def _random(self) -> Config:
        """Draw an untried configuration, or a tried one where untried ones are rare."""
        for _ in range(100):
            config = self.space.sample(self.rng)
            if self.space.row(config).tobytes() not in self._tried:
                break
        return config


class BoTorch(Baseline):
    """BoTorch as its tutorials use it.

    `SingleTaskGP` (its default kernel, priors and standardised outcomes) on
    `SearchSpace.features`, fitted by `fit_gpytorch_mll`; `qLogExpectedImprovement` maximised over
    the unit cube by `optimize_acqf` with 10 restarts from 512 raw samples; double precision.
    Integers are rounded afterwards. Categorical hyperparameters, and which ones are active, are
    taken from the best of 512 random configurations; `optimize_acqf` then chooses the numbers.
    """

    def ranked(self, features: FloatArray, losses: FloatArray) -> Iterable[FloatArray]:
        """Yield what maximises the acquisition function, and random configurations after it.

        Nothing is yielded where no model can be fitted.
        """
        from botorch.exceptions.errors import ModelFittingError
        from botorch.utils.sampling import manual_seed

        with manual_seed(int(self.rng.integers(2**31))), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of restarts that did not converge
            try:
                acquisition = self.fitted(features, losses)
            except ModelFittingError:
                return
            has_choices = any(p.kind is Kind.CATEGORICAL for p in self.space.parameters)
            if has_choices:
                # `optimize_acqf` cannot choose: choices are those of the best random candidate.
                random_candidates = self._best_random(acquisition)
                yield from self._optimised(acquisition, start=random_candidates[0])
                yield from random_candidates
            else:
                yield from self._optimised(acquisition, start=None)
                # Reached only if all that was optimised has been tried.
                yield from self._best_random(acquisition)

    def fitted(self, features: FloatArray, losses: FloatArray) -> "AcquisitionFunction":
        """Fit the model and return the acquisition function, which is to be maximised."""
        import torch
        from botorch import fit_gpytorch_mll
        from botorch.acquisition import qLogExpectedImprovement
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        outcomes = -torch.from_numpy(losses).unsqueeze(1)  # BoTorch maximises
        model = SingleTaskGP(torch.from_numpy(features), outcomes)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return qLogExpectedImprovement(model, best_f=outcomes.max())

    def _optimised(
        self, acquisition: "AcquisitionFunction", start: FloatArray | None
    ) -> FloatArray:
        """Maximise the acquisition function over the active numbers.

        Args:
            acquisition: The function, of features.
            start: A unit vector (d,). Categorical and inactive hyperparameters keep its values;
                None if there are no such hyperparameters.

        Returns:
            The result of every restart, canonical unit vectors (restarts, d), the best first.
        """
        import torch
        from botorch.optim import optimize_acqf

        feature_of_number = self._columns()
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

    def _best_random(self, acquisition: "AcquisitionFunction") -> FloatArray:
        """Draw random configurations in the unit cube, (RAW_SAMPLES, d), the best first."""
        import torch

        unit = self.space.sample_unit(self.rng, RAW_SAMPLES)
        with torch.no_grad():
            scores = acquisition(torch.from_numpy(self.space.features(unit)).unsqueeze(1))
        return unit[np.argsort(-scores.numpy(), kind="stable")]

    def _columns(self) -> dict[int, int]:
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

    Of each of the last 8 tasks it sees the first 25 evaluations, all losses standardised task by
    task. It starts with the best configurations of the last 3 tasks.
    """

    tasks_of_model = 8
    evaluations_of_task = 25
    first_suggestions = 3

    def prepare(self) -> None:
        """Choose the evaluations that the model sees, and what is suggested first."""
        super().prepare()
        self._features_of_tasks = []
        self._losses_of_tasks = []
        for evaluations in self.history[-self.tasks_of_model :]:
            values = evaluations.values[: self.evaluations_of_task]
            self._features_of_tasks.append(self.space.features(self.space.encode(values)))
            self._losses_of_tasks.append(evaluations.losses[: self.evaluations_of_task])

        self._first = []
        for evaluations in reversed(self.history[-self.first_suggestions :]):
            best_row = int(np.nanargmin(evaluations.losses))
            (best_config,) = self.space.configs(evaluations.values[[best_row]])
            self._first.append(best_config)
        # After fewer earlier tasks, random configurations take the place of their best ones.
        self.random_trials = self.first_suggestions - len(self._first)

    def ask(self) -> Config:
        return self._first.pop(0) if self._first else super().ask()

    def ranked(self, features: FloatArray, losses: FloatArray) -> Iterable[FloatArray]:
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

        yield from super().ranked(np.concatenate(with_task), np.concatenate(standardised))

    def fitted(self, features: FloatArray, losses: FloatArray) -> "AcquisitionFunction":
        """Fit a model to all tasks, and return the acquisition function of the current one.

        The last feature is the number of the task.
        """
        import torch
        from botorch import fit_gpytorch_mll
        from botorch.acquisition import qLogExpectedImprovement
        from botorch.models import MultiTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        outcomes = -torch.from_numpy(losses).unsqueeze(1)  # BoTorch maximises
        is_current = features[:, -1] == self._current
        model = MultiTaskGP(
            torch.from_numpy(features), outcomes, task_feature=-1, output_tasks=[self._current]
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return qLogExpectedImprovement(model, best_f=outcomes[is_current].max())


class ScikitLearn(Baseline):
    """scikit-learn's Gaussian process and expected improvement over 2000 random candidates.

    Matern-5/2 with a length scale for each feature, a factor and noise, all learnt by maximum
    likelihood from one start; standardised losses.
    """

    def ranked(self, features: FloatArray, losses: FloatArray) -> Iterable[FloatArray]:
        """Rank random configurations by their expected improvement."""
        from scipy.stats import norm
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        # Each kernel has its initial hyperparameters, and the bounds of the fit.
        factor = ConstantKernel(1.0, (1e-2, 1e2))
        matern = Matern([0.7] * features.shape[1], (1e-2, 1e2), nu=2.5)
        noise = WhiteKernel(1e-3, (1e-6, 1.0))
        kernel = factor * matern + noise

        unit = self.space.sample_unit(self.rng, CANDIDATES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of hyperparameters at their bounds
            model = GaussianProcessRegressor(kernel, normalize_y=True).fit(features, losses)
            mean, sd = model.predict(self.space.features(unit), return_std=True)
        z = (losses.min() - mean) / sd
        expected_improvement = sd * (z * norm.cdf(z) + norm.pdf(z))
        return unit[np.argsort(-expected_improvement, kind="stable")]
