"""The requests that both builds get, which are the same in every run on every machine."""
import dataclasses
import zlib

import numpy as np

from attendant.v1 import encoder_service_pb2 as pb
from attendant.v1 import tensor_pb2

LENGTHS = (40, 17, 1)
# More tokens than the rows of the largest row tile of the products.
PACKED_LENGTHS = (200, 97, 3)
# The limit for answers that grow with the square of the length or with the width.
SHORT_LENGTHS = (5, 1, 3)
MEMORY_LENGTHS = (9, 23, 4)
_DTYPES = {"float32": tensor_pb2.FLOAT32, "float16": tensor_pb2.FLOAT16, "int64": tensor_pb2.INT64,
           "uint8": tensor_pb2.UINT8}


@dataclasses.dataclass(frozen=True)
class Question:
    stage: str  # its name in a difference
    method: str  # the method of the service
    request: object


def questions(model: pb.GetModelResponse) -> list:
    """The requests about a model, as a server describes it, under its name on that server."""
    inputs = _Inputs(model)
    return [Question(stage, "Attend", request) for stage, request in _attend(model, inputs)] + [
        Question(stage, "Encode", request) for stage, request in _encode(model, inputs)]


class _Inputs:
    """Random values, which depend on the model's shape but not on its compute type."""

    def __init__(self, model: pb.GetModelResponse):
        self._random = np.random.default_rng(zlib.crc32(model.family.encode()))
        self._layer = model.layer
        self.padded = {"hidden_states": self.rows(len(LENGTHS), max(LENGTHS)), "attention_mask": self.mask(LENGTHS)}
        self.packed = {"hidden_states": self.rows(sum(PACKED_LENGTHS)), "lengths": PACKED_LENGTHS}
        self.short = {"hidden_states": self.rows(sum(SHORT_LENGTHS)), "lengths": SHORT_LENGTHS}

    def rows(self, *shape: int, width: int = 0, dtype=np.float32) -> tensor_pb2.Tensor:
        return _tensor(self._random.standard_normal((*shape, width or self._layer.hidden_size)).astype(dtype))

    def mask(self, lengths: tuple) -> tensor_pb2.Tensor:
        """A mask with padding after each sequence, and holes in the first."""
        kept = np.arange(max(lengths)) < np.array(lengths)[:, None]
        kept[0, 1::7] = False
        return _tensor(kept.astype(np.uint8))

    def bias(self) -> tensor_pb2.Tensor:
        """A bias that forbids about every tenth pair."""
        shape = (1, self._layer.heads, max(LENGTHS), max(LENGTHS))
        bias = self._random.standard_normal(shape).astype(np.float32)
        bias[self._random.random(shape) < 0.1] = -np.inf
        return _tensor(bias)

    def head_gates(self) -> list:
        """Gates that leave out the last head."""
        return [*self._random.random(self._layer.heads - 1), 0] if self._layer.heads > 1 else [0.5]

    def memory(self) -> pb.Memory:
        rows = (len(MEMORY_LENGTHS), max(MEMORY_LENGTHS))
        return pb.Memory(hidden_states=self.rows(*rows, width=self._layer.key_input_width),
                         values=self.rows(*rows, width=self._layer.value_input_width),
                         attention_mask=self.mask(MEMORY_LENGTHS))

    def ids(self, below: int, longest: int) -> tensor_pb2.Tensor:
        return _tensor(self._random.integers(0, below, (len(LENGTHS), longest)))


def _attend(model: pb.GetModelResponse, inputs: _Inputs):
    def request(**fields) -> pb.AttendRequest:
        return pb.AttendRequest(model=model.name, **fields)

    stages = [pb.CONTEXT, pb.PROJECTED, pb.BLOCK] if model.layer.has_output_projection else [pb.CONTEXT, pb.BLOCK]
    for layer in sorted({0, model.layers - 1}):
        for stage in stages:
            yield (f"Attend layer {layer} {pb.AttendStage.Name(stage)}",
                   request(**inputs.padded, layer=layer, stage=stage))
    weighed = {"attention_bias": inputs.bias(), "head_gates": inputs.head_gates()}
    asked = {"return_attention_probabilities": True}
    # Separate from the requests above, because additional answers may change the way in which the output is computed.
    for what, fields in {
        "packed": inputs.packed | {"stage": pb.BLOCK},
        "probabilities": inputs.padded | asked,
        "mean of heads": inputs.padded | asked | {"attention_form": pb.HEAD_MEAN},
        "top keys": inputs.padded | asked | {"attention_form": pb.TOP_KEYS, "attention_top_k": 3},
        "weighted values": inputs.short | {"return_weighted_values": True},
        "bias and gates": inputs.padded | weighed,
        "bias, gates and probabilities": inputs.padded | weighed | asked,
        "query rows": inputs.padded | {"query_rows": [39, 0, 56, 80, 3], "stage": pb.BLOCK},
        "memory": inputs.padded | {"memory": inputs.memory(), "stage": pb.BLOCK},
        "float16 to bfloat16": inputs.padded | {
            "hidden_states": inputs.rows(len(LENGTHS), max(LENGTHS), dtype=np.float16), "stage": pb.BLOCK,
            "output_dtype": tensor_pb2.BFLOAT16},
    }.items():
        yield f"Attend {what}", request(**fields)


def _encode(model: pb.GetModelResponse, inputs: _Inputs):
    def request(layers: range | None = None, **fields) -> pb.EncodeRequest:
        span = pb.LayerSpan(first=layers[0], count=len(layers)) if layers else None
        return pb.EncodeRequest(model=model.name, layers=span, **fields)

    few = range(min(2, model.layers))
    last = range(model.layers - 1, model.layers)
    yield "Encode first layers", request(few, **inputs.padded)
    yield ("Encode first layers, all answers",
           request(few, **inputs.padded, intermediate_layers=few, attention_layers=few, return_pooled=True,
                   pooling=pb.MEAN))
    yield "Encode last layer", request(last, **inputs.padded)
    yield "Encode packed", request(last, **inputs.packed)
    yield "Encode bias and gates", request(last, **inputs.padded, attention_bias=inputs.bias(),
                                           head_gates=inputs.head_gates())
    yield "Encode query rows", request(few, **inputs.padded, query_rows=[39, 0, 56, 80, 3])
    yield "Encode to float16", request(last, **inputs.padded, output_dtype=tensor_pb2.FLOAT16)
    for pooling in _poolings(model):
        yield (f"Encode pooled {pb.Pooling.Name(pooling)}",
               request(last, **inputs.padded, omit_hidden_states=True, return_pooled=True, pooling=pooling,
                       normalize_pooled=pooling == pb.MAX))
    if model.HasField("embeddings"):
        yield "Encode token ids", request(**_text(model.embeddings, inputs), return_pooled=True,
                                          intermediate_layers=[0], pooling=_poolings(model)[0])


def _poolings(model: pb.GetModelResponse) -> list:
    missing = [pb.MODEL_POOLING] * (model.pooled_width == 0) + [pb.CLASSIFIER] * (model.classes == 0)
    return [pooling for pooling in pb.Pooling.values() if pooling not in missing]


def _text(embeddings: pb.EmbeddingDescription, inputs: _Inputs) -> dict:
    longest = min(max(LENGTHS), embeddings.longest_sequence or max(LENGTHS))
    fields = {"token_ids": inputs.ids(embeddings.vocabulary, longest),
              "attention_mask": inputs.mask(tuple(min(length, longest) for length in LENGTHS))}
    if embeddings.token_types:
        fields["token_type_ids"] = inputs.ids(embeddings.token_types, longest)
    return fields


def _tensor(array: np.ndarray) -> tensor_pb2.Tensor:
    return tensor_pb2.Tensor(dtype=_DTYPES[array.dtype.name], shape=array.shape, data=array.tobytes())
