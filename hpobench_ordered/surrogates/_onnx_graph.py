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
VALUE_INFO_NAME = 1
FLOAT_TENSOR = b"\x12\x04\x0a\x02\x08\x01"
"""ValueInfoProto.type of a float tensor of any shape."""

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""Wire types: how a field's content is written."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a message."""

    number: int
    content: memoryview  # without key and length
    raw: memoryview  # the whole field, as it is written


@dataclass(frozen=True, slots=True)
class _Node:
    """One operation of the network, with the names of the tensors that it reads and writes."""

    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    raw: memoryview


def keep_output(model: bytes, *, column: int, width: int) -> bytes:
    """Drop all nodes that one column of a network's output, (n, width), does not need.

    The network is expected to compute its columns one by one, and to join them in a last Concat
    node of `width` inputs: the input of that column becomes the output, (n, 1). Any other network
    is returned as it is.

    Raises:
        ValueError: The bytes are not a network.
    """
    # An ONNX file is a message, and so are its graph and the nodes and outputs of that.
    try:
        model_fields = list(_read_fields(memoryview(model)))
        graph = _find_field(model_fields, MODEL_GRAPH)
        graph_fields = list(_read_fields(graph.content))
        output = _find_field(graph_fields, GRAPH_OUTPUT)
        output_name = next(_read_texts(output.content, VALUE_INFO_NAME))  # it has only one name
        nodes = [_read_node(field) for field in graph_fields if field.number == GRAPH_NODE]
    except (IndexError, StopIteration, UnicodeDecodeError):
        raise ValueError("the network is not an ONNX model") from None

    last_node = next((node for node in nodes if output_name in node.outputs), None)
    if last_node is None or last_node.type != "Concat" or len(last_node.inputs) != width:
        return model

    new_graph = _cut_graph(graph_fields, nodes, output=last_node.inputs[column])
    parts: list[bytes | memoryview] = []  # the fields of the new model
    for field in model_fields:
        if field.number == MODEL_GRAPH:
            parts.append(_write_field(MODEL_GRAPH, new_graph))
        else:
            parts.append(field.raw)
    return b"".join(parts)


def _cut_graph(graph_fields: list[_Field], nodes: list[_Node], *, output: str) -> bytes:
    """Write a graph with the nodes that one tensor depends on, and that tensor as its output.

    Other fields, such as weights, are copied. Descriptions of tensors in between (value_info) are
    left out: they may be of removed nodes.
    """
    parts: list[bytes | memoryview]  # the fields of the new graph
    parts = [node.raw for node in _select_needed_nodes(nodes, output)]

    replaced = {GRAPH_NODE, GRAPH_OUTPUT, GRAPH_VALUE_INFO}
    parts += [field.raw for field in graph_fields if field.number not in replaced]

    # The description of an output: its name, and that its type is a tensor of floats. The first
    # argument of `_write_field` is the number by which the format knows a field.
    value_info = _write_field(VALUE_INFO_NAME, output.encode()) + FLOAT_TENSOR
    parts.append(_write_field(GRAPH_OUTPUT, value_info))
    return b"".join(parts)


def _select_needed_nodes(nodes: list[_Node], output: str) -> list[_Node]:
    """Select the nodes that a tensor depends on.

    In a graph, nodes stand after those whose outputs they read, and they keep this order.
    """
    required_tensors = {output}
    needed = []
    for node in reversed(nodes):
        if required_tensors.intersection(node.outputs):
            required_tensors.update(node.inputs)
            needed.append(node)
    return needed[::-1]


def _find_field(fields: list[_Field], number: int) -> _Field:
    """Find the first field with a number; a `StopIteration` if there is none."""
    return next(field for field in fields if field.number == number)


def _read_node(field: _Field) -> _Node:
    """Read the type of an operation, and the names of the tensors that it reads and writes.

    NODE_TYPE, NODE_INPUT and NODE_OUTPUT are the numbers of these fields in the format.
    """
    return _Node(
        type=next(_read_texts(field.content, NODE_TYPE)),
        inputs=tuple(_read_texts(field.content, NODE_INPUT)),
        outputs=tuple(_read_texts(field.content, NODE_OUTPUT)),
        raw=field.raw,
    )


def _read_texts(message: memoryview, number: int) -> Iterator[str]:
    """Read the values of a text field of a message; a field may be repeated.

    `number` is the number by which the format knows the field.
    """
    for field in _read_fields(message):
        if field.number == number:
            yield str(field.content, "utf-8")


def _read_fields(message: memoryview) -> Iterator[_Field]:
    """Read the fields of a message, in order.

    A field begins with a key: its number, and in the lowest three bits its wire type, which tells
    where its content ends.

    Raises:
        ValueError: The message is not in protobuf's wire format.
    """
    position = 0
    while position < len(message):
        start = position
        key, position = _read_varint(message, position)
        number = key >> 3
        wire_type = key & 7

        length = 0  # bytes of the content; a number is skipped, as none is needed
        if wire_type == VARINT:
            _, position = _read_varint(message, position)
        elif wire_type == BYTES:
            length, position = _read_varint(message, position)
        elif wire_type == FIXED_64:
            position += 8
        elif wire_type == FIXED_32:
            position += 4
        else:
            raise ValueError(f"the network is not an ONNX model: wire type {wire_type}")

        end = position + length
        if end > len(message):
            raise ValueError("the network is not an ONNX model: it ends too early")
        yield _Field(number, message[position:end], message[start:end])
        position = end


def _read_varint(message: memoryview, position: int) -> tuple[int, int]:
    """Read a variable-length integer; return it and the position after it.

    Each byte has seven bits, the lowest ones first, below a bit that tells if more bytes follow.
    """
    value = 0
    shift = 0
    while True:
        byte = message[position]
        position += 1
        lowest_bits = byte & 0x7F
        value |= lowest_bits << shift
        shift += 7
        is_last = byte < 0x80
        if is_last:
            return value, position


def _write_field(number: int, content: bytes) -> bytes:
    """Write a field of protobuf's wire format: its key, its length, its content.

    The key has the field's number and, in the lowest three bits, how the content is written.
    """
    key = number << 3 | BYTES  # BYTES: the content follows its length
    return _write_varint(key) + _write_varint(len(content)) + content


def _write_varint(value: int) -> bytes:
    """Write a variable-length integer: seven bits a byte, the lowest ones first.

    The highest bit of a byte tells that more bytes follow.
    """
    content = bytearray()
    while value >= 0x80:  # more than seven bits are left
        lowest_bits = value & 0x7F
        content.append(lowest_bits | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)
