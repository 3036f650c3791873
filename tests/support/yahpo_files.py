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
    """Search space, encoding and network; the last is empty where the shared data lack it."""
    folder = shared / "data" / "yahpo" / "yahpo_data-1.0.2" / f"rbv2_{scenario}"
    space, encoding = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("config_space", "encoding")
    )
    model = folder / "model.onnx"
    return space, encoding, model.read_bytes() if model.exists() else b""


def define(shared: Path, scenario: str, instance: str = "1220") -> Definition:
    config_space, encoding, _ = files(shared, scenario)
    return definition(scenario, instance, config_space, encoding)


def defined_network(
    shared: Path, scenario: str, instance: str = "1220"
) -> tuple[Definition, OnnxSurrogate]:
    """A benchmark's definition, and its network."""
    defined, (_, encoding, model) = define(shared, scenario, instance), files(shared, scenario)
    options = {"scenario": scenario, "instance": instance, "encoding": encoding}
    return defined, network(model, definition=defined, **options)
