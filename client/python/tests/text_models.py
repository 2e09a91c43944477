"""Folders of small random models with a tokenizer of letters, and its ids."""
import contextlib
import dataclasses
import json
import pathlib
import re
from typing import List, Tuple

import numpy as np

from bert import SMALL, write_checkpoint, write_safetensors
from programs import run_server
from sentence_folders import WORDS, tokenizer

assert len(WORDS) == SMALL.vocabulary
MOST_TOKENS = 24


def letters_tokenizer() -> str:
    """Returns a tokenizer.json that makes a token of each letter, as BERT's does of words."""
    made = tokenizer()
    made["normalizer"] = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                          "lowercase": True}
    single, separator = made["post_processor"]["single"], {"SpecialToken": {"id": "[SEP]", "type_id": 1}}
    made["post_processor"]["pair"] = [*single, {"Sequence": {"id": "B", "type_id": 1}}, separator]
    return json.dumps(made)


def write_text_model(folder: pathlib.Path, classes: int = 0, pooling: str = "", most_tokens: int = MOST_TOKENS, **settings) -> None:
    """Writes a model for texts of at most so many tokens, with a head of classes, or with sentence-transformers' pooling."""
    write_checkpoint(folder, dataclasses.replace(SMALL, classes=classes), pooling=pooling)
    (folder / "tokenizer.json").write_text(letters_tokenizer())
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": most_tokens, "do_lower_case": True, **settings}))
    if pooling:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": most_tokens, "do_lower_case": False}))
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "ask "}}))


def write_m3_heads(folder: pathlib.Path) -> None:
    """Writes the heads of bge-m3: the weight of a token, and its vector, 5 wide."""
    random = np.random.default_rng(3)
    for name, width in (("sparse_linear", 1), ("colbert_linear", 5)):
        write_safetensors(folder / f"{name}.safetensors", {
            "weight": random.standard_normal((width, SMALL.width)).astype(np.float32),
            "bias": random.standard_normal(width).astype(np.float32)})


def _letters(text: str) -> List[int]:
    words = re.findall("[a-z]+|[.,?]", text.lower())
    return [WORDS.index(("##" if place else "") + letter) for word in words for place, letter in enumerate(word)]


def ids_of(text: str, side: str = "right", most: int = MOST_TOKENS) -> List[int]:
    """Returns the ids of a text, cut on this side."""
    letters = _letters(text)
    kept = letters[-(most - 2):] if side == "left" else letters[:most - 2]
    return [WORDS.index("[CLS]"), *kept, WORDS.index("[SEP]")]


def pair_ids(first: str, second: str, most: int = MOST_TOKENS) -> Tuple[List[int], List[int]]:
    """Returns the ids and the types of a pair; the longer text is cut first."""
    one, other = _letters(first), _letters(second)
    while len(one) + len(other) > most - 3:
        (one if len(one) > len(other) else other).pop()
    ids = [*[WORDS.index("[CLS]"), *one, WORDS.index("[SEP]")], *other, WORDS.index("[SEP]")]
    return ids, [0] * (len(one) + 2) + [1] * (len(other) + 1)


@contextlib.contextmanager
def run_letters(programs: pathlib.Path, scratch: pathlib.Path, *flags: object):
    """Runs a server of an `embedder`, a `classifier` of three classes and a `reranker`.

    `m3` has the heads of bge-m3. `bare` has a pooler and no modules.json; `pooler` and `last` are the same with an option. `prompted` leaves prompts out.
    `leftward` cuts texts on the left. `instructed` is the reranker with a default prompt.
    """
    folders = {name: scratch / name for name in ("embedder", "prompted", "classifier", "reranker", "m3", "bare", "leftward", "instructed")}
    for folder in folders.values():
        folder.mkdir()
    write_text_model(folders["embedder"], pooling="mean")
    write_text_model(folders["prompted"], pooling="mean")
    config = folders["prompted"] / "1_Pooling" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "include_prompt": False}))
    write_text_model(folders["classifier"], classes=3)
    write_text_model(folders["reranker"], classes=1)
    write_text_model(folders["instructed"], classes=1)
    (folders["instructed"] / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "ask "}, "default_prompt_name": "query"}))
    (folders["instructed"] / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]))
    write_text_model(folders["m3"])
    write_m3_heads(folders["m3"])
    write_text_model(folders["bare"])
    write_text_model(folders["leftward"], pooling="mean", truncation_side="left")
    options = {"pooler": f"{folders['bare']},pooling=pooler", "last": f"{folders['bare']},pooling=last_token"}
    with run_server(programs, {**folders, **options, "tiny": "synthetic:tiny"}, *flags) as running:
        yield running
