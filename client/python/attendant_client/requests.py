"""Requests, from arguments to serialized bytes."""
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Tuple, TypeVar

import numpy as np

from . import answers, arrays, messages, wire
from .answers import Attended, Encoded
from .errors import invalid, refused
from .options import AttendOptions, EncodeOptions, Memory, TokenizeOptions, check_names, choose, integers, span_of
from .sequences import Rows, gather, gather_like, is_list
from .texts import check_text, text_chunks
from .wire import Chunks

if TYPE_CHECKING:
    from typing_extensions import Unpack

A = TypeVar("A")


@dataclass(frozen=True)
class Request(Generic[A]):
    """A request for `send` or a stream, any number of times. It refers to the arrays that it was made of.

    path: the method. chunks: the message in pieces. read: parses the response.
    """

    path: str
    chunks: Tuple[Any, ...]
    read: Callable[[bytes], A]

    def message(self) -> bytes:
        """Returns the message; this copies the arrays into it, unless the request is prepared."""
        return wire.join(self.chunks)

    def prepare(self) -> Request[A]:
        """Returns the request with a copy of its arrays, to send it several times or to change the arrays."""
        return Request(self.path, (self.message(),), self.read)


def _common_fields(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the common fields without tensors."""
    fields: Dict[str, Any] = {}
    for name in ("request_id", "attention_top_k"):
        if options.get(name):
            fields[name] = options[name]
    if "output_dtype" in options and options["output_dtype"] is not None:
        fields["output_dtype"] = arrays.dtype_code(options["output_dtype"])
    for name, enum in (("attention_form", "AttentionForm"), ("layout", "Layout")):
        if options.get(name):
            fields[name] = choose(name, enum, options[name])
    if options.get("head_gates") is not None:
        gates = arrays.to_floats("head_gates", options["head_gates"]).array
        fields["head_gates"] = gates.astype(np.float64).reshape(-1).tolist()
    if options.get("query_rows") is not None:
        fields["query_rows"] = integers("query_rows", options["query_rows"])
        if not fields["query_rows"]:
            raise invalid("query_rows", "at least one row", "none")
    return fields


def _layout_chunks(message: Any, rows: Rows, mask: Any, lengths: Any) -> Tuple[Dict[str, Any], Chunks]:
    """Returns the field `lengths`, or the mask, of a request or memory."""
    if rows.lengths is not None:
        if lengths is not None:
            raise refused("lengths", "cannot be combined with a list of sequences")
        return {"lengths": rows.lengths}, []
    fields = {} if lengths is None else {"lengths": integers("lengths", lengths)}
    if mask is None:
        return fields, []
    made = arrays.to_integers("attention_mask", mask)
    return fields, wire.submessage(message, "attention_mask", arrays.tensor_chunks([made], made.shape))


def _float_chunks(message: Any, name: str, options: Mapping[str, Any]) -> Chunks:
    """Returns the tensor of this name, if it is given."""
    if options.get(name) is None:
        return []
    made = arrays.to_floats(name, options[name])
    return wire.submessage(message, name, arrays.tensor_chunks([made], made.shape))


def _encode_input(options: Mapping[str, Any]) -> Tuple[Rows, Chunks]:
    """Returns the rows of the input, and the chunks of the input and its token types and positions."""
    message = messages.EncodeRequest
    given = [name for name in ("hidden_states", "input_ids", "features", "texts") if options.get(name) is not None]
    if len(given) != 1:
        raise invalid("hidden_states", "exactly one of hidden_states, input_ids, features and texts", " and ".join(given) or "none")
    name = given[0]
    if name != "texts" and options.get("text_pairs") is not None:
        raise refused("text_pairs", "requires texts")
    if name == "texts":
        rows = Rows([], ())  # which only the server knows
        chunks = text_chunks(message, options["texts"], options.get("text_pairs"))
    else:
        mask = options.get("attention_mask") if is_list(options[name]) else None
        rows = gather(name, options[name], mask)
        chunks = wire.submessage(message, "token_ids" if name == "input_ids" else name, rows.chunks())
    for extra in ("token_type_ids", "position_ids"):
        if options.get(extra) is not None:
            chunks += wire.submessage(message, extra, gather_like(extra, options[extra], rows).chunks())
    return rows, chunks


def _encode_fields(options: Mapping[str, Any]) -> Dict[str, Any]:
    fields = _common_fields(options)
    if options.get("layers") is not None:
        first, count = span_of(options["layers"])
        fields["layers"] = messages.LayerSpan(first=first, count=count)
    for name in ("intermediate_layers", "attention_layers"):
        if options.get(name) is not None:
            fields[name] = integers(name, options[name])
    if options.get("pooling"):
        fields["return_pooled"] = True
        fields["pooling"] = choose("pooling", "Pooling", str(options["pooling"]), suffix="_pooling")
    fields.update(_text_fields(options))
    if options.get("prompt_tokens") is not None:
        fields["prompt_tokens"] = integers("prompt_tokens", np.atleast_1d(options["prompt_tokens"]))
    if options.get("task"):
        fields["task"] = options["task"]
    for name in ("return_token_vectors", "normalize_token_vectors", "return_sparse", "return_tokens"):
        fields[name] = bool(options.get(name, False))
    fields["normalize_pooled"] = bool(options.get("normalize", False))
    fields["omit_hidden_states"] = not options.get("return_hidden_states", True)
    return fields


def _text_fields(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the fields without texts that requests with texts share."""
    fields: Dict[str, Any] = {}
    for name in ("prompt", "prompt_name"):
        if options.get(name) is not None:
            check_text(name, options[name])
            fields[name] = options[name]
    if options.get("truncation"):
        fields["truncation"] = choose("truncation", "Truncation", str(options["truncation"]), prefix="truncate_")
    return fields


def encode_request(model: str = "", **options: Unpack[EncodeOptions]) -> Request[Encoded]:
    """Returns a request for whole encoder layers, for `send` and `encode_stream`. See EncodeOptions for the arguments.

    model: name of a loaded model; empty: the only one, if the server has one.
    """
    check_names(options, EncodeOptions)
    given = arrays.all_materialized(options)
    rows, chunks = _encode_input(given)
    mask = None if rows.lengths is not None else given.get("attention_mask")
    layout, mask_chunks = _layout_chunks(messages.EncodeRequest, rows, mask, given.get("lengths"))
    head = messages.EncodeRequest(model=model, **_encode_fields(given), **layout).SerializeToString()
    read = partial(answers.read_encoded, lengths=rows.lengths, all_rows=given.get("query_rows") is None)
    return Request(messages.method_path("Encode"),
                   (head, *chunks, *mask_chunks, *_float_chunks(messages.EncodeRequest, "attention_bias", given),
                    *_float_chunks(messages.EncodeRequest, "query_vectors", given)), read)


def memory_chunks(message: Any, memory: Any) -> Chunks:
    """Returns the field `memory` of a message."""
    given = memory if isinstance(memory, Memory) else Memory(memory)
    states = arrays.materialized(given.hidden_states)
    rows = gather("hidden_states", states, given.attention_mask if is_list(states) else None)
    layout, chunks = _layout_chunks(
        messages.Memory, rows, None if rows.lengths is not None else given.attention_mask, given.lengths)
    chunks = [messages.Memory(**layout).SerializeToString(), *chunks,
              *wire.submessage(messages.Memory, "hidden_states", rows.chunks())]
    if given.values is not None:
        chunks += wire.submessage(messages.Memory, "values", gather_like("values", given.values, rows).chunks())
    return wire.submessage(message, "memory", chunks)


def _attend_fields(options: Mapping[str, Any]) -> Dict[str, Any]:
    fields = _common_fields(options)
    fields["layer"] = integers("layer", [options.get("layer", 0)])[0]
    fields["stage"] = choose("stage", "AttendStage", options.get("stage", "context"))
    for name in ("return_attention_probabilities", "return_weighted_values", "memory_handle"):
        if options.get(name):
            fields[name] = options[name]
    return fields


def attend_request(model: str = "", **options: Unpack[AttendOptions]) -> Request[Attended]:
    """Returns a request for the attention of one layer, for `send`. See AttendOptions for the arguments.

    model: name of a loaded model; empty: the only one, if the server has one.
    """
    check_names(options, AttendOptions)
    given = arrays.all_materialized(options)
    message = messages.AttendRequest
    if given.get("hidden_states") is None:
        raise invalid("hidden_states", "an array or a list of arrays", "none")
    mask = given.get("attention_mask")
    rows = gather("hidden_states", given["hidden_states"], mask)
    layout, chunks = _layout_chunks(message, rows, None if rows.lengths is not None else mask, given.get("lengths"))
    chunks += wire.submessage(message, "hidden_states", rows.chunks()) + _float_chunks(message, "attention_bias", given)
    if given.get("memory") is not None:
        chunks += memory_chunks(message, given["memory"])
    head = message(model=model, **_attend_fields(given), **layout).SerializeToString()
    own_keys = given.get("memory") is None and not given.get("memory_handle")
    read = partial(answers.read_attended, lengths=rows.lengths, all_rows=given.get("query_rows") is None, own_keys=own_keys)
    return Request(messages.method_path("Attend"), (head, *chunks), read)


def put_memory_request(model: str, layer: int, memory: Any, time_to_live: Optional[float]) -> Request[messages.PutMemoryResponse]:
    """Returns a request to register a memory. time_to_live: seconds; None: the server's maximum."""
    head = messages.PutMemoryRequest(model=model, layer=layer, time_to_live_ms=int((time_to_live or 0) * 1000))
    chunks: List[Any] = [head.SerializeToString(), *memory_chunks(messages.PutMemoryRequest, memory)]
    return Request(messages.method_path("PutMemory"), tuple(chunks), messages.PutMemoryResponse.FromString)


def tokenize_request(model: str, texts: Iterable[str], text_pairs: Optional[Iterable[str]],
                     options: TokenizeOptions) -> Request[messages.TokenizeResponse]:
    """Returns a request for the tokens of texts."""
    omits = not options.get("special_tokens", True)
    head = messages.TokenizeRequest(model=model, omit_special_tokens=omits, **_text_fields(options))
    return Request(messages.method_path("Tokenize"),
                   (head.SerializeToString(), *text_chunks(messages.TokenizeRequest, texts, text_pairs)),
                   messages.TokenizeResponse.FromString)


def message_request(method: str, message: Any, answer: Any) -> Request[Any]:
    """Returns a request without tensors."""
    return Request(messages.method_path(method), (message.SerializeToString(),), answer.FromString)
