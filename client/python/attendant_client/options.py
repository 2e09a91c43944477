"""The arguments of requests, with their shapes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, TypedDict

from . import messages
from .errors import invalid


@dataclass(frozen=True)
class Memory:
    """Rows that queries attend to instead of their own sequence: cross-attention. K is the model's key_input_width.

    hidden_states: [B, M, K], [M, B, K] with the layout "sequence_first", packed [N, K] with `lengths`, or a list of arrays
        [m, K], one per sequence. If B is 1, all sequences attend to the same memory.
    attention_mask: [B, M], booleans or integers: non-zero keeps the row.
    lengths: number of kept rows of each sequence.
    values: separate input of the value projection, in the shape of hidden_states except for the last dimension.
    """

    hidden_states: Any
    attention_mask: Any = None
    lengths: Optional[Sequence[int]] = None
    values: Any = None


class CommonOptions(TypedDict, total=False):
    """Arguments of both `encode` and `attend`. Arrays can be NumPy's, torch's, or anything that numpy.asarray accepts.

    B is the number of sequences, S the padded length, T the kept tokens of all sequences, E the model's width, H its heads. A
    **list** (or tuple) has one array per sequence, of any lengths. It is sent packed, without padding, and the rows of the
    response are a list too.

    hidden_states: [B, S, E], [S, B, E] with layout="sequence_first", packed [T, E] with `lengths`, or a list of [n, E].
        float32, float16 or bfloat16 (torch, ml_dtypes); other numbers become float32.
    attention_mask: [B, S], booleans or integers, non-zero keeps the token; with a list: one [n] per sequence. Masked tokens of a
        list are not sent and have no row in the response.
    lengths: B integers, the number of kept tokens of each sequence. Required for packed arrays.
    attention_bias: [B or 1, H or 1, S or 1, S or 1], numbers added to the scores before the softmax; -inf masks a pair.
    attention_form: "per_head", "head_mean" or "top_keys": form of returned probabilities.
    attention_top_k: number of keys per query with "top_keys".
    head_gates: H numbers from 0 to 1 that scale each head's probabilities; `encode` also takes one per head of each layer.
    query_rows: return only these rows, at least one, in this order; with a list, rows are numbered across all sequences.
    layout: "batch_first" (default) or "sequence_first", the order of the rows of padded arrays.
    output_dtype: type of the response, "float32", "float16" or "bfloat16"; default: the type of the input. bfloat16 is sent as
        such and returned as float32.
    request_id: logged by the server with the request.
    """

    hidden_states: Any
    attention_mask: Any
    lengths: Sequence[int]
    attention_bias: Any
    attention_form: str
    attention_top_k: int
    head_gates: Any
    query_rows: Sequence[int]
    layout: str
    output_dtype: Any
    request_id: str


class EncodeOptions(CommonOptions, total=False):
    """Arguments of `encode`, in addition to CommonOptions. Requires exactly one of hidden_states, input_ids, features and texts.

    input_ids: [B, S], packed [T] with `lengths`, or a list of [n]: integers from 0 to the vocabulary size - 1.
    token_type_ids, position_ids: shaped like input_ids. Default: zeros, and the positions that the model's family defines.
    features: [B, S, W], packed [T, W], or a list of [n, W]: image patches or audio frames. If the model's description has an
        image_size: also images, [B, 3, H, W] or a list of [3, H, W], of S patches each.
    texts: a list of texts, for models that accept them (`takes_texts` in their description). Response rows are a list too.
    text_pairs: the second texts of pairs that the model reads together, one for each text.
    prompt: prepended to each text, and in pairs to the first text. prompt_name: use one of the model's own prompts instead.
        Default: the prompt for `task`, or else the model's default prompt.
    return_tokens: return the tokens of the texts.
    layers: the layers to run, range(first, end). Default: all.
    return_hidden_states: return the output of the last layer. Default: True.
    intermediate_layers: also return the output of these layers.
    attention_layers: also return the attention probabilities of these layers.
    pooling: also return one vector per sequence: "model" (as defined by the checkpoint), "first_token", "mean", "max",
        "mean_sqrt_len", "position_weighted_mean", "last_token", or "classifier" (the scores of the classification head).
    normalize: scale each vector to length 1.
    return_token_vectors: also return the output of the checkpoint's token head: class scores or a vector for each token.
    normalize_token_vectors: scale each token vector to length 1.
    prompt_tokens: number of prompt tokens at the start of each sequence: one number, or one per sequence. The pooling modes
        exclude them; "model" only if the model excludes prompts.
    task: purpose of the sequences, "query" or "document" (default), for models whose token vectors depend on it: skipped tokens
        have zero vectors.
    query_vectors: [Q, P], the token vectors of a query, returned by `return_token_vectors` with task="query": also return the
        late-interaction score of each sequence (MaxSim, as in ColBERT).
    return_sparse: also return a sparse vector over the vocabulary per sequence (SPLADE, bge-m3); see SparseVectors.
    truncation: "right" or "left": truncate long input_ids and texts on this side instead of refusing them. Texts keep their
        special tokens.
    """

    input_ids: Any
    token_type_ids: Any
    position_ids: Any
    features: Any
    texts: Iterable[str]
    text_pairs: Optional[Iterable[str]]
    prompt: Optional[str]
    prompt_name: Optional[str]
    return_tokens: bool
    layers: range
    return_hidden_states: bool
    intermediate_layers: Sequence[int]
    attention_layers: Sequence[int]
    pooling: Optional[str]
    normalize: bool
    return_token_vectors: bool
    normalize_token_vectors: bool
    prompt_tokens: Any
    task: str
    query_vectors: Any
    return_sparse: bool
    truncation: Optional[str]


class TokenizeOptions(TypedDict, total=False):
    """Arguments of `tokenize`, in addition to the texts: prompt, prompt_name and truncation as in EncodeOptions.

    special_tokens: False omits the special tokens added to a text or pair.
    """

    prompt: Optional[str]
    prompt_name: Optional[str]
    truncation: Optional[str]
    special_tokens: bool


class AttendOptions(CommonOptions, total=False):
    """Arguments of `attend`, in addition to CommonOptions.

    layer: index of the layer, from 0.
    stage: "context" (default), "projected" or "block": the stage of the attention block to return.
    return_attention_probabilities: also return the attention probabilities, [B, H, S, S].
    return_weighted_values: also return each value times its probability, [B, H, S, S, D].
    memory: a Memory, or its hidden_states, to attend to instead of the own sequence.
    memory_handle: a memory registered by `put_memory`, instead.
    """

    layer: int
    stage: str
    return_attention_probabilities: bool
    return_weighted_values: bool
    memory: Any
    memory_handle: str


# Number of dimensions of one sequence in each option, for errors.
SEQUENCE_SHAPES = {"hidden_states": 2, "features": 2, "values": 2, "input_ids": 1, "token_type_ids": 1, "position_ids": 1}


def choose(field: str, enum: str, value: str, prefix: str = "", suffix: str = "") -> int:
    """Returns the number of an enum value, given without prefix and suffix."""
    values = messages.enum_values(enum)
    if value in values:
        return values[value]
    if f"{prefix}{value}{suffix}" in values:
        return values[f"{prefix}{value}{suffix}"]
    names = [name.removeprefix(prefix).removesuffix(suffix) for name in values]
    raise invalid(field, f"one of {', '.join(names)}", repr(value))


def span_of(layers: Any) -> Tuple[int, int]:
    """Returns the first layer and the number of layers."""
    if not isinstance(layers, range) or layers.step != 1 or len(layers) == 0 or layers.start < 0:
        raise invalid("layers", "a range of layers such as range(0, 2)", repr(layers))
    return layers.start, len(layers)


def integers(field: str, values: Any) -> List[int]:
    try:
        numbers = [int(value) for value in values]
        whole = all(number == value for number, value in zip(numbers, values))
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise invalid(field, "a list of integers", repr(values))
    if any(number < 0 for number in numbers):
        raise invalid(field, "integers from 0", min(numbers))
    return numbers


def check_names(options: Mapping[str, Any], known: Any) -> None:
    """TypeError, as for any other function, if an option has an unknown name."""
    for name in options:
        if name not in known.__optional_keys__:
            raise TypeError(f"unexpected argument {name!r}; expected one of {', '.join(sorted(known.__optional_keys__))}")
