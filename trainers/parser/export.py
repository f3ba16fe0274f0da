"""A trained parser as an ONNX file for transforms/parsing/phrasemill/network.py.

The graph is built node by node from operators that are fast in ONNX Runtime on CPUs. Word embeddings are int8 with a
scale for each row. Linear layers multiply uint8 by int8, exactly, on any CPU. Weights have a scale for each output.
Inputs have scales that are fixed here from example sentences, so that a sentence's result does not depend on others in
its batch. Channels with outliers are first divided, and their weights multiplied (SmoothQuant, Xiao et al. 2023),
because a few neurons of BERT are ten times as large as all others.

    inputs   pieces, shapes int64 [B, L]    a batch without padding of pieces; shapes as in encoding.py
             left, right int64 [B, N + 1]   fenceposts; right = 0 is padding
             threshold float [labels]       logits
    outputs  spans int64 [M, 4]             sentence, label, start, end of each span with a score over the threshold
             scores float [M]               their logits
             tags int64 [B, N]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from transforms.parsing.phrasemill.encoding import Batch
from transforms.parsing.phrasemill.model_file import FORMAT

Weights: TypeAlias = Mapping[str, NDArray[np.float32]]

OPSETS = {"": 17, "com.microsoft": 1}
IR_VERSION = 8
NEVER = -1e30
"""The logit of fenceposts that are not a span."""

LONGEST = np.iinfo(np.int64).max

SAMPLED = 8
"""One in this number of rows of a layer's inputs is kept to choose its scale."""

QUANTILES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Quantiles of the channels' maxima; larger maxima may be divided down to one of them."""

WORTH = 0.5
"""Channels are divided if the error is less than this share of the error without dividing."""


class InputScale(NamedTuple):
    """real = (quantised - zero_point) * scale * divisors, for quantised values [..., K] of 0..255."""

    scale: float
    zero_point: int
    divisors: NDArray[np.float32] | None = None  # [K]


def export(
    weights: Weights,
    *,
    heads: int,
    labels: Sequence[str],
    tags: Sequence[str],
    threshold: Sequence[float],
    calibration: Iterable[Batch],
    metadata: Mapping[str, str],
) -> bytes:
    """The content of the file: the same bytes for the same arguments.

    `weights`: the state of a `ParserNetwork` as arrays; `heads`: the number of attention heads; `threshold`: logits,
    one for each label; `calibration`: batches without padding of pieces; `metadata`: further entries for the file.
    """
    scales = calibrate(weights, calibration, heads=heads)
    model = build(weights, heads=heads, scales=scales)
    helper.set_model_props(
        model,
        {
            **metadata,
            "format": FORMAT,
            "labels": json.dumps(list(labels)),
            "tags": json.dumps(list(tags)),
            "threshold": json.dumps(list(threshold)),
        },
    )
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)


def calibrate(weights: Weights, batches: Iterable[Batch], *, heads: int) -> dict[str, InputScale]:
    """A scale for the inputs of each linear layer, wide enough for all their values in these batches."""
    graph = _network(weights, heads=heads, scales=None)
    session = onnxruntime.InferenceSession(graph.model().SerializeToString(), providers=["CPUExecutionProvider"])
    threshold = np.full(graph.labels, -NEVER, np.float32)
    names = list(graph.layers)
    lowest = {name: np.zeros(1, np.float32) for name in names}
    highest = {name: np.zeros(1, np.float32) for name in names}
    rows: dict[str, list[NDArray[np.float32]]] = {name: [] for name in names}
    for batch in batches:
        values = session.run(names, {**batch._asdict(), "threshold": threshold})
        for name, value in zip(names, values, strict=True):
            value = value.reshape(-1, value.shape[-1])
            lowest[name] = np.minimum(lowest[name], value.min(0, initial=0))
            highest[name] = np.maximum(highest[name], value.max(0, initial=0))
            rows[name].append(value[::SAMPLED])
    return {
        name: input_scale(np.concatenate(rows[name]), lowest[name], highest[name], graph.layers[name]) for name in names
    }


def input_scale(
    rows: NDArray[np.float32],
    lowest: NDArray[np.float32],
    highest: NDArray[np.float32],
    layers: Sequence[NDArray[np.float32]],
) -> InputScale:
    """The scale with the smallest error in the layers' outputs for sample rows [M, K].

    `lowest`, `highest` [K]: the limits of each channel; `layers`: weights [N, K], or [N, 2K] for two rows together.
    """
    width = rows.shape[1]
    weight = np.concatenate([half for layer in layers for half in np.split(layer, layer.shape[1] // width, axis=1)])
    outputs = rows @ weight.T

    def error(choice: InputScale) -> float:
        divisors = np.float32(1) if choice.divisors is None else choice.divisors
        integers = np.round(rows / (divisors * np.float32(choice.scale))) + choice.zero_point
        inputs = (np.clip(integers, 0, 255) - choice.zero_point) * np.float32(choice.scale)
        columns, scales = quantised_weights(weight * divisors)
        return float(np.square(inputs @ (columns * scales[:, None]).T - outputs).mean())

    maxima = np.maximum(np.maximum(-lowest, highest), 1e-6)
    plain = _covering(lowest, highest, None)
    divided = [_covering(lowest, highest, np.maximum(maxima / np.quantile(maxima, q), 1)) for q in QUANTILES]
    best = min(divided, key=error)
    return best if error(best) < WORTH * error(plain) else plain


def _covering(
    lowest: NDArray[np.float32], highest: NDArray[np.float32], divisors: NDArray[np.float32] | None
) -> InputScale:
    if divisors is not None:
        divisors = divisors.astype(np.float32)
        lowest, highest = lowest / divisors, highest / divisors
    low, high = float(lowest.min(initial=0)), float(highest.max(initial=0))
    scale = max(high - low, 1e-6) / 255
    return InputScale(scale, round(-low / scale), divisors)


def build(weights: Weights, *, heads: int, scales: Mapping[str, InputScale] | None) -> onnx.ModelProto:
    """The graph. Without scales it is in floating point, and the inputs of linear layers are outputs as well."""
    return _network(weights, heads=heads, scales=scales).model()


def _network(weights: Weights, *, heads: int, scales: Mapping[str, InputScale] | None) -> _Graph:
    graph = _Graph(scales, labels=len(weights["length_bias"]))
    states = _encoder(graph, weights, heads)
    fences, words = _fences_and_words(graph, states)
    _spans(graph, weights, fences)
    _tags(graph, weights, words)
    return graph


class _Inputs(NamedTuple):
    """The inputs of linear layers: floats, or uint8."""

    layers: str  # the name of the layers in the scales
    values: str
    scale: str = ""
    zero_point: str = ""


class _Graph:
    """The nodes and constants of a graph, in the order of their addition."""

    def __init__(self, scales: Mapping[str, InputScale] | None, *, labels: int) -> None:
        self.scales = scales
        self.labels = labels
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.layers: dict[str, list[NDArray[np.float32]]] = {}  # weights by the name of their inputs

    def constant(self, values: Any, dtype: Any = None) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(np.asarray(values, dtype)), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def add(self, operator: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node; returns the name of its output, or the names of several."""
        names = [f"{operator}_{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=names[0], domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, name: str, values: str) -> None:
        self.nodes.append(helper.make_node("Identity", [values], [name], name=name))

    def inputs(self, layers: str, values: str) -> _Inputs:
        """The inputs of one or several linear layers, quantised with the scale of that name."""
        if self.scales is None:
            self.output(layers, values)
            return _Inputs(layers, values)
        scale, zero_point, divisors = self.scales[layers]
        if divisors is not None:
            values = self.add("Mul", values, self.constant(1 / divisors))
        names = self.constant(scale, np.float32), self.constant(zero_point, np.uint8)
        return _Inputs(layers, self.add("QuantizeLinear", values, *names), *names)

    def linear(self, inputs: _Inputs, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """`inputs` [..., K] by `weight` [N, K]: [..., N] floats."""
        self.layers.setdefault(inputs.layers, []).append(weight)
        if self.scales is None:
            return self.add("Add", self.add("MatMul", inputs.values, self.constant(weight.T)), self.constant(bias))
        divisors = self.scales[inputs.layers].divisors
        if divisors is not None:
            weight = weight * np.tile(divisors, weight.shape[1] // len(divisors))
        integers, scales = quantised_weights(weight)
        return self.add(
            "MatMulIntegerToFloat",
            inputs.values,
            self.constant(integers.T),
            inputs.scale,
            self.constant(scales),
            inputs.zero_point,
            "",
            self.constant(bias),
            domain="com.microsoft",
        )

    def gelu(self, values: str) -> str:
        return self.add("Gelu", values, domain="com.microsoft")

    def normalised(self, values: str, weights: Weights, name: str) -> str:
        weight, bias = (self.constant(weights[f"{name}.{kind}"]) for kind in ("weight", "bias"))
        return self.add("LayerNormalization", values, weight, bias, axis=-1, epsilon=1e-12)

    def size(self, name: str, axis: int) -> str:
        """The size of an axis of an input, as int64 [1]."""
        return self.add("Slice", self.add("Shape", name), self.integers(axis), self.integers(axis + 1))

    def numbers(self, size: str) -> str:
        """0, 1, ... size - 1."""
        return self.add("Range", self.constant(0, np.int64), self.add("Squeeze", size), self.constant(1, np.int64))

    def model(self) -> onnx.ModelProto:
        integers, floats = TensorProto.INT64, TensorProto.FLOAT
        inputs = [
            helper.make_tensor_value_info("pieces", integers, ["B", "L"]),
            helper.make_tensor_value_info("shapes", integers, ["B", "L"]),
            helper.make_tensor_value_info("left", integers, ["B", "N + 1"]),
            helper.make_tensor_value_info("right", integers, ["B", "N + 1"]),
            helper.make_tensor_value_info("threshold", floats, [self.labels]),
        ]
        outputs = [
            helper.make_tensor_value_info("spans", integers, ["M", 4]),
            helper.make_tensor_value_info("scores", floats, ["M"]),
            helper.make_tensor_value_info("tags", integers, ["B", "N"]),
            *(
                helper.make_tensor_value_info(name, floats, None)
                for name in (self.layers if self.scales is None else ())
            ),
        ]
        return helper.make_model(
            helper.make_graph(self.nodes, "phrasemill", inputs, outputs, self.constants),
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS.items()],
            ir_version=IR_VERSION,
            producer_name="phrasemill",
        )


def quantised_weights(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix [N, K] as integers, with a scale [N] for each row, so that products do not overflow on any CPU.

    CPUs without VNNI add two neighbouring products in 16 bits and clip the sum. So 255 times the sum of two neighbours
    of one sign must be below 2 ** 15, and the sum below 129.
    """
    padded = np.pad(weight, ((0, 0), (0, weight.shape[1] % 2)))
    pairs = padded.reshape(len(weight), -1, 2)
    sums = np.maximum(np.maximum(pairs, 0).sum(2), np.maximum(-pairs, 0).sum(2))
    scales = np.maximum(sums.max(1), 1e-12).astype(np.float32) / np.float32(127)  # rounding may add 1
    return np.round(weight / scales[:, None]).astype(np.int8), scales


def quantised_rows(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix [N, K] as integers in -127..127, with a scale [N] for each row."""
    scales = np.maximum(np.abs(matrix).max(1), 1e-12).astype(np.float32) / np.float32(127)
    return np.round(matrix / scales[:, None]).astype(np.int8), scales


def _encoder(graph: _Graph, weights: Weights, heads: int) -> str:
    """BERT's layers (Devlin et al. 2019): [B, L, H]."""
    prefix = "encoder.embeddings"
    integers, scales = quantised_rows(weights[f"{prefix}.word_embeddings.weight"])
    rows = graph.add("Cast", graph.add("Gather", graph.constant(integers), "pieces"), to=TensorProto.FLOAT)
    words = graph.add("Mul", rows, graph.add("Gather", graph.constant(scales[:, None]), "pieces"))
    positions = graph.add(
        "Slice",
        graph.constant(weights[f"{prefix}.position_embeddings.weight"]),
        graph.integers(0),
        graph.size("pieces", 1),
    )
    shapes = graph.add("Gather", graph.constant(weights[f"{prefix}.token_type_embeddings.weight"]), "shapes")
    states = graph.add("Add", words, graph.add("Add", shapes, positions))
    states = graph.normalised(states, weights, f"{prefix}.LayerNorm")

    layers = sum(name.endswith("attention.self.query.weight") for name in weights)
    for layer in range(layers):
        prefix = f"encoder.encoder.layer.{layer}"
        attended = _attention(graph, weights, prefix, graph.inputs(f"{layer}.attention", states), heads)
        output = _linear(
            graph, weights, f"{prefix}.attention.output.dense", graph.inputs(f"{layer}.attended", attended)
        )
        states = graph.normalised(graph.add("Add", output, states), weights, f"{prefix}.attention.output.LayerNorm")
        hidden = _linear(graph, weights, f"{prefix}.intermediate.dense", graph.inputs(f"{layer}.forward", states))
        hidden = graph.gelu(hidden)
        output = _linear(graph, weights, f"{prefix}.output.dense", graph.inputs(f"{layer}.hidden", hidden))
        states = graph.normalised(graph.add("Add", output, states), weights, f"{prefix}.output.LayerNorm")
    return states


def _attention(graph: _Graph, weights: Weights, prefix: str, states: _Inputs, heads: int) -> str:
    """Every piece attends to all pieces, because there is no padding."""
    width = weights[f"{prefix}.attention.self.query.weight"].shape[0]
    by_head = graph.integers(0, 0, heads, width // heads)
    scaled = np.float32((width // heads) ** -0.5)

    def heads_of(name: str, order: list[int], factor: np.float32) -> str:
        weight, bias = (weights[f"{prefix}.attention.self.{name}.{kind}"] * factor for kind in ("weight", "bias"))
        return graph.add("Transpose", graph.add("Reshape", graph.linear(states, weight, bias), by_head), perm=order)

    query = heads_of("query", [0, 2, 1, 3], scaled)
    key = heads_of("key", [0, 2, 3, 1], np.float32(1))
    value = heads_of("value", [0, 2, 1, 3], np.float32(1))
    shares = graph.add("Softmax", graph.add("MatMul", query, key), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
    return graph.add("Reshape", mixed, graph.integers(0, 0, width))


def _linear(graph: _Graph, weights: Weights, name: str, inputs: _Inputs) -> str:
    return graph.linear(inputs, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _fences_and_words(graph: _Graph, states: str) -> tuple[_Inputs, _Inputs]:
    """[B, N + 1, 2H]: the pieces before and after each fencepost; [B, N, 2H]: the first and last of each word."""
    inputs = graph.inputs("heads", states)
    width = graph.add("Slice", graph.add("Shape", inputs.values), graph.integers(2), graph.integers(3))
    flat = graph.add("Reshape", inputs.values, graph.add("Concat", graph.integers(-1), width, axis=0))
    sentences = graph.add("Mul", graph.numbers(graph.size("pieces", 0)), graph.size("pieces", 1))
    sentences = graph.add("Unsqueeze", sentences, graph.integers(1))
    before, after = (graph.add("Gather", flat, graph.add("Add", name, sentences)) for name in ("left", "right"))
    first = graph.add("Slice", after, graph.integers(0), graph.integers(-1), graph.integers(1))
    last = graph.add("Slice", before, graph.integers(1), graph.integers(LONGEST), graph.integers(1))
    fences = graph.add("Concat", before, after, axis=2)
    words = graph.add("Concat", first, last, axis=2)
    return inputs._replace(values=fences), inputs._replace(values=words)


def _spans(graph: _Graph, weights: Weights, fences: _Inputs) -> None:
    """score = query_i . key_j + start term of i + end term of j + bias of the length j - i, for i < j.

    The two terms are a part of the product: the query has two more dimensions, (its term, 1), and the key (1, its
    term).
    """
    labels, hidden = len(weights["length_bias"]), len(weights["start.bias"])
    size = len(weights["query.weight"]) // labels

    def extended(name: str, factor: float, terms: str, place: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        weight = np.zeros((labels, size + 2, hidden), np.float32)
        bias = np.zeros((labels, size + 2), np.float32)
        weight[:, :size] = weights[f"{name}.weight"].reshape(labels, size, hidden) * factor
        weight[:, size + place] = weights[f"{terms}.weight"]
        bias[:, size + place] = weights.get(f"{terms}.bias", 0)
        bias[:, size + 1 - place] = 1
        return weight.reshape(-1, hidden), bias.reshape(-1)

    def side(name: str, layer: tuple[NDArray[np.float32], NDArray[np.float32]], order: list[int]) -> str:
        values = graph.inputs(name, graph.gelu(_linear(graph, weights, name, fences)))
        by_label = graph.add("Reshape", graph.linear(values, *layer), graph.integers(0, 0, labels, size + 2))
        return graph.add("Transpose", by_label, perm=order)

    query = side("start", extended("query", size**-0.5, "start_bias", 0), [0, 2, 1, 3])
    key = side("end", extended("key", 1, "end_bias", 1), [0, 2, 3, 1])

    lengths = weights["length_bias"].copy()
    lengths[:, 0] = NEVER
    post = graph.numbers(graph.size("left", 1))
    length = graph.add(
        "Sub", graph.add("Unsqueeze", post, graph.integers(0)), graph.add("Unsqueeze", post, graph.integers(1))
    )
    length = graph.add("Clip", length, graph.constant(0, np.int64), graph.constant(lengths.shape[1] - 1, np.int64))
    length_bias = graph.add("Gather", graph.constant(lengths), length, axis=1)
    scores = graph.add("Add", graph.add("MatMul", query, key), length_bias)

    real = graph.add("Unsqueeze", graph.add("Greater", "right", graph.constant(0, np.int64)), graph.integers(1, 2))
    threshold = graph.add("Reshape", "threshold", graph.integers(1, -1, 1, 1))
    likely = graph.add("And", graph.add("Greater", scores, threshold), real)
    spans = graph.add("Transpose", graph.add("NonZero", likely), perm=[1, 0])
    graph.output("spans", spans)
    graph.output("scores", graph.add("GatherND", scores, spans))


def _tags(graph: _Graph, weights: Weights, words: _Inputs) -> None:
    hidden = graph.inputs("tag_hidden", graph.gelu(_linear(graph, weights, "tag_hidden", words)))
    graph.output("tags", graph.add("ArgMax", _linear(graph, weights, "tag_output", hidden), axis=2, keepdims=0))
