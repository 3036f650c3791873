"""YAHPO's published files, of the shared data."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from hpobench_ordered.benchmarks.yahpo import definition, network
from hpobench_ordered.core.benchmark import Definition
from hpobench_ordered.surrogates.onnx import OnnxSurrogate


@cache
def files(shared: Path, scenario: str) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Search space, encoding and bytes of the network of a scenario of YAHPO.

    The network is empty where the shared data lack it.
    """
    folder = shared / "data" / "yahpo" / "yahpo_data-1.0.2" / f"rbv2_{scenario}"
    config_space = json.loads((folder / "config_space.json").read_text())
    encoding = json.loads((folder / "encoding.json").read_text())
    model_path = folder / "model.onnx"
    model = model_path.read_bytes() if model_path.exists() else b""
    return config_space, encoding, model


def define(shared: Path, scenario: str, instance: str = "1220") -> Definition:
    """The package's definition of a benchmark: of a scenario on an instance, a data set."""
    config_space, encoding, _ = files(shared, scenario)
    return definition(scenario, instance, config_space, encoding)


def defined_network(
    shared: Path, scenario: str, instance: str = "1220"
) -> tuple[Definition, OnnxSurrogate]:
    """A benchmark's definition, and its network as a surrogate."""
    definition_of_instance = define(shared, scenario, instance)
    _, encoding, model = files(shared, scenario)
    surrogate = network(
        model,
        definition=definition_of_instance,
        scenario=scenario,
        instance=instance,
        encoding=encoding,
    )
    return definition_of_instance, surrogate
