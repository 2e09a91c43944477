"""The program that tokenizes with server/text, as one function."""

import pathlib
import struct
import subprocess
import tempfile

import numpy


class Refused(Exception):
    """The tokenizer cannot be loaded; the text is the reason."""


def frame(requests):
    parts = []
    for texts in requests:
        parts.append(struct.pack("<I", len(texts)))
        for text in texts:
            encoded = text.encode()
            parts += [struct.pack("<I", len(encoded)), encoded]
    return b"".join(parts)


def call(program, tokenizer_json, requests, *arguments):
    """`tokenizer_json` is the text of one, or the path of a folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = tokenizer_json
        if not isinstance(path, pathlib.Path):
            path = pathlib.Path(folder) / "tokenizer.json"
            path.write_text(tokenizer_json)
        done = subprocess.run([program, path, *map(str, arguments)], input=frame(requests), capture_output=True)
    if done.returncode == 3:
        raise Refused(done.stderr.decode().strip())
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def encode(program, tokenizer_json, requests, *arguments):
    """Returns an array [tokens, 7] for each request, or None for one that failed."""
    numbers = numpy.frombuffer(call(program, tokenizer_json, requests, *arguments), "<i4")
    found, at = [], 0
    for _ in requests:
        count = numbers[at]
        at += 1
        if count < 0:
            found.append(None)
            continue
        found.append(numbers[at:at + 7 * count].reshape(count, 7))
        at += 7 * count
    assert at == len(numbers)
    return found


def vocabulary(program, tokenizer_json):
    """Returns the text of each id, up to one beyond the last."""
    answer, texts, at = call(program, tokenizer_json, [], "--vocabulary"), [], 0
    while at < len(answer):
        size, = struct.unpack_from("<I", answer, at)
        texts.append(answer[at + 4:at + 4 + size].decode())
        at += 4 + size
    return texts


def seconds(program, tokenizer_json, requests, rounds):
    """Returns the shortest of some rounds in seconds, and the number of tokens."""
    lines = call(program, tokenizer_json, requests, "--time", rounds).decode().split("\n")
    times = [line.split() for line in lines if line]
    return min(int(time) for time, _ in times) / 1e9, int(times[0][1])
