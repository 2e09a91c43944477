"""The differences between the bits of two answers."""
import dataclasses

import numpy as np

from attendant.v1 import tensor_pb2

_NUMPY_TYPES = {tensor_pb2.FLOAT32: "<f4", tensor_pb2.FLOAT16: "<f2", tensor_pb2.BFLOAT16: "<u2",
                tensor_pb2.INT32: "<i4"}


@dataclasses.dataclass(frozen=True)
class Difference:
    tensor: str  # "pooled", or with a layer "intermediate.3"
    what: str


def tensors_of(answer) -> dict:
    """Name -> tensor, for all tensors of a response of any method."""
    found = {}
    for field, value in answer.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.name == "Tensor":
            found[field.name] = value
        elif field.message_type.name == "LayerTensor":
            found.update({f"{field.name}.{entry.layer}": entry.tensor for entry in value})
    return found


def differences(base, current) -> list:
    """The differences between two responses."""
    ours, theirs = tensors_of(current), tensors_of(base)
    found = []
    for name in theirs | ours:
        if name not in ours or name not in theirs:
            found.append(Difference(name, f"only in the answer of the {'base' if name in theirs else 'tree'}"))
        elif what := _difference(theirs[name], ours[name]):
            found.append(Difference(name, what))
    return found


def _difference(base: tensor_pb2.Tensor, current: tensor_pb2.Tensor) -> str:
    """Describes the difference; empty if there is none."""
    if _kind(base) != _kind(current):
        return f"{_kind(current)}, of the base {_kind(base)}"
    if base.data == current.data:
        return ""
    if len(base.data) != len(current.data):
        return f"{len(current.data)} bytes, of the base {len(base.data)}"
    ours, theirs = _elements(current), _elements(base)
    # Compares bits: 0 and -0 differ, and a NaN is equal to itself.
    bits = f"<u{ours.itemsize}"
    differing = ours.view(bits) != theirs.view(bits)
    with np.errstate(invalid="ignore"):  # differences of infinities are invalid
        largest = np.abs(_values(current)[differing] - _values(base)[differing]).max()
    return f"{differing.sum()} of {differing.size} elements differ, by up to {largest:.2g}"


def _kind(tensor: tensor_pb2.Tensor) -> str:
    return f"{tensor_pb2.DataType.Name(tensor.dtype)} {list(tensor.shape)}"


def _elements(tensor: tensor_pb2.Tensor) -> np.ndarray:
    return np.frombuffer(tensor.data, _NUMPY_TYPES[tensor.dtype])


def _values(tensor: tensor_pb2.Tensor) -> np.ndarray:
    elements = _elements(tensor)
    if tensor.dtype == tensor_pb2.BFLOAT16:  # it is the upper half of a float32
        elements = (elements.astype("<u4") << 16).view("<f4")
    return elements.astype(np.float64)
