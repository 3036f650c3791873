"""Cuts an ONNX network down to one of its outputs.

YAHPO's networks predict all targets of a scenario at once and join them in a last Concat node. For
a single target the transformations of the others take longer than the layers of a small batch, and
onnxruntime runs every node of a graph, so they are removed from it. Only the messages that name
nodes and outputs are parsed, in protobuf's wire format; everything else is copied as bytes.

Field numbers (onnx.proto): ModelProto.graph 7; GraphProto.node 1, output 12, value_info 13;
NodeProto.input 1, output 2, op_type 4; ValueInfoProto.name 1, type 2; TypeProto.tensor_type 1;
TypeProto.Tensor.elem_type 1 (FLOAT is 1).
"""

from collections.abc import Iterator
from dataclasses import dataclass

MODEL_GRAPH = 7
GRAPH_NODE, GRAPH_OUTPUT, GRAPH_VALUE_INFO = 1, 12, 13
NODE_INPUT, NODE_OUTPUT, NODE_TYPE = 1, 2, 4
FLOAT_TENSOR = b"\x12\x04\x0a\x02\x08\x01"
"""ValueInfoProto.type of a float tensor of any shape."""

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a message."""

    number: int
    content: memoryview
    raw: memoryview


@dataclass(frozen=True, slots=True)
class _Node:
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    raw: memoryview


def keep_output(model: bytes, *, column: int, width: int) -> bytes:
    """Drop all nodes that one column of a network's output, (n, width), does not need.

    The new output has shape (n, 1). Returns the network itself if its output is not a Concat of
    `width` parts.
    """
    try:
        fields = list(_fields(memoryview(model)))
        graph = list(_fields(next(f.content for f in fields if f.number == MODEL_GRAPH)))
        output = next(f for f in graph if f.number == GRAPH_OUTPUT)
        name = next(_names(output.content, 1))
        nodes = [_node(f) for f in graph if f.number == GRAPH_NODE]
    except (IndexError, StopIteration, UnicodeDecodeError):
        raise ValueError("the network is not an ONNX model") from None
    last = next((node for node in nodes if name in node.outputs), None)
    if last is None or last.type != "Concat" or len(last.inputs) != width:
        return model
    target = last.inputs[column]
    dropped = {GRAPH_NODE, GRAPH_OUTPUT, GRAPH_VALUE_INFO}
    parts = [node.raw for node in _needed(nodes, target)]
    parts += [f.raw for f in graph if f.number not in dropped]
    value_info = _field(1, target.encode()) + FLOAT_TENSOR
    body = b"".join(parts) + _field(GRAPH_OUTPUT, value_info)
    return b"".join(_field(f.number, body) if f.number == MODEL_GRAPH else f.raw for f in fields)


def _needed(nodes: list[_Node], output: str) -> list[_Node]:
    """The nodes that an output depends on, in their (topological) order."""
    required = {output}
    needed = []
    for node in reversed(nodes):
        if required.intersection(node.outputs):
            required.update(node.inputs)
            needed.append(node)
    return needed[::-1]


def _node(field: _Field) -> _Node:
    return _Node(
        type=next(_names(field.content, NODE_TYPE)),
        inputs=tuple(_names(field.content, NODE_INPUT)),
        outputs=tuple(_names(field.content, NODE_OUTPUT)),
        raw=field.raw,
    )


def _names(message: memoryview, number: int) -> Iterator[str]:
    """All values of a string field."""
    return (str(f.content, "utf-8") for f in _fields(message) if f.number == number)


def _fields(message: memoryview) -> Iterator[_Field]:
    """The fields of a message, in order."""
    position = 0
    while position < len(message):
        start = position
        key, position = _varint(message, position)
        kind, length = key & 7, 0
        if kind == VARINT:
            _, position = _varint(message, position)
        elif kind == BYTES:
            length, position = _varint(message, position)
        elif kind in (FIXED_64, FIXED_32):
            position += 8 if kind == FIXED_64 else 4
        else:
            raise ValueError(f"the network is not an ONNX model: wire type {kind}")
        end = position + length
        if end > len(message):
            raise ValueError("the network is not an ONNX model: it ends too early")
        yield _Field(key >> 3, message[position:end], message[start:end])
        position = end


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """Read a variable-length integer; return it and the position after it."""
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _field(number: int, content: bytes) -> bytes:
    """Write a length-delimited field."""
    return _write_varint(number << 3 | BYTES) + _write_varint(len(content)) + content


def _write_varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
