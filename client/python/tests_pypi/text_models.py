"""Folders of small random models with a tokenizer of letters."""
import dataclasses
import json
import pathlib
import string
from typing import List

import tokenizers
from bert import SMALL, write_checkpoint
from tokenizers import models, normalizers, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, *string.ascii_lowercase, *("##" + letter for letter in string.ascii_lowercase), ".", ",", "?"]
assert len(WORDS) == SMALL.vocabulary


def make_tokenizer() -> tokenizers.Tokenizer:
    """Returns a tokenizer that makes a token of each letter, as BERT's does of words."""
    made = tokenizers.Tokenizer(models.WordPiece({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", WORDS.index("[CLS]")), ("[SEP]", WORDS.index("[SEP]"))])
    made.add_special_tokens(SPECIAL)
    return made


def write_text_model(folder: pathlib.Path, classes: int = 0, pooling: str = "", most_tokens: int = 24) -> None:
    """Writes a model for texts of at most so many tokens, with a head of classes, or with sentence-transformers' pooling."""
    write_checkpoint(folder, dataclasses.replace(SMALL, classes=classes), pooling=pooling)
    make_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": most_tokens, "do_lower_case": True}))
    if pooling:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": most_tokens, "do_lower_case": False}))
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "ask "}}))


def ids_of(text: str, most_tokens: int = 24) -> List[int]:
    made = make_tokenizer()
    made.enable_truncation(most_tokens)
    return made.encode(text).ids
