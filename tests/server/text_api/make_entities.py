#!/usr/bin/env python3
"""Writes entities.json: tokens and label logits of some texts, and the entities that transformers' pipeline finds.

    make_entities.py > entities.json     (needs PyPI's transformers, 5.23, and torch)

The tokenizer is made here, and the outputs of the model are random: what is compared is how the pipeline joins labels. Its
`word` is the tokenizer's text of ids, and is left out.
"""
import json

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast, TokenClassificationPipeline

TEXTS = ["Wolfgang lives in Berlin, near the Spree.", "Zoë Ångström 🎉 works at the UN", "日本 and München", "a", "", "unknowable words",
         "one two three four five six seven eight nine ten"]
LABELS = [["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], ["O", "PER", "LOC"], ["O", "B-MISC-X", "I-MISC-X", "MISC-X", "B-", "X"]]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def make_tokenizer():
    letters = sorted(set("".join(TEXTS).lower()) - {" ", "🎉"})
    words = SPECIAL + letters + ["##" + letter for letter in letters] + ["lives", "in", "wolf", "##gang", "ber", "##lin", "the", "and"]
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def make_pipeline(labels):
    config = BertConfig(vocab_size=200, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
                        id2label=dict(enumerate(labels)), label2id={label: index for index, label in enumerate(labels)})
    return TokenClassificationPipeline(model=BertForTokenClassification(config), tokenizer=make_tokenizer())


def logits_of(random, tokens, labels):
    """Neighbours often have the same label, or its other form."""
    logits = random.normal(0, 1.5, (tokens, labels)).astype(np.float32)
    label = 0
    for row in logits:
        if random.random() < 0.5:
            label = random.integers(labels)
        row[label] += 2.5
    return logits.round(1)


def plain(entities):
    return [{key: float(f"{value:.7g}") if key == "score" else value for key, value in entity.items() if key != "word"} for entity in entities]


def main():
    random, cases = np.random.default_rng(1), []
    for labels in LABELS:
        pipeline = make_pipeline(labels)
        for text in TEXTS:
            inputs = pipeline.tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, return_tensors="pt")
            logits = logits_of(random, inputs["input_ids"].shape[1], len(labels))
            output = {"logits": torch.tensor(logits)[None], "sentence": text, "is_last": True, **inputs}
            cases.append({
                "text": text, "labels": labels, "tokens": pipeline.tokenizer.convert_ids_to_tokens(inputs["input_ids"][0]),
                "places": inputs["offset_mapping"][0].tolist(), "special": inputs["special_tokens_mask"][0].tolist(),
                "logits": [[float(f"{number:.1f}") for number in row] for row in logits],
                "simple": plain(pipeline.postprocess([output], aggregation_strategy="simple")),
                "none": plain(pipeline.postprocess([output], aggregation_strategy="none"))})
    print("[" + ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases) + "]")


main()
