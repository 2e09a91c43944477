#!/usr/bin/env python3
"""compare.py --program FILE [--long] [--json FILE] [--tokenizers FOLDER]: what tests/text/run does after building."""

import argparse
import concurrent.futures
import functools
import json
import pathlib
import platform
import sys
import time

import tokenizers

import folders
import parity
import program as programs
import speed
import strings
import tokenizers_made

PARTS, TEXTS_OF_A_PART = 50, 20_000  # at most 50 parts for each tokenizer; one process compares a part


def charsmap():
    """Returns SentencePiece's own normalizer, which its trainer puts into each model."""
    import io
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(strings.corpus(300)), model_writer=model, vocab_size=1000, minloglevel=2,
        normalization_rule_name="nmt_nfkc", hard_vocab_limit=False)
    parsed = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return tokenizers.normalizers.Precompiled(parsed.normalizer_spec.precompiled_charsmap)


def all_tokenizers(folder):
    yield from tokenizers_made.made(strings.corpus(), charsmap())
    for path in sorted(folder.rglob("tokenizer.json")) if folder else []:
        yield f"published: {path.parent.parent.name}", tokenizers.Tokenizer.from_file(str(path))


def compare_part(program, tokenizer_json, part, count):
    """Returns the number of mismatches in a part, and describes the first three. The first part also compares options."""
    tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    texts = strings.texts(part, count)
    own = list(parity.text_differences(program, tokenizer, texts))
    if part % PARTS == 0:
        own += parity.option_differences(program, tokenizer, texts)
    shown = [f"  {request!r}\n    expected {expected.tolist()}\n    got      {None if found is None else found[:, :5].tolist()}"
             for request, expected, found in own[:3]]
    return len(own), [line[:600] for line in shown]


def compare(program, count, folder, workers):
    """Returns the number of tokenizers, texts and mismatches."""
    made = texts = mismatches = 0
    for index, (name, tokenizer) in enumerate(all_tokenizers(folder)):
        start, own = time.time(), 0
        counts = [min(TEXTS_OF_A_PART, count - first) for first in range(0, count, TEXTS_OF_A_PART)]
        parts = range(PARTS * index, PARTS * index + len(counts))
        for found, shown in workers.map(functools.partial(compare_part, program, tokenizer.to_str()), parts, counts):
            own += found
            for lines in shown:
                print(lines, flush=True)
        print(f"{name:44} {count:8} texts {own:6} mismatches {time.time() - start:6.1f} s", flush=True)
        made, texts, mismatches = made + 1, texts + count, mismatches + own
    return made, texts, mismatches


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--count", type=int)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--tokenizers", type=pathlib.Path)
    parser.add_argument("--only", choices=["parity", "speed"])
    options = parser.parse_args()
    figures = {}
    if options.only != "speed":
        count = options.count or (1_000_000 if options.long else 20_000)
        with concurrent.futures.ProcessPoolExecutor() as workers:
            made, texts, mismatches = compare(options.program.resolve(), count, options.tokenizers, workers)
            folder_count, folder_mismatches = folders.compare(
                options.program.resolve(), strings.texts(3, 20_000 if options.long else 800), charsmap(), workers)
        mismatches += folder_mismatches
        figures.update({"text.folders": folder_count, "text.tokenizers": made, "text.strings": texts, "text.mismatches": mismatches})
    if options.only != "parity":
        figures.update(speed.measure(options.program.resolve()))
    for name, value in figures.items():
        print(f"{name:44} {value}")
    if options.json:
        machine = {"cpu": platform.machine(), "isa": speed.isa(), "tokenizers": tokenizers.__version__}
        options.json.write_text(json.dumps({"machine": machine, "figures": figures}, indent=2) + "\n")
    return 1 if figures.get("text.mismatches") else 0


if __name__ == "__main__":
    sys.exit(main())
