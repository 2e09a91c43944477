"""Folders with a SentencePiece model and no tokenizer.json, for the classes of transformers that read one."""

import io

import sentencepiece

NLLB = ["eng_Latn", "fra_Latn"]


def train(corpus, kind, size=1500, **options):
    """Returns a trained model's bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=model, model_type=kind, vocab_size=size,
                                             minloglevel=2, hard_vocab_limit=False, **options)
    return model.getvalue()


# Models as the families' authors trained them, and with options that transformers ignores.
MODELS = {
    "fairseq": ("unigram", {}),
    "fairseq bpe": ("bpe", {}),
    "characters": ("char", {}),
    "words": ("word", {}),
    "t5": ("unigram", {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}),
    "t5 sentinels": ("unigram", {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1,
                                 "user_defined_symbols": [f"▁<extra_id_{i}>" for i in range(4)]}),
    "albert": ("unigram", {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]"],
                           "user_defined_symbols": ["[MASK]", "(", ")", "–", "£"], "normalization_rule_name": "nmt_nfkc_cf"}),
    "deberta": ("unigram", {"pad_id": 0, "pad_piece": "[PAD]", "bos_id": 1, "bos_piece": "[CLS]", "eos_id": 2, "eos_piece": "[SEP]",
                            "unk_id": 3, "unk_piece": "[UNK]", "remove_extra_whitespaces": False, "byte_fallback": True}),
    "no prefix": ("unigram", {"add_dummy_prefix": False, "remove_extra_whitespaces": False,
                              "user_defined_symbols": ["<m>", "Foo", "e a"]}),
    "identity": ("unigram", {"normalization_rule_name": "identity", "split_by_whitespace": False}),
    "llama": ("bpe", {"normalization_rule_name": "identity", "byte_fallback": True, "split_digits": True,
                      "allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False}),
    "gemma": ("bpe", {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "bos_piece": "<bos>", "eos_piece": "<eos>",
                      "normalization_rule_name": "identity", "byte_fallback": True, "add_dummy_prefix": False,
                      "user_defined_symbols": ["<mask>", "\n", "\n\n", "▁▁", "▁▁▁"], "remove_extra_whitespaces": False}),
}

DECODER = {"5000": {"content": "<m>", "lstrip": True, "normalized": False, "rstrip": False, "single_word": False, "special": True},
           "5001": {"content": "Foo", "lstrip": False, "normalized": True, "rstrip": False, "single_word": False, "special": False}}
# Settings for all classes. Those under "files" are of older tools, in files of their own.
ALL = [{"added_tokens_decoder": DECODER}, {"additional_special_tokens": ["<n>", "bar"]}, {"extra_special_tokens": ["<n>", "Foo"]},
       {"extra_special_tokens": {"image_token": "<m>"}}, {"additional_special_tokens": None}, {"unk_token": "foo"},
       {"mask_token": "bar"}, {"mask_token": {"content": "bar", "lstrip": False, "rstrip": True, "normalized": False,
                                              "single_word": True, "__type": "AddedToken"}},
       {"files": {"added_tokens": {"<m>": 6001, "Foo": 6000}, "special_tokens_map": {"mask_token": "Foo", "pad_token": "bar"}}},
       {"files": {"special_tokens_map": {"additional_special_tokens": ["<n>", "bar"]}}},
       {"add_bos_token": True}, {"add_bos_token": False, "add_eos_token": True}]
# (class, the name of its model, models, settings)
CLASSES = [
    ("XLMRobertaTokenizer", "sentencepiece.bpe.model", ["fairseq", "fairseq bpe", "characters", "words", "no prefix"],
     [{}, {"add_prefix_space": False}, {"bos_token": "<t>", "eos_token": "bar"}]),
    ("CamembertTokenizer", "sentencepiece.bpe.model", ["fairseq", "no prefix", "identity"],
     [{}, {"add_prefix_space": False}, {"additional_special_tokens": ["<s>NOTUSED", "</s>NOTUSED"]}]),
    ("AlbertTokenizer", "spiece.model", ["albert"], [{}, {"do_lower_case": False}, {"keep_accents": True}]),
    ("AlbertTokenizer", "spiece.model", ["fairseq"], [{"cls_token": "<s>", "sep_token": "</s>"}]),
    ("RemBertTokenizer", "sentencepiece.model", ["albert", "t5"],
     [{}, {"do_lower_case": True}, {"keep_accents": False}, {"add_prefix_space": False}]),
    ("BigBirdTokenizer", "spiece.model", ["albert", "no prefix", "identity"], [{}, {"add_prefix_space": False}]),
    ("T5Tokenizer", "spiece.model", ["t5"],
     [{}, {"extra_ids": 0}, {"extra_ids": 4}, {"additional_special_tokens": ["<extra_id_0>"]}]),
    ("T5Tokenizer", "spiece.model", ["t5 sentinels"], [{"extra_ids": 4}, {"extra_ids": 0}]),
    ("PegasusTokenizer", "spiece.model", ["t5"],
     [{}, {"offset": 5}, {"mask_token": "<mask_1>", "mask_token_sent": "<mask_2>"},
           {"mask_token": None, "mask_token_sent": None}, {"additional_special_tokens": ["<mask_1>"]}]),
    ("MBartTokenizer", "sentencepiece.bpe.model", ["fairseq", "no prefix"], [{}, {"src_lang": "ro_RO", "tgt_lang": "en_XX"}]),
    ("MBart50Tokenizer", "sentencepiece.bpe.model", ["fairseq", "no prefix"], [{}, {"src_lang": "sl_SI"}]),
    ("NllbTokenizer", "sentencepiece.bpe.model", ["fairseq bpe"],
     [{"additional_special_tokens": NLLB}, {"extra_special_tokens": NLLB, "src_lang": "fra_Latn", "legacy_behaviour": True}]),
    ("DebertaV2Tokenizer", "spm.model", ["deberta", "albert", "fairseq"],
     [{}, {"do_lower_case": True}, {"split_by_punct": True}, {"add_prefix_space": False}, {"vocab_type": "spm"}]),
    ("LlamaTokenizer", "tokenizer.model", ["llama", "gemma", "fairseq"], [{}, {"legacy": True}, {"add_prefix_space": False}]),
    ("GemmaTokenizer", "tokenizer.model", ["gemma", "llama"], [{}]),
    # Every class reads a file of this name.
    ("DebertaV2Tokenizer", "tokenizer.model", ["deberta"], [{}]),
]


def settings_of(name, variants, is_first):
    """Yields the settings of a class: all of them for its first model."""
    yield from variants
    for more in ALL if is_first else []:
        if name in ("PegasusTokenizer", "GemmaTokenizer") and "unk_token" in more:
            continue  # the server refuses one that is not in the vocabulary
        if name == "NllbTokenizer":  # the class needs languages, which an object or null would replace
            if any(key.endswith("special_tokens") and not isinstance(value, list) for key, value in more.items()):
                continue
            more = {key: [*NLLB, *value] if isinstance(value, list) else value for key, value in more.items()}
        yield {**variants[0], **more}


def folders(corpus):
    """Yields (class, the names and contents of files, settings, the name of the model)."""
    trained = {name: train(corpus, kind, **options) for name, (kind, options) in MODELS.items()}
    seen = set()
    for name, file, models, variants in CLASSES:
        for model in models:
            for settings in settings_of(name, variants, name not in seen):
                yield name, {file: trained[model]}, settings, model
            seen.add(name)
