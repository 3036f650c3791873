"""Search spaces in ConfigSpace's JSON format."""

from collections.abc import Mapping, Sequence
from typing import Any

from hpobench_ordered._typing import Config
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space.conditions import Condition, condition_from_json, condition_to_json
from hpobench_ordered.space.parameters import Parameter, check_keys, parameter_from_json


def space_from_json(
    description: Mapping[str, Any],
) -> tuple[list[Parameter], dict[str, Condition], Config]:
    """Read the parts of a search space from ConfigSpace's JSON, of format 0.4 or later.

    Returns:
        The tunable hyperparameters, the conditions by the name of the hyperparameter that they
        activate, and the constants by name.

    Raises:
        InvalidSpaceError: The space uses an unsupported feature, or two conditions are of the same
            hyperparameter.
    """
    if description.get("forbiddens"):
        raise InvalidSpaceError("forbidden clauses are not supported; use conditions")
    constants: Config = {}
    parameters: list[Parameter] = []
    for item in description["hyperparameters"]:
        if item.get("type") == "constant":
            check_keys(item, "name", "value")
            constants[item["name"]] = item["value"]
        else:
            parameters.append(parameter_from_json(item))

    by_name = {parameter.name: parameter for parameter in parameters}
    conditions: dict[str, Condition] = {}
    for item in description.get("conditions", ()):
        child = item["child"]  # name of the hyperparameter that the condition activates
        if child in conditions:
            raise InvalidSpaceError(f"two conditions on {child!r}: join them by AND")
        conditions[child] = condition_from_json(item, by_name, constants)
    return parameters, conditions, constants


def space_to_json(
    parameters: Sequence[Parameter], conditions: Mapping[str, Condition], constants: Config
) -> dict[str, Any]:
    """Describe a search space in ConfigSpace's JSON, in its format 0.4.

    Args:
        parameters: The tunable hyperparameters.
        conditions: The conditions by the name of the hyperparameter that they activate.
        constants: The constants by name.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    tunable_items = [parameter.to_json() for parameter in parameters]
    constant_items = [
        {"type": "constant", "name": name, "value": value, "meta": None}
        for name, value in constants.items()
    ]
    condition_items = [
        condition_to_json(condition, child, by_name) for child, condition in conditions.items()
    ]
    return {
        "name": None,
        "hyperparameters": tunable_items + constant_items,
        "conditions": condition_items,
        "forbiddens": [],
        "format_version": 0.4,
    }
