"""YAHPO's published files, of the shared data."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from hpobench_ordered.benchmarks import yahpo
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.surrogates.onnx import OnnxSurrogate


@cache
def read_scenario(shared: Path, scenario: str) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Read the search space, the encoding and the network of a scenario.

    The network is a file of ONNX as bytes; it is empty where the shared data lack it.
    """
    folder = shared / "data" / "yahpo" / "yahpo_data-1.0.2" / f"rbv2_{scenario}"
    config_space = json.loads((folder / "config_space.json").read_text())
    encoding = json.loads((folder / "encoding.json").read_text())
    model_path = folder / "model.onnx"
    model = model_path.read_bytes() if model_path.exists() else b""
    return config_space, encoding, model


def define_benchmark(shared: Path, scenario: str, instance: str = "1220") -> Definition:
    """The package's definition of the benchmark of a scenario on a data set of OpenML."""
    config_space, encoding, _ = read_scenario(shared, scenario)
    return yahpo.define_benchmark(scenario, instance, config_space, encoding)


def load_definition_and_network(
    shared: Path, scenario: str, instance: str = "1220"
) -> tuple[Definition, OnnxSurrogate]:
    """The definition of the benchmark of a scenario on a data set, and YAHPO's network for it."""
    definition = define_benchmark(shared, scenario, instance)
    _, encoding, network_file = read_scenario(shared, scenario)
    surrogate = yahpo.make_network_surrogate(
        network_file,
        definition=definition,
        scenario=scenario,
        instance=instance,
        encoding=encoding,
    )
    return definition, surrogate
