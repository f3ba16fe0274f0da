"""A trained head as an ONNX file for transforms/parsing/phrasemill/head.py, and the states that it learns from.

inputs   pieces, shapes, left, right    those of the parser (trainers/parser/export.py)
output   labels int64 [B, N]            the number of each word's label
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from trainers.parser.export import IR_VERSION, LONGEST, OPSETS, InputScale, _Graph, _Inputs, input_scale
from transforms.parsing.phrasemill.encoding import Encoder
from transforms.parsing.phrasemill.head import with_head
from transforms.parsing.phrasemill.model_file import ENTITY_HEAD
from transforms.parsing.phrasemill.network import MAX_BATCH_PIECES, session_options

if TYPE_CHECKING:
    from trainers.entities.training import HeadNetwork

INPUTS = ("pieces", "shapes", "left", "right")
CALIBRATION_ROWS = 60_000


class States(NamedTuple):
    """What the parser's network knows of each word of the sentences, one after the other."""

    values: NDArray[np.uint8]  # [words, 2H]: of the word's first and last piece
    scale: float  # real = (value - zero_point) * scale
    zero_point: int
    inputs: _Inputs  # the names in the parser's graph


def states_of(parser: bytes, sentences: Sequence[Sequence[str]]) -> States:
    """The inputs of the parser's tag head."""
    model = onnx.load_from_string(parser)
    made = {name: node for node in model.graph.node for name in node.output}
    name = "tags"
    layers: list[onnx.NodeProto] = []
    while len(layers) < 2:  # from the last linear layer of the head to the first
        node = made[name]
        name = node.input[0]
        layers += [node] if node.op_type == "MatMulIntegerToFloat" else []
    values, _, scale, _, zero_point, *_ = layers[1].input
    numbers = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    inputs = _Inputs("states", values, scale, zero_point)
    node = helper.make_node("Identity", [values], ["states"])
    session = onnxruntime.InferenceSession(
        with_head(parser, _model([node], [], {"states": TensorProto.UINT8}, {})), session_options()
    )
    encoded = Encoder().encode(sentences)
    firsts = np.cumsum(encoded.words) - encoded.words
    found: NDArray[np.uint8] | None = None
    for chosen, batch in encoded.equal_batches(MAX_BATCH_PIECES):
        (rows,) = session.run(None, {name: getattr(batch, name) for name in INPUTS})
        if found is None:
            found = np.empty((int(encoded.words.sum()), rows.shape[2]), np.uint8)
        for number, row in zip(chosen.tolist(), rows, strict=True):
            found[firsts[number] : firsts[number] + encoded.words[number]] = row[: encoded.words[number]]
    assert found is not None
    return States(found, numbers[scale].item(), numbers[zero_point].item(), inputs)


def export(head: HeadNetwork, states: States, labels: Sequence[str], metadata: Mapping[str, str]) -> bytes:
    """The content of the file: the same bytes for the same arguments."""
    weights = {name: value.detach().numpy() for name, value in head.state_dict().items()}
    with torch.inference_mode():
        sample = torch.from_numpy(states.values[:CALIBRATION_ROWS])
        before, after = (each.numpy() for each in head.states(sample, torch.ones(len(sample), 1)))
    scales = {"states": InputScale(states.scale, states.zero_point)}
    for name, rows in (("context", before), ("output", after)):
        limits = np.minimum(rows.min(0), 0), np.maximum(rows.max(0), 0)
        scales[name] = input_scale(rows[::8], *limits, [weights[f"{name}.weight"]])

    graph = _Graph(scales, labels=0)
    # The network reads (value - mean) / deviation, the file (value - zero point) * scale.
    by_deviation = weights["hidden.weight"] / weights["deviation"]
    bias = weights["hidden.bias"] - by_deviation @ (weights["mean"] - states.zero_point)
    own = graph.gelu(graph.linear(states.inputs, by_deviation / np.float32(states.scale), bias))
    ends = graph.add("Slice", "right", graph.integers(1), graph.integers(LONGEST), graph.integers(1))
    real = graph.add("Cast", graph.add("Greater", ends, graph.constant(0, np.int64)), to=TensorProto.FLOAT)
    own = graph.add("Mul", own, graph.add("Unsqueeze", real, graph.integers(2)))  # words that are padding are 0
    inputs = graph.inputs("context", own)
    padded = graph.add("Pad", inputs.values, graph.integers(0, 1, 0, 0, 1, 0), inputs.zero_point)
    three = [
        graph.add("Slice", padded, graph.integers(first), graph.integers(last), graph.integers(1))
        for first, last in ((0, -2), (1, -1), (2, LONGEST))
    ]
    around = inputs._replace(values=graph.add("Concat", *three, axis=2))
    context = graph.gelu(graph.linear(around, weights["context.weight"], weights["context.bias"]))
    inputs = graph.inputs("output", graph.add("Add", own, context))
    scores = graph.linear(inputs, weights["output.weight"], weights["output.bias"])
    last = helper.make_node("Identity", [scores], ["scores"])

    mine = {name for node in graph.nodes for name in node.output} | {each.name for each in graph.constants}
    for each in (*graph.nodes, last):
        each.name = f"entities.{each.name}"
        each.input[:] = [f"entities.{name}" if name in mine else name for name in each.input]
        each.output[:] = [f"entities.{name}" if name in mine else name for name in each.output]
    for constant in graph.constants:
        constant.name = f"entities.{constant.name}"
    entries = {**metadata, "format": ENTITY_HEAD.version, "labels": json.dumps(list(labels))}
    return _model([*graph.nodes, last], graph.constants, {"scores": TensorProto.FLOAT}, entries)


def _model(
    nodes: Sequence[onnx.NodeProto],
    constants: Sequence[onnx.TensorProto],
    outputs: Mapping[str, int],
    metadata: Mapping[str, str],
) -> bytes:
    places = {"pieces": "L", "shapes": "L", "left": "N + 1", "right": "N + 1"}
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "phrasemill",
            [helper.make_tensor_value_info(name, TensorProto.INT64, ["B", places[name]]) for name in INPUTS],
            [helper.make_tensor_value_info(name, type_, None) for name, type_ in outputs.items()],
            constants,
        ),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
        ir_version=IR_VERSION,
        producer_name="phrasemill",
    )
    helper.set_model_props(model, dict(metadata))
    return model.SerializeToString(deterministic=True)
