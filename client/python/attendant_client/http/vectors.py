"""Vectors of texts and of token ids."""
from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple, cast

import numpy as np

from ..division import groups
from ..text import rows as text_rows
from ..text.tokenizer import check_length
from .exchange import Call
from .members import Input
from .models import Served
from .numbers import Floats, check_finite
from .refusals import UNTOKENIZABLE, invalid


@dataclass(frozen=True)
class Wish:
    """What vectors are wanted of. field: the member of the request that has the inputs.

    normalize: scale each vector to length 1. dimensions: keep so many numbers of each; None: all.
    prompt_name: one of the model's prompts, which goes before texts; None: the model's default.
    truncation: the side on which inputs that are too long are cut; None: they are refused.
    """

    field: str
    inputs: Sequence[Input]
    normalize: bool = True
    dimensions: Optional[int] = None
    prompt_name: Optional[str] = None
    truncation: Optional[str] = "right"


async def embed(call: Call, served: Served, wish: Wish) -> Tuple[Floats, int]:
    """Returns the vectors of the inputs, [n, dimensions] float32, and how many tokens were computed."""
    width = served.tasks.width
    if wish.dimensions is not None and wish.dimensions > width:
        raise invalid("dimensions", f"1..{width}, the width of the model's vectors", wish.dimensions)
    if all(isinstance(one, str) for one in wish.inputs):
        made = served.tasks.embed(cast(Sequence[str], wish.inputs), text_rows.Wish(
            "model", wish.normalize, wish.truncation, prompt_name=wish.prompt_name, field=wish.field))
        await call.front.client.send_texts(made, timeout=call.remaining())
        rows, tokens = made.rows, cast(text_rows.LocalRows, made).tokens
    else:
        ids = await _ids(served, wish)
        rows, tokens = await _embed_ids(call, served, wish, ids), sum(map(len, ids))
    check_finite(rows)
    return text_rows.cut(rows, wish.dimensions), tokens


async def embed_all(call: Call, served: Served, wish: Wish) -> List[Floats]:
    """Returns the last layer's output for each token of each input: arrays [tokens, E] of float32."""
    ids = await _ids(served, wish)
    rows: List[Floats] = []
    for group in groups([len(one) for one in ids], served.description.limits.max_request_tokens):
        answer = await call.front.client.encode(
            served.description.name, input_ids=[ids[index] for index in group], timeout=call.remaining())
        rows += answer.hidden_states
    for of_input in rows:
        check_finite(of_input)
    return rows


async def _embed_ids(call: Call, served: Served, wish: Wish, ids: Sequence[List[int]]) -> Floats:
    """Returns [sequences, E]."""
    pooled = []
    prompt = served.tokenizer.prompt(None, wish.prompt_name)
    left_out = served.tasks.prompt_tokens(prompt, wish.truncation)
    prompts = [left_out if isinstance(one, str) else 0 for one in wish.inputs]
    for group in groups([len(one) for one in ids], served.description.limits.max_request_tokens):
        answer = await call.front.client.encode(
            served.description.name, input_ids=[ids[index] for index in group], pooling=served.tasks.pooling,
            normalize=wish.normalize, return_hidden_states=False,
            prompt_tokens=[prompts[index] for index in group] if left_out else None, timeout=call.remaining())
        pooled.append(answer.pooled)
    return np.concatenate(pooled)


async def _ids(served: Served, wish: Wish) -> List[List[int]]:
    """Returns the ids of each input, cut if need be. Ids that are given are taken as they are, with their special tokens."""
    tokenizer = served.tokenizer
    prompt = tokenizer.prompt(None, wish.prompt_name)
    texts = [prompt + one for one in wish.inputs if isinstance(one, str)]
    of_texts = iter(await asyncio.to_thread(tokenizer.ids, texts, wish.truncation) if texts else [])
    made = []
    for index, one in enumerate(wish.inputs):
        field = wish.field if len(wish.inputs) == 1 else f"{wish.field}[{index}]"
        ids = next(of_texts)[0] if isinstance(one, str) else _check_ids(served, field, one)
        if wish.truncation is None:
            check_length(field, len(ids), tokenizer.max_length)
        most = tokenizer.max_length or len(ids)
        made.append(ids[-most:] if wish.truncation == "left" else ids[:most])
    return made


def _check_ids(served: Served, field: str, ids: List[int]) -> List[int]:
    """Refuses ids that are not in the model's vocabulary."""
    vocabulary = served.description.embeddings.vocabulary
    for place, one in enumerate(ids):
        if one >= vocabulary:
            raise invalid(f"{field}[{place}]", f"a token id of 0..{vocabulary - 1}", one, UNTOKENIZABLE)
    return ids
