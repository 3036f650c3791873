"""ABRAC and its variants: a pre-trained network, and a head fitted to the current task alone.

=======  =======  =================================================================================
symbol   shape    meaning
=======  =======  =================================================================================
n        scalar   evaluations of a task
p        scalar   inputs of the network
alpha    (d,)     precisions of the head's weights: one for all, or one for each of d features
z        (size,)  parameters of the network
=======  =======  =================================================================================
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.extras import NEURAL
from hpobench_ordered.methods._blr.method import LinearHead
from hpobench_ordered.methods.base import MethodKind, MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._blr.heads import Head
    from hpobench_ordered.methods._networks.features import FeatureMap

HIDDEN = (50, 50)
"""Tanh units of each layer."""
OUTPUTS = 20
"""Linear outputs of the network, which are the features."""
LIKELIHOOD_EVALUATIONS = 200
"""A fit of the network evaluates the joint marginal likelihood at most this many times."""
LENGTH_SCALE_EVALUATIONS = 50
"""A fit of the length scale of random features evaluates it at most this many times."""
KITCHEN_SINKS = 100
"""Number of random features."""
SPREAD = 1.0
"""Standard deviation of log alpha around the mean over all weights, in `abrac-prior`."""


class FixedNetwork(LinearHead):
    """Trains a network on the previous tasks, then fits a head after every evaluation.

    Without previous tasks the network keeps its random initial weights.

    Attributes:
        uses_nested_dropout: Whether the network is trained with it, which orders the features.
        has_separate_precisions: Whether each weight of the head has its own precision, so that
            features can be switched off.
        spread: Standard deviation of the prior on the logarithms of these precisions.
    """

    uses_nested_dropout = False
    has_separate_precisions = False
    spread = math.inf

    def prepare(self) -> None:
        """Make the network, and train it if there are previous tasks.

        The network stays as it is from then on.
        """
        from hpobench_ordered.methods._blr.heads import Precisions

        super().prepare()
        source_inputs, source_losses = self.prepare_sources()
        no_configurations = np.empty((0, self.space.dimension))
        no_inputs = self.make_inputs(no_configurations)  # (0, p)
        input_count = no_inputs.shape[1]
        self.phi = self.make_feature_map(input_count)
        # The network's parameters, (size,): random ones unless there are previous tasks.
        self._z = self.phi.initial(self.rng, input_count)

        # The head has a weight for each feature of the network; all may share one precision.
        precision_count = self.phi.feature_count if self.has_separate_precisions else 1
        # Every fit of the head starts from these.
        self._initial_precisions = Precisions.initial(precision_count, spread=self.spread)
        if source_inputs:
            self._z = self.train_network(self._z, source_inputs, source_losses)

    def make_feature_map(self, input_count: int) -> "FeatureMap":
        """Make the feature map, a network without parameters yet, for a number of inputs.

        `HIDDEN` has the units of each layer, and `OUTPUTS` is the number of features. Inputs are
        padded with zeros, so that search spaces share compiled programs.
        """
        from hpobench_ordered.methods._networks.features import Network, pad_input_count

        return Network(pad_input_count(input_count), HIDDEN, OUTPUTS)

    @property
    def z(self) -> FloatArray:
        """Parameters of the network, its weights in one array, shape (size,)."""
        return self._z

    def train_network(
        self, z: FloatArray, inputs: list[FloatArray], losses: list[FloatArray]
    ) -> FloatArray:
        """Train the network by stochastic gradient descent on the squared error of the losses.

        With nested dropout, a step uses only the first features of the network, a random number for
        each evaluation. As the first features are used most often, they become the most important.

        Args:
            z: Parameters of the network at the start, shape (size,).
            inputs: Inputs of each previous task's evaluations, shape (n, p).
            losses: Their standardised losses, shape (n,).

        Returns:
            The trained parameters, shape (size,).
        """
        from hpobench_ordered.methods._networks.sgd import train

        return train(self.phi, z, inputs, losses, nested=self.uses_nested_dropout, rng=self.rng)

    def fit_head(self, X: FloatArray, y: FloatArray) -> "Head":
        """Fit the head to this task; the network stays as it was trained on the previous tasks.

        The head is a Bayesian linear regression on the network's outputs. The precisions of its
        weights and of the noise are fitted; `spread` is the standard deviation of a prior on the
        logarithms of the weights' precisions, infinite if there is no prior.

        Args:
            X: Inputs of the current task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The fitted head.

        Raises:
            ModelError: The fit fails.
        """
        from hpobench_ordered.methods._blr.heads import Head

        Phi = self.features(X)  # outputs of the network, (n, d)
        return Head.fit(Phi, y, self._initial_precisions, spread=self.spread)


class ABRAC(FixedNetwork):
    """Ordered features, of which a task uses as many as its evaluations support."""

    uses_nested_dropout = True
    has_separate_precisions = True


class ABRACPrior(ABRAC):
    """ABRAC with a common prior on the precisions, so that few evaluations do not overfit them."""

    spread = SPREAD


class ABRACFixed(FixedNetwork):
    """ABRAC with all features at every step."""

    uses_nested_dropout = True


class ABLRAdaptive(FixedNetwork):
    """ABRAC without ordering the features."""

    has_separate_precisions = True


class ABLRLikelihood(FixedNetwork):
    """A network fitted by the marginal likelihood of the previous tasks.

    Every fit of the current task's head starts from the medians of the previous tasks' precisions.

    Attributes:
        evaluations: Largest number of evaluations of the joint marginal likelihood.
    """

    evaluations = LIKELIHOOD_EVALUATIONS

    def train_network(
        self, z: FloatArray, inputs: list[FloatArray], losses: list[FloatArray]
    ) -> FloatArray:
        """Fit the network, and a head for each previous task, to the tasks' marginal likelihood.

        The medians of the precisions of these heads become `_initial_precisions`, from which every
        fit of the current task's head starts.

        Args:
            z: Parameters of the network at the start, shape (size,).
            inputs: Inputs of each previous task's evaluations, shape (n, p).
            losses: Their standardised losses, shape (n,).

        Returns:
            The fitted parameters of the network, shape (size,).
        """
        from hpobench_ordered.methods._blr.joint import Parameters, fit_jointly

        task_count = len(inputs)
        no_embeddings = np.zeros((task_count, 0))  # the network has no learned inputs
        initial = Parameters.initial(z, no_embeddings)
        fitted = fit_jointly(self.phi, inputs, losses, initial, evaluations=self.evaluations)
        self._initial_precisions = fitted.median_precisions(task_count)
        return fitted.z


class ABLRKitchenSinks(ABLRLikelihood):
    """Random features of a Gaussian kernel, whose length scale is fitted to the previous tasks."""

    evaluations = LENGTH_SCALE_EVALUATIONS

    def make_feature_map(self, input_count: int) -> "FeatureMap":
        """Make `KITCHEN_SINKS` random features, without parameters yet, for a number of inputs.

        Inputs are padded with zeros, so that search spaces share compiled programs.
        """
        from hpobench_ordered.methods._networks.features import RandomKitchenSinks, pad_input_count

        return RandomKitchenSinks(pad_input_count(input_count), KITCHEN_SINKS)


PAPER = "Horvath et al. (2021), Hyperparameter transfer learning with adaptive complexity"
NETWORK = "2 layers of 50 tanh units, 20 linear outputs"

SPECS = (
    MethodSpec(
        name="abrac",
        method=ABRAC,
        summary="Ordered features of a pre-trained network; the evidence decides how many.",
        source=f"{PAPER}, section 4: {NETWORK}, nested dropout, automatic relevance determination",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        version=2,
    ),
    MethodSpec(
        name="abrac-prior",
        method=ABRACPrior,
        summary="abrac with a common prior on the precisions of the features.",
        source=f"{PAPER}, section 4, and log alpha ~ N(their mean, {SPREAD:g}), which is ours",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
    ),
    MethodSpec(
        name="abrac-fixed",
        method=ABRACFixed,
        summary="abrac with all features at every step.",
        source=f"{PAPER}, section 5, ABRAC fixed: one precision for all weights",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        version=2,
    ),
    MethodSpec(
        name="ablr-sgd-adapt",
        method=ABLRAdaptive,
        summary="abrac without ordering the features.",
        source=f"{PAPER}, section 5, ABLR SGD adapt: no nested dropout",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        version=2,
    ),
    MethodSpec(
        name="ablr-sgd-fixed",
        method=FixedNetwork,
        summary="Bayesian linear regression on a pre-trained network.",
        source=f"{PAPER}, section 5, ABLR SGD fixed: squared error, no nested dropout",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        version=2,
    ),
    MethodSpec(
        name="ablr-lbfgs-fixed",
        method=ABLRLikelihood,
        summary="Bayesian linear regression on a network pre-trained by marginal likelihood.",
        source=f"{PAPER}, section 5, ABLR L-BFGS fixed",
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        version=3,
    ),
    MethodSpec(
        name="ablr-rks",
        method=ABLRKitchenSinks,
        summary="Bayesian linear regression on random features of a pre-trained kernel.",
        source=(
            f"{PAPER}, section 5, ABLR RKS: random kitchen sinks (Rahimi and Recht 2007), here "
            f"{KITCHEN_SINKS} of a Gaussian kernel"
        ),
        min_history=1,
        extras=(NEURAL,),
        kind=MethodKind.NETWORK,
        version=2,
    ),
)
