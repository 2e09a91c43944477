"""Compares server/text with PyPI's tokenizers: ids, type ids, added tokens, and places in characters and bytes."""

import json

import numpy

import program as programs


def wanted(encoding):
    rows = numpy.zeros((len(encoding.ids), 5), "<i4")
    if len(encoding.ids):
        rows[:, 0] = encoding.ids
        rows[:, 1] = encoding.type_ids
        rows[:, 2] = encoding.special_tokens_mask
        rows[:, 3:] = encoding.offsets
    return rows


def byte_places(rows, request):
    """Returns the places in bytes that those in characters stand for."""
    starts = [numpy.concatenate([[0], numpy.cumsum([len(c.encode()) for c in text])]).astype("<i4") for text in request]
    starts.append(numpy.zeros(1, "<i4"))
    found = numpy.zeros((len(rows), 2), "<i4")
    for index, row in enumerate(rows):
        text = starts[row[2]] if row[2] != 2 else starts[-1]
        found[index] = text[row[3]], text[row[4]]
    return found


def differences(program, tokenizer, requests, *arguments, add_special_tokens=True):
    """Yields (request, wanted rows, found rows) of those that differ."""
    single = [texts[0] if len(texts) == 1 else tuple(texts) for texts in requests]
    answers = tokenizer.encode_batch(single, add_special_tokens=add_special_tokens)
    file = json.loads(tokenizer.to_str())
    file["truncation"] = None
    for texts, answer, rows in zip(requests, answers, programs.encode(program, json.dumps(file), requests, *arguments)):
        expected = wanted(answer)
        if rows is None:
            yield texts, expected, None
            continue
        places = byte_places(rows, texts)
        compared = numpy.column_stack([rows[:, :2], rows[:, 2] == 2, rows[:, 3:5]])
        if not numpy.array_equal(compared, expected) or not numpy.array_equal(places, rows[:, 5:]):
            yield texts, expected, rows


def all_differences(program, tokenizer, texts):
    """The texts of ids; texts alone, as pairs, and cut to several lengths at either side, with and without added tokens."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for token_id, text in enumerate(programs.vocabulary(program, tokenizer.to_str())):
        if text != (tokenizer.id_to_token(token_id) or ""):
            yield token_id, numpy.array(tokenizer.id_to_token(token_id)), None
    yield from differences(program, tokenizer, [[text] for text in texts])
    few = texts[:len(texts) // 10]
    pairs = [[a, b] for a, b in zip(few, reversed(few))]
    yield from differences(program, tokenizer, pairs)
    yield from differences(program, tokenizer, pairs[:500], "--no-special", add_special_tokens=False)
    for length in (4, 5, 8, 13, 32):
        for side in ("right", "left"):
            tokenizer.enable_truncation(length, direction=side)
            left = ["--left"] if side == "left" else []
            yield from differences(program, tokenizer, pairs[:300], "--max-length", length, *left)
            yield from differences(program, tokenizer, [[text] for text in few[:300]], "--max-length", length, *left)
    tokenizer.no_truncation()
