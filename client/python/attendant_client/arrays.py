"""NumPy arrays and torch tensors, from and to the protocol's tensors."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from . import messages, wire
from .errors import Internal, invalid
from .wire import Array, Chunks, Span

# Types of elements that go on the wire as they are, by their name in NumPy. bfloat16 is that of the package ml_dtypes.
_CODES: Dict[str, int] = {
    "float32": messages.FLOAT32, "float16": messages.FLOAT16, "bfloat16": messages.BFLOAT16, "bool": messages.BOOL,
    "int8": messages.INT8, "uint8": messages.UINT8, "int16": messages.INT16, "uint16": messages.UINT16,
    "int32": messages.INT32, "uint32": messages.UINT32, "int64": messages.INT64, "uint64": messages.UINT64,
}
_NAMES = {code: name for name, code in _CODES.items()}
FLOATS = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class WireArray:
    """An array with the bytes of the wire format: little-endian, with integers instead of types that NumPy lacks."""

    dtype: str
    array: Array

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.array.shape

    def bytes(self) -> Array:
        """Returns the elements as uint8 [n], a view if they lie row by row."""
        return np.ascontiguousarray(self.array).reshape(-1).view(np.uint8)


def _from_torch(tensor: Any) -> WireArray:
    """Returns a torch tensor's elements, without a copy if it is on the CPU."""
    tensor = tensor.detach().cpu()
    dtype = str(tensor.dtype).rsplit(".", 1)[-1]
    if dtype == "bfloat16":
        return WireArray(dtype, tensor.contiguous().view(sys.modules["torch"].int16).numpy())
    return WireArray(dtype, tensor.numpy())


def _is_torch(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def materialized(value: Any) -> Any:
    """Returns a list for a generator, map or other single-use iterable; returns anything else unchanged."""
    once = isinstance(value, Iterable) and not hasattr(value, "__getitem__") and not isinstance(value, Set)
    return list(value) if once else value


def _stacked(images: Any) -> Any:
    """Returns a list of images [3, H, W] of one size as one array; returns anything else unchanged."""
    if not isinstance(images, (list, tuple)) or len({tuple(getattr(image, "shape", ())) for image in images}) != 1:
        return images
    if len(images[0].shape if hasattr(images[0], "shape") else ()) != 3:
        return images
    return sys.modules["torch"].stack(tuple(images)) if all(map(_is_torch, images)) else np.stack(images)


def all_materialized(options: Mapping[str, Any]) -> Dict[str, Any]:
    made = {name: materialized(value) for name, value in options.items()}
    if made.get("features") is not None:
        made["features"] = _stacked(made["features"])
    return made


def _as_wire_array(field: str, value: Any) -> WireArray:
    value = materialized(value)
    if _is_torch(value):
        return _from_torch(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise invalid(field, "an array with rows of equal length", "rows of several lengths") from None
    if array.dtype.name == "bfloat16":
        return WireArray("bfloat16", array.view(np.uint16))
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    return WireArray(array.dtype.name, array)


def to_floats(field: str, value: Any) -> WireArray:
    """Returns an array of float32, float16 or bfloat16; other numbers are converted to float32."""
    made = _as_wire_array(field, value)
    if made.dtype in FLOATS:
        return made
    if made.dtype == "bool" and field == "attention_bias":
        raise invalid(field, "numbers to add to the scores", "booleans; use numpy.where(keep, 0, -numpy.inf)")
    if made.array.dtype.kind not in "fiub":
        raise invalid(field, "an array of numbers", made.dtype)
    return WireArray("float32", made.array.astype("<f4"))


def to_integers(field: str, value: Any) -> WireArray:
    """Returns an array of integers or booleans."""
    made = _as_wire_array(field, value)
    if made.array.size == 0 and made.dtype not in _CODES:  # NumPy takes [] for float64
        return WireArray("int64", made.array.astype("<i8"))
    if made.dtype not in _CODES or made.dtype in FLOATS:
        raise invalid(field, "an array of integers or booleans", made.dtype)
    return made


def tensor_chunks(arrays: Sequence[WireArray], shape: Sequence[int]) -> Chunks:
    """Returns a Tensor message with the data of the arrays, all of one type, one after the other."""
    head = messages.Tensor(dtype=_CODES[arrays[0].dtype], shape=shape).SerializeToString()
    return [head, *wire.submessage(messages.Tensor, "data", [array.bytes() for array in arrays])]


def dtype_code(dtype: Any) -> int:
    """Returns the enum value of a type for `output_dtype`: "float16", numpy.float16, torch.bfloat16."""
    name = str(dtype).rsplit(".", 1)[-1]
    if name not in FLOATS:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            pass
    if name not in FLOATS:
        raise invalid("output_dtype", "float32, float16 or bfloat16", dtype)
    return _CODES[name]


def read_numbers(buffer: bytes, spans: List[Span]) -> Tuple[int, ...]:
    """Returns the numbers of a repeated field, packed or not."""
    numbers: List[int] = []
    for span in spans:
        if span.number is not None:
            numbers.append(span.number)
        at = span.start
        while at < span.stop:
            value, at = wire.read_varint(buffer, at)
            numbers.append(value)
    return tuple(numbers)


def read_tensor(buffer: bytes, span: Span) -> Array:
    """Returns the array of a Tensor message. It owns its elements and can be written to: they are copied once.

    bfloat16, which NumPy lacks, becomes float32 without loss.
    """
    fields = wire.read_fields(messages.Tensor, buffer, span)
    dtype = fields["dtype"][-1].number or 0 if "dtype" in fields else messages.DATA_TYPE_UNSPECIFIED
    shape = read_numbers(buffer, fields.get("shape", []))
    name = _NAMES.get(dtype, "")
    data = fields["data"][-1] if "data" in fields else Span(0, 0)
    stored = np.dtype("uint16" if name == "bfloat16" else name or "uint8").newbyteorder("<")
    count = int(np.prod(shape, dtype=np.int64))
    if not name or count * stored.itemsize != data.stop - data.start:
        raise Internal(f"the response has a tensor of type {dtype} and shape {list(shape)} in {data.stop - data.start} bytes")
    view = np.frombuffer(buffer, stored, count, data.start).reshape(shape) if count else np.empty(shape, stored)
    if name == "bfloat16":
        return (view.astype(np.uint32) << 16).view(np.float32)
    return view.astype(name)
