"""Folders of small models with a tokenizer of each kind, made by hand: for texts that are to cost a tokenizer much."""
import dataclasses
import json
import pathlib
import string

from bert import SMALL, write_checkpoint  # of client/python/tests

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
RUNS = ["a" * length for length in (2, 4, 8, 16, 32, 64)]  # merged pair by pair
LONGEST = 24  # tokens


def _byte_letters() -> list:
    """The letters by which byte-level BPE writes the 256 bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in shown}
    for byte in range(256):
        letters.setdefault(byte, chr(256 + len(letters) - len(shown)))
    return [letters[byte] for byte in range(256)]


def _word_piece() -> dict:
    words = [*SPECIAL, *string.ascii_lowercase, *("##" + letter for letter in string.ascii_lowercase)]
    return {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                           "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": {word: index for index, word in enumerate(words)}}}


def _unigram() -> dict:
    pieces = ["▁", *string.ascii_lowercase, *RUNS, "\u0301", "漢"]
    return {"normalizer": {"type": "NFKC"}, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "model": {"type": "Unigram", "unk_id": 1, "byte_fallback": False,
                      "vocab": [[word, 0.0] for word in SPECIAL] + [[piece, -1.0 - index / 10] for index, piece in enumerate(pieces)]}}


def _bpe() -> dict:
    words = [*SPECIAL, *_byte_letters(), *RUNS]
    return {"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {word: index for index, word in enumerate(words)},
                      "merges": [[run[:len(run) // 2]] * 2 for run in RUNS]}}


KINDS = {"word-piece": _word_piece, "unigram": _unigram, "bpe": _bpe}


def write(folder: pathlib.Path, kind: str) -> None:
    """Writes one of KINDS."""
    parts = KINDS[kind]()
    folder.mkdir(parents=True)
    write_checkpoint(folder, dataclasses.replace(SMALL, classes=0, vocabulary=len(parts["model"]["vocab"])), pooling="mean")
    added = [{"id": index, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for index, word in enumerate(SPECIAL)]
    cls, sep = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]"))
    ends = {name: {"id": name, "ids": [SPECIAL.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    processor = {"type": "TemplateProcessing", "single": [cls, {"Sequence": {"id": "A", "type_id": 0}}, sep],
                 "pair": [cls, {"Sequence": {"id": "A", "type_id": 0}}, sep, {"Sequence": {"id": "B", "type_id": 1}}, sep],
                 "special_tokens": ends}
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "post_processor": processor, "decoder": None}
    (folder / "tokenizer.json").write_text(json.dumps({**document, **parts}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": LONGEST}), encoding="utf-8")
