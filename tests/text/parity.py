"""Compares server/text with PyPI's tokenizers: ids, type ids, added tokens, and places in characters and bytes."""

import json
from itertools import chain

import numpy

import program as programs


def wanted(encodings):
    """Returns the encodings as an array [tokens, 5]: ids, type ids, added tokens, and places in characters."""
    tokens = sum(map(len, encodings))
    rows = numpy.empty((tokens, 5), "<i4")
    for column, of in enumerate((lambda e: e.ids, lambda e: e.type_ids, lambda e: e.special_tokens_mask)):
        rows[:, column] = numpy.fromiter(chain.from_iterable(map(of, encodings)), "<i4", tokens)
    places = chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings))
    rows[:, 3:] = numpy.fromiter(places, "<i4", 2 * tokens).reshape(tokens, 2)
    return rows


def byte_places(requests, of_request, of_text, places):
    """Converts places in characters to places in bytes, -1 beyond the end of the text.

    of_text is the text of each token in its request, 0 or 1, or 2 for added tokens.
    """
    texts = [text for request in requests for text in (*request, "")[:2]]
    characters = numpy.frombuffer("".join(text + "\0" for text in texts).encode("utf-32-le"), "<u4")
    sizes = 1 + (characters >= 0x80) + (characters >= 0x800) + (characters >= 0x10000)
    before = numpy.cumsum(sizes) - sizes
    text = 2 * of_request + of_text % 2
    lengths = numpy.array([len(text) for text in texts], int)
    starts = (numpy.cumsum(lengths + 1) - lengths - 1)[text][:, None]
    inside = numpy.minimum(places, lengths[text][:, None])
    found = numpy.where(inside == places, before[starts + inside] - before[starts], -1)
    return numpy.where((of_text == 2)[:, None], 0, found)


def differences(program, tokenizer, requests, *arguments, add_special_tokens=True):
    """Yields (request, wanted rows, found rows) for each request that differs."""
    single = [texts[0] if len(texts) == 1 else tuple(texts) for texts in requests]
    answers = tokenizer.encode_batch(single, add_special_tokens=add_special_tokens)
    file = json.loads(tokenizer.to_str())
    file["truncation"] = None
    found = programs.encode(program, json.dumps(file), requests, *arguments)
    differing = {index for index, rows in enumerate(found) if rows is None or len(rows) != len(answers[index])}
    # Compare the tokens of all other requests at once.
    alike = [index for index in range(len(requests)) if index not in differing]
    expected = wanted([answers[index] for index in alike])
    rows = numpy.concatenate([numpy.zeros((0, 7), "<i4"), *(found[index] for index in alike)])
    of_request = numpy.repeat(numpy.array(alike, int), [len(found[index]) for index in alike])
    compared = numpy.column_stack([rows[:, :2], rows[:, 2] == 2, rows[:, 3:5]])
    equal = (compared == expected).all(1) & (
        byte_places(requests, of_request, rows[:, 2], expected[:, 3:]) == rows[:, 5:]).all(1)
    for index in sorted(differing.union(of_request[~equal].tolist())):
        yield requests[index], wanted([answers[index]]), found[index]


def text_differences(program, tokenizer, texts):
    """Compares single texts, and pairs of a tenth of them."""
    yield from differences(program, tokenizer, [[text] for text in texts])
    yield from differences(program, tokenizer, pairs_of(texts))


def option_differences(program, tokenizer, texts):
    """Compares the vocabulary, truncation to several lengths at either side, and pairs without added tokens."""
    for token_id, text in enumerate(programs.vocabulary(program, tokenizer.to_str())):
        if text != (tokenizer.id_to_token(token_id) or ""):
            yield token_id, numpy.array(tokenizer.id_to_token(token_id)), None
    pairs = pairs_of(texts)
    yield from differences(program, tokenizer, pairs[:500], "--no-special", add_special_tokens=False)
    for length in (4, 5, 8, 13, 32):
        for side in ("right", "left"):
            tokenizer.enable_truncation(length, direction=side)
            left = ["--left"] if side == "left" else []
            yield from differences(program, tokenizer, pairs[:300], "--max-length", length, *left)
            yield from differences(program, tokenizer, [[text] for text in texts[:300]], "--max-length", length, *left)
    tokenizer.no_truncation()


def pairs_of(texts):
    few = texts[:len(texts) // 10]
    return [[a, b] for a, b in zip(few, reversed(few))]
