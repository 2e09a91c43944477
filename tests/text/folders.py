"""Folders whose settings beside tokenizer.json change it, or that have none, against PyPI's transformers: ids of texts and of pairs."""

import functools
import json
import logging
import pathlib
import tempfile

import program as programs
import sentence_pieces
import strings
import tokenizers_made
from tokenizers import normalizers, pre_tokenizers


def sources(corpus, charsmap):
    """Yields (tokenizer, class, [settings])."""
    n, p = normalizers, pre_tokenizers
    bert = tokenizers_made.wordpiece(corpus, n.BertNormalizer(lowercase=False))
    yield bert, "BertTokenizer", [{}, {"do_lower_case": False}, {"do_lower_case": False, "strip_accents": True},
                                  {"strip_accents": False}, {"tokenize_chinese_chars": False}, {"cls_token": "[MASK]"}]
    yield bert, "DistilBertTokenizer", [{}, {"do_lower_case": False}]
    yield bert, "PreTrainedTokenizerFast", [{}, {"do_lower_case": True}]
    mpnet = tokenizers_made.wordpiece(corpus, n.BertNormalizer())
    mpnet.add_special_tokens(["<s>", "</s>", "<pad>", "<mask>"])
    tokenizers_made.roberta_ends(mpnet, add_prefix_space=False)
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "[UNK]", "pad_token": "<pad>", "mask_token": "<mask>",
             "cls_token": "<s>", "sep_token": "</s>"}
    yield mpnet, "MPNetTokenizer", [names, {**names, "do_lower_case": False}]
    roberta = tokenizers_made.roberta_ends(tokenizers_made.bpe(
        corpus, pre=p.ByteLevel(add_prefix_space=False), special=tokenizers_made.ROBERTA_SPECIAL), add_prefix_space=False)
    yield roberta, "RobertaTokenizer", [{}, {"add_prefix_space": True}]
    yield roberta, "GPT2Tokenizer", [{}, {"add_prefix_space": True, "unk_token": "<unk>"}]
    # transformers' class takes the fourth piece for the unknown one.
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    xlm_r = tokenizers_made.template(
        tokenizers_made.unigram(corpus, n.Sequence([charsmap, n.Replace(tokenizers_made.Regex(" {2,}"), " ")]), special=special),
        "<s> $A </s>", "<s> $A </s> </s> $B </s>", ["<s>", "</s>"])
    yield xlm_r, "XLMRobertaTokenizer", [{}, {"add_prefix_space": False}]
    yield xlm_r, "BarthezTokenizer", [{}, {"add_prefix_space": False}]
    t5 = tokenizers_made.template(
        tokenizers_made.unigram(corpus, charsmap, special=["<pad>", "</s>", "<unk>"]), "$A </s>", "$A </s> $B </s>", ["</s>"])
    yield t5, "T5Tokenizer", [{"extra_ids": 0}, {}, {"additional_special_tokens": ["<n>"]}, {"eos_token": "<n>"}]
    deberta = tokenizers_made.template(
        tokenizers_made.unigram(corpus, n.Sequence([n.Strip(), charsmap]), special=tokenizers_made.BERT_SPECIAL, unk="[UNK]"),
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ["[CLS]", "[SEP]"])
    yield deberta, "DebertaV2Tokenizer", [{}, {"do_lower_case": True}, {"split_by_punct": True}, {"unk_token": "<a>", "unk_id": 2}]
    rembert = tokenizers_made.unigram(corpus, charsmap, special=["[PAD]", "<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    yield rembert, "RemBertTokenizer", [{}, {"do_lower_case": True}, {"keep_accents": False}, {"add_prefix_space": False}]
    yield from of_translators(corpus, charsmap)
    yield from of_bytes(corpus)


def of_translators(corpus, charsmap):
    made = tokenizers_made
    pegasus = made.unigram(corpus, charsmap, special=["<pad>", "</s>", "<mask_1>", "<mask_2>", "<unk_2>", "<unk>"])
    yield pegasus, "PegasusTokenizer", [{"offset": 5}, {}]
    fairseq, languages = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], ["en_XX", "ro_RO", "eng_Latn", "fra_Latn"]
    mbart = made.unigram(corpus, charsmap, special=fairseq + languages)
    yield mbart, "MBartTokenizer", [{}, {"src_lang": "ro_RO"}]
    yield mbart, "MBart50Tokenizer", [{}, {"src_lang": "ro_RO"}]
    nllb = made.bpe(corpus, charsmap, pre_tokenizers.Metaspace(), [*fairseq, *languages], byte_alphabet=False, unk_token="<unk>",
                    fuse_unk=True)
    listed = {"additional_special_tokens": languages}
    yield nllb, "NllbTokenizer", [listed, {**listed, "src_lang": "fra_Latn"}, {**listed, "legacy_behaviour": True}]


def of_bytes(corpus):
    n, p = normalizers, pre_tokenizers
    made = tokenizers_made
    ends = [{}, {"add_bos_token": False}, {"add_bos_token": True}, {"add_eos_token": True, "add_bos_token": True}]
    split = p.Sequence([p.Split(made.Regex(made.LLAMA), "isolated"), p.ByteLevel(add_prefix_space=False, use_regex=False)])
    names = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
    llama = made.template(made.bpe(corpus, pre=split, special=list(names.values()), ignore_merges=True),
                          "<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", ["<|begin_of_text|>"])
    yield llama, "PreTrainedTokenizerFast", [{**names, **end} for end in ends]
    yield llama, "LlamaTokenizerFast", [names]
    yield llama, "Qwen2Tokenizer", [{}, {**names, "add_eos_token": True}, {"add_prefix_space": True}]
    yield made.byte_fallback_bpe(corpus), "GemmaTokenizer", [*ends, {"eos_token": "<unk>", "add_eos_token": True}]
    metaspace = made.bpe(corpus, pre=p.Metaspace(prepend_scheme="first", split=False), byte_alphabet=False, unk_token="<unk>",
                         special=["<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))], fuse_unk=True, byte_fallback=True)
    made.template(metaspace, "<s> $A", "<s> $A <s>:1 $B:1", ["<s>"])
    yield metaspace, "LlamaTokenizer", [*ends, {"legacy": True}, {"add_prefix_space": False}]
    clip = made.bpe(corpus, n.NFC(), p.Sequence([p.Split(made.Regex(made.CLIP), "removed", invert=True), p.ByteLevel(False)]),
                    ["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>", unk_token="<|endoftext|>")
    yield clip, "CLIPTokenizer", [{}, {"eos_token": "<|startoftext|>"}]
    herbert = made.bpe(corpus[:600], n.BertNormalizer(lowercase=False, strip_accents=False), p.BertPreTokenizer(),
                       made.ROBERTA_SPECIAL, byte_alphabet=False, end_of_word_suffix="</w>", unk_token="<unk>")
    yield herbert, "HerbertTokenizer", [{}, {"sep_token": "<pad>"}]


# Tokens that stand in added_tokens_decoder alone, and special tokens that stand nowhere else.
MORE = [{"untyped": True}, {"padding": "foo"}, {"padding": "foo", "pad_token": "bar"}, {"more": ["<m>", "Foo"]},
        {"more": ["<m>"], "additional_special_tokens": ["<n>", "bar"]}, {"less": True, "mask_token": "foo"},
        {"decoder": False, "additional_special_tokens": ["<n>", "bar"], "pad_token": "abc"},
        {"image_token": "<m>", "extra_special_tokens": {"other": "bar"}},
        {"decoder": False, "files": {"added_tokens": {"<m>": 6001, "Foo": 6000, "<n>": 6002}}, "pad_token": "<n>"},
        {"decoder": False, "files": {"special_tokens_map": {"additional_special_tokens": ["<n>", "bar"], "mask_token": "foo"}}}]


# The vocabulary in the files that older tools leave, for the classes that have them.
OLD = [{"old": True}, {"old": True, "decoder": False}, {"old": True, "more": ["<m>", "Foo"]}]
OLD_CLASSES = ("BertTokenizer", "DistilBertTokenizer", "MPNetTokenizer", "RobertaTokenizer", "GPT2Tokenizer", "Qwen2Tokenizer",
               "CLIPTokenizer", "HerbertTokenizer")


def write_vocabulary(folder, tokenizer):
    """Writes vocab.txt, or vocab.json and merges.txt."""
    model = json.loads(tokenizer.to_str())["model"]
    if model["type"] == "WordPiece":
        words = {number: word for word, number in tokenizer.get_vocab().items()}
        (folder / "vocab.txt").write_text("".join(words[number] + "\n" for number in sorted(words)))
        return
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(merge + "\n" for merge in merges))


def write(folder, tokenizer, name, settings):
    settings = dict(settings)
    added = {str(index): {"content": token.content, "single_word": token.single_word, "lstrip": token.lstrip,
                          "rstrip": token.rstrip, "normalized": token.normalized, "special": token.special}
             for index, token in tokenizer.get_added_tokens_decoder().items()}
    for content in settings.pop("more", []):
        flags = {"single_word": False, "lstrip": True, "rstrip": False, "normalized": content == "Foo", "special": content != "Foo"}
        added[str(5000 + len(added))] = {"content": content, **flags}
    if settings.pop("less", False):
        added.pop(min(added))
    if settings.pop("decoder", True):
        settings["added_tokens_decoder"] = added
    if settings.pop("old", False):
        write_vocabulary(folder, tokenizer)
    else:
        file = json.loads(tokenizer.to_str())
        if settings.pop("untyped", False):  # as tokenizers before 0.10 wrote it
            del file["model"]["type"]
        if (token := settings.pop("padding", None)) is not None:
            file["padding"] = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                               "pad_type_id": 0, "pad_token": token}
        (folder / "tokenizer.json").write_text(json.dumps(file))
    write_settings(folder, name, settings)


def write_settings(folder, name, settings):
    settings = dict(settings)
    for file, value in settings.pop("files", {}).items():  # of older tools, beside the others
        (folder / f"{file}.json").write_text(json.dumps(value))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **settings}))


def all_folders(corpus, charsmap):
    """Yields the contents of each folder, a function that writes it, and the divisor of the number of texts to compare."""
    for tokenizer, name, variants in sources(corpus, charsmap):
        more = [{**variants[0], **settings} for settings in MORE + (OLD if name in OLD_CLASSES else [])]
        for settings in variants + more:
            yield f"{name} {json.dumps(settings)}", lambda folder: write(folder, tokenizer, name, settings), 1
    for name, files, settings, model in sentence_pieces.folders(corpus):
        def write_pieces(folder):
            for file, content in files.items():
                (folder / file).write_bytes(content)
            write_settings(folder, name, settings)
        yield f"{name} of {model} {json.dumps(settings)}", write_pieces, 4


def differences(program, folder, texts):
    """Yields (texts, the wanted ids, the ids found or None)."""
    import transformers
    peer = transformers.AutoTokenizer.from_pretrained(folder)
    # To transformers, an empty second text is none.
    pairs = [[a, b] for a, b in zip(texts[:200], texts[len(texts) // 2:]) if b]
    requests = [[text] for text in texts] + pairs
    for request, rows in zip(requests, programs.encode(program, folder, requests)):
        wanted = peer(*request)["input_ids"]
        if rows is None or rows[:, 0].tolist() != wanted:
            yield request, wanted, None if rows is None else rows[:, 0].tolist()


def compare_one(program, texts, name, folder, share):
    """Returns the lines to show and the number of texts whose ids differ."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        own = list(differences(program, folder, texts[:len(texts) // share]))
    except programs.Refused as reason:
        own = [(text, "ids", str(reason)) for text in texts]
    shown = [f"  {name}: {request!r}\n    expected {wanted}\n    got      {found}"[:600] for request, wanted, found in own[:2]]
    return [*shown, f"{name:72} {len(own):6} mismatches"], len(own)


def compare(program, texts, charsmap, workers):
    """Returns the numbers of folders and of texts whose ids differ."""
    jobs, mismatches = [], 0
    with tempfile.TemporaryDirectory() as root:
        for name, write_files, share in all_folders(strings.corpus(), charsmap):
            place = pathlib.Path(root) / str(len(jobs))
            place.mkdir()
            write_files(place)
            jobs.append((name, place, share))
        for lines, own in workers.map(functools.partial(compare_one, program, texts), *zip(*jobs)):
            print(*lines, sep="\n", flush=True)
            mismatches += own
    return len(jobs), mismatches
