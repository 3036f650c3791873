"""Registered methods as parameters of tests; those with networks are marked by their speed."""

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.methods.registry import method_spec

METHODS = hbo.list_methods()

MODULES_WITH_TRAINED_NETWORKS = {
    "hpobench_ordered.methods.ablr",
    "hpobench_ordered.methods.abrac",
    "hpobench_ordered.methods.distbo",
    "hpobench_ordered.methods.fsbo",
}
"""Their methods compile and train a network, which takes long."""

FIRST_OF_TRAINED_NETWORKS = ("ablr", "abrac", "dist-blr", "fsbo")
"""A method of each of these modules; the others are variants of these."""

VARIANTS = (
    "best-first",
    "gp-best-first",
    "gp-drop-unimportant",
    "gp-only-optimize-new",
    "gp-transfer-subsample",
    "simple-ordered-shuffled",
    "simple-previous-no-bo",
    "transfer-bo",
    "transfer-gp",
    "transfer-gp-best-first",
    "transfer-tpe-best-first",
)
"""Other methods that differ from one that is tested in what the suites of tests hardly see, such as
the model that suggests after the first trials."""

MODULES_WITH_SAMPLED_NETWORKS = {"hpobench_ordered.methods.bohamiann"}
"""Their methods sample the weights of networks, which takes longer still."""


def by_speed(
    names: list[str],
    *,
    trained: pytest.MarkDecorator = pytest.mark.long,
    further: dict[str, pytest.MarkDecorator] | None = None,
) -> list[object]:
    """Build the parameters of a test that runs once for each method, and mark the slow ones.

    Args:
        names: The methods.
        trained: Mark of one method of each module whose methods train a network. Variants of
            methods, and those that sample networks, are always long.
        further: Further marks, by method.
    """
    modules_with_networks = MODULES_WITH_TRAINED_NETWORKS | MODULES_WITH_SAMPLED_NETWORKS
    further_marks = further or {}

    parameters = []
    for name in names:
        marks = []
        module = method_spec(name).method.__module__
        if name in FIRST_OF_TRAINED_NETWORKS:
            marks.append(trained)
        elif module in modules_with_networks or name in VARIANTS:
            marks.append(pytest.mark.long)
        if name in further_marks:
            marks.append(further_marks[name])
        parameters.append(pytest.param(name, marks=marks))
    return parameters
