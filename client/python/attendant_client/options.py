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
        [m, K], one for each sequence. B may be 1: all sequences then attend to it.
    attention_mask: [B, M], booleans or integers: non-zero keeps the row.
    lengths: kept rows of each sequence.
    values: what values are made of, if not of hidden_states; of the same shape but for the last dimension.
    """

    hidden_states: Any
    attention_mask: Any = None
    lengths: Optional[Sequence[int]] = None
    values: Any = None


class CommonOptions(TypedDict, total=False):
    """What requests of `encode` and `attend` share. Arrays are NumPy's, torch's, or whatever numpy.asarray takes.

    B is the number of sequences, S the padded length, T the kept tokens of all sequences, E the model's width, H its heads. A
    **list** (or tuple) has one array for each sequence, of any lengths. It is sent packed, without padding, and the rows of
    the answer are a list too.

    hidden_states: [B, S, E], [S, B, E] with layout="sequence_first", packed [T, E] with `lengths`, or a list of [n, E].
        float32, float16 or bfloat16 (torch, ml_dtypes); other numbers become float32.
    attention_mask: [B, S], booleans or integers, non-zero keeps the token; with a list: one [n] for each sequence. Of a list,
        tokens that are not kept are not sent, and have no row in the answer.
    lengths: B integers, the kept tokens of each sequence. Needed for packed arrays.
    attention_bias: [B or 1, H or 1, S or 1, S or 1], added to the scores before the softmax; -inf forbids a pair.
    attention_form: "per_head", "head_mean" or "top_keys": how probabilities are answered.
    attention_top_k: how many keys of each query "top_keys" answers.
    head_gates: H numbers from 0 to 1 that multiply each head's probabilities; `encode` also takes one for each head of each
        layer.
    query_rows: answer only these rows, in this order; with a list, rows of all sequences one after the other.
    layout: "batch_first" (default) or "sequence_first", the order of the rows of padded arrays.
    output_dtype: type of the answer, "float32", "float16" or "bfloat16"; default: that of the input. bfloat16 travels as such,
        and arrives as float32.
    request_id: appears in the server's log lines about this request.
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
    """Arguments of `encode`, beside those of CommonOptions. Exactly one of hidden_states, input_ids, features and texts is needed.

    input_ids: [B, S], packed [T] with `lengths`, or a list of [n]: integers from 0 to the vocabulary.
    token_type_ids, position_ids: as input_ids. Default: zeros, and what the model's family defines.
    features: [B, S, W], packed [T, W], or a list of [n, W]: image patches or audio frames.
    texts: a list of texts, for models that take them (`takes_texts` of their description). Rows of the answer are a list, too.
    text_pairs: the second texts of pairs that the model reads together, one for each text.
    prompt: goes before each text. prompt_name: one of the model's own prompts instead. Neither: the one of `task`, or the model's
        default one; for pairs and for "classifier" none.
    return_tokens: also answer the tokens of the texts.
    layers: the layers to run, range(first, end). Default: all.
    return_hidden_states: whether the output of the last layer is answered. Default: yes.
    intermediate_layers: also answer the output of these layers.
    attention_layers: also answer the attention probabilities of these layers.
    pooling: also answer one vector for each sequence: "model" (what the checkpoint says), "first_token", "mean", "max",
        "mean_sqrt_len", "position_weighted_mean", "last_token", or "classifier" (the scores of its classification head).
    normalize: scale each vector to length 1.
    return_token_vectors: also answer what the checkpoint's head makes of each token: scores of classes, or its vector.
    normalize_token_vectors: scale each of them to length 1.
    prompt_tokens: how many of each sequence's first tokens are those of a prompt: one number, or one for each. They are left out
        of the vector by the modes above, and by "model" if the model leaves prompts out.
    task: what the sequences are for, "query" or "document" (the default), to models whose token vectors depend on it: those of
        tokens that a task leaves out are zeros.
    query_vectors: [Q, P], the token vectors of a query, as `return_token_vectors` and task="query" give them: also return the score
        of each sequence by late interaction (MaxSim, as of ColBERT).
    return_sparse: also answer a sparse vector over the vocabulary for each sequence (SPLADE, bge-m3); see SparseVectors.
    truncation: "right" or "left": cut input_ids and texts that are too long on this side, instead of refusing them. Texts keep
        their special tokens.
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
    """Arguments of `tokenize`, beside the texts: prompt, prompt_name and truncation as in EncodeOptions.

    special_tokens: False leaves out the special tokens that are added to a text or a pair.
    """

    prompt: Optional[str]
    prompt_name: Optional[str]
    truncation: Optional[str]
    special_tokens: bool


class AttendOptions(CommonOptions, total=False):
    """Arguments of `attend`, beside those of CommonOptions.

    layer: index of the layer, from 0.
    stage: "context" (default), "projected" or "block": how far into the attention block to go.
    return_attention_probabilities: also answer them, [B, H, S, S].
    return_weighted_values: also answer each value times its probability, [B, H, S, S, D].
    memory: what queries attend to instead of their own sequence: a Memory, or its hidden_states.
    memory_handle: a memory that `put_memory` has registered, instead.
    """

    layer: int
    stage: str
    return_attention_probabilities: bool
    return_weighted_values: bool
    memory: Any
    memory_handle: str


# Shapes of what the options hold, as errors name them.
SEQUENCE_SHAPES = {"hidden_states": 2, "features": 2, "values": 2, "input_ids": 1, "token_type_ids": 1, "position_ids": 1}


def choose(field: str, enum: str, value: str, prefix: str = "", suffix: str = "") -> int:
    """Returns the number of an enum's value that a caller named without the prefix and the suffix."""
    values = messages.enum_values(enum)
    if value in values:
        return values[value]
    if f"{prefix}{value}{suffix}" in values:
        return values[f"{prefix}{value}{suffix}"]
    names = [name.removeprefix(prefix).removesuffix(suffix) for name in values]
    raise invalid(field, f"one of {', '.join(names)}", repr(value))


def span_of(layers: Any) -> Tuple[int, int]:
    """Returns the first layer and their number."""
    if not isinstance(layers, range) or layers.step != 1 or len(layers) == 0 or layers.start < 0:
        raise invalid("layers", "a range of layers such as range(0, 2)", repr(layers))
    return layers.start, len(layers)


def integers(field: str, values: Any) -> List[int]:
    try:
        numbers = [int(value) for value in values]
    except (TypeError, ValueError):
        raise invalid(field, "a list of integers", repr(values)) from None
    if any(number < 0 for number in numbers):
        raise invalid(field, "integers from 0", min(numbers))
    return numbers


def check_names(options: Mapping[str, Any], known: Any) -> None:
    """TypeError, as for any other function, if an option has an unknown name."""
    for name in options:
        if name not in known.__optional_keys__:
            raise TypeError(f"unexpected argument {name!r}; there are {', '.join(sorted(known.__optional_keys__))}")
