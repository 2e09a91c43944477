"""Tokenizers made by the library's own trainers, one for each combination of components that families of models use."""

import random
import re
import string

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)"
         r"|\s+")
QWEN = LLAMA.replace("{1,3}", "")
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + SPACES
UPPER, LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = f"{UPPER}*{LOWER}+{ENDS}|{UPPER}+{LOWER}*{ENDS}" + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES
TEKKEN = f"{UPPER}*{LOWER}+|{UPPER}+{LOWER}*" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES
# With the ends of lines as the published file has them.
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
             + SPACES).replace(r"\r\n", "\r\n")]
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def train(tokenizer, trainer, corpus):
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def wordpiece(corpus, normalizer, pre=None, size=3000):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre or pre_tokenizers.BertPreTokenizer()
    train(tokenizer, trainers.WordPieceTrainer(vocab_size=size, special_tokens=BERT_SPECIAL, show_progress=False), corpus)
    ids = {token: tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]")}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=list(ids.items()))
    return tokenizer


def bpe(corpus, normalizer=None, pre=None, special=(), size=3000, byte_alphabet=True, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    kept = {key: options[key] for key in ("end_of_word_suffix", "continuing_subword_prefix") if key in options}
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_alphabet else []
    special = list(special) + ([options["unk_token"]] if options.get("unk_token") and options["unk_token"] not in special else [])
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, initial_alphabet=alphabet, **kept)
    return train(tokenizer, trainer, corpus)


def unigram(corpus, normalizer=None, pre=None, special=ROBERTA_SPECIAL, size=2000, unk="<unk>"):
    tokenizer = Tokenizer(models.Unigram())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre or pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token=unk, show_progress=False)
    return train(tokenizer, trainer, corpus)


def template(tokenizer, single, pair, tokens):
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(token, tokenizer.token_to_id(token)) for token in tokens])
    return tokenizer


def roberta_ends(tokenizer, **options):
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")), **options)
    return tokenizer


def with_added(tokenizer):
    """Adds tokens with all flags."""
    tokenizer.add_tokens([AddedToken("<m>", lstrip=True, normalized=False), AddedToken("<n>", rstrip=True, normalized=True),
                          AddedToken("foo", single_word=True), AddedToken("Bar", normalized=True),
                          AddedToken("ab", normalized=False), AddedToken("abcd", normalized=False),
                          AddedToken("e\u0301", normalized=True), AddedToken("  ", rstrip=True, normalized=False)])
    tokenizer.add_special_tokens(["<special>"])
    return tokenizer


def byte_fallback_bpe(corpus):
    tokenizer = bpe(corpus, normalizers.Replace(" ", "\u2581"), pre_tokenizers.Split(" ", "merged_with_previous"),
                    ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))], byte_alphabet=False,
                    unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    return template(tokenizer, "<bos> $A", "<bos> $A <bos>:1 $B:1", ["<bos>"])


def made(corpus, charsmap=None):
    """Yields (name, tokenizer). `charsmap`: the JSON of a Precompiled normalizer, if there is one."""
    n, p = normalizers, pre_tokenizers
    bert = lambda **options: n.BertNormalizer(**options)
    yield "bert uncased", wordpiece(corpus, bert())
    yield "bert cased", wordpiece(corpus, bert(lowercase=False))
    yield "bert cased, accents stripped", wordpiece(corpus, bert(lowercase=False, strip_accents=True))
    yield "bert uncased, accents kept", wordpiece(corpus, bert(strip_accents=False))
    yield "bert without cleaning", wordpiece(corpus, bert(clean_text=False, handle_chinese_chars=False))
    yield "bert, added tokens", with_added(wordpiece(corpus, bert()))
    yield "wordpiece nfkc lowercase strip accents whitespace", wordpiece(
        corpus, n.Sequence([n.NFKD(), n.Lowercase(), n.StripAccents()]), p.Whitespace())
    yield "wordpiece nfc punctuation digits", wordpiece(
        corpus, n.NFC(), p.Sequence([p.WhitespaceSplit(), p.Punctuation("contiguous"), p.Digits(True)]))
    mpnet = wordpiece(corpus, bert())
    mpnet.add_special_tokens(["<s>", "</s>"])
    mpnet.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    yield "mpnet", roberta_ends(mpnet)
    yield "roberta", roberta_ends(bpe(corpus, pre=p.ByteLevel(add_prefix_space=False), special=ROBERTA_SPECIAL))
    prefixed = roberta_ends(bpe(corpus, pre=p.ByteLevel(add_prefix_space=True), special=ROBERTA_SPECIAL), add_prefix_space=True)
    prefixed.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    yield "roberta, prefix", prefixed
    yield "roberta, added tokens", with_added(
        roberta_ends(bpe(corpus, pre=p.ByteLevel(add_prefix_space=True), special=ROBERTA_SPECIAL), trim_offsets=True))
    yield "modernbert", template(bpe(corpus, n.NFC(), p.ByteLevel(add_prefix_space=False), BERT_SPECIAL),
                                 "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ["[CLS]", "[SEP]"])
    split = lambda pattern: p.Sequence([p.Split(Regex(pattern), "isolated"), p.ByteLevel(add_prefix_space=False, use_regex=False)])
    qwen = bpe(corpus, n.NFC(), split(QWEN), ["<|endoftext|>"])
    yield "qwen", template(qwen, "$A <|endoftext|>", "$A $B <|endoftext|>", ["<|endoftext|>"])
    llama = template(bpe(corpus, pre=split(LLAMA), special=["<|begin_of_text|>"], ignore_merges=True),
                     "<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", ["<|begin_of_text|>"])
    yield "llama 3", llama
    both = bpe(corpus, pre=split(LLAMA), special=["<|begin_of_text|>"], ignore_merges=True)
    both.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), llama.post_processor])
    yield "llama 3, trimmed", both
    for name, pattern in (("qwen 3.5", QWEN35), ("gpt-4o", O200K), ("tekken", TEKKEN)):
        yield name, bpe(corpus, pre=split(pattern), special=["<s>"])
    yield "deepseek v3", bpe(corpus, pre=p.Sequence([*(p.Split(Regex(pattern), "isolated") for pattern in DEEPSEEK),
                                                     p.ByteLevel(add_prefix_space=False, use_regex=False)]), special=["<s>"])
    gpt2 = bpe(corpus, pre=split(GPT2), special=["<|endoftext|>"])
    gpt2.post_processor = processors.ByteLevel(trim_offsets=True)
    yield "gpt2 by split", gpt2
    gpt2 = bpe(corpus, pre=p.Sequence([p.Digits(True), p.ByteLevel(add_prefix_space=True)]), special=["<|endoftext|>"])
    gpt2.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=True)
    yield "gpt2, digits, prefix", gpt2
    clip = bpe(corpus, n.Sequence([n.NFC(), n.Replace(Regex(r"\s+"), " "), n.Lowercase()]),
               p.Sequence([p.Split(Regex(CLIP), "removed", invert=True), p.ByteLevel(add_prefix_space=False)]),
               ["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>", unk_token="<|endoftext|>")
    clip.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), add_prefix_space=False, trim_offsets=False)
    yield "clip", clip
    yield "gemma", byte_fallback_bpe(corpus)
    yield "bpe of characters, unknown", bpe(corpus[:300], pre=p.Whitespace(), byte_alphabet=False, unk_token="<unk>")
    yield "bpe of characters, fused", bpe(corpus[:300], n.NFKC(), p.WhitespaceSplit(), byte_alphabet=False, unk_token="<unk>", fuse_unk=True)
    yield "bpe of characters, dropped", bpe(corpus[:300], n.NFD(), p.Metaspace(prepend_scheme="first"), byte_alphabet=False)
    yield "bpe with prefix", bpe(corpus[:300], pre=p.BertPreTokenizer(), byte_alphabet=False, unk_token="<unk>",
                                 continuing_subword_prefix="##")
    yield "byte-level normalizer", bpe(corpus, n.Sequence([n.NFC(), n.ByteLevel()]), None, ["<s>"], size=2000)
    spaces = n.Replace(Regex(" {2,}"), " ")
    yield "unigram", template(unigram(corpus), "<s> $A </s>", "<s> $A </s> </s> $B </s>", ["<s>", "</s>"])
    yield "unigram, first", unigram(corpus, n.Sequence([n.Nmt(), n.NFKC(), spaces]), p.Metaspace(prepend_scheme="first"))
    yield "unigram, first, added tokens", with_added(unigram(corpus, n.Nmt(), p.Metaspace(prepend_scheme="first")))
    yield "unigram, whitespace", unigram(corpus, spaces, p.Sequence([p.WhitespaceSplit(), p.Metaspace()]))
    yield "unigram, never split", unigram(corpus[:500], n.Prepend("\u2581"), p.Metaspace(prepend_scheme="never", split=False))
    yield "unigram, strip", template(unigram(corpus, n.Sequence([n.Strip(), spaces]), special=[*BERT_SPECIAL, "<unk>"]),
                                     "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ["[CLS]", "[SEP]"])
    marks = n.Replace(Regex(f"[{re.escape(string.punctuation)}]"), "")
    yield "siglip", template(unigram(corpus, n.Sequence([n.Lowercase(), marks, n.Replace(Regex(r"\s+"), " "), n.Strip()])),
                             "$A </s>", "$A </s> $B </s>", ["</s>"])
    yield "unigram bytes", byte_unigram(corpus)
    yield "wordlevel", wordlevel(corpus)
    for name, behavior in (("removed", "removed"), ("previous", "merged_with_previous"), ("next", "merged_with_next"),
                           ("contiguous", "contiguous")):
        pre = p.Sequence([p.Split("e", behavior), p.Punctuation(behavior), p.CharDelimiterSplit("x")])
        yield f"wordpiece split {name}", wordpiece(corpus, n.Replace("th", "é"), pre, 500)
    # Patterns that few files use, some to split and some to replace.
    for name, pattern in (("runs of whitespace", r"\s+"), ("runs of spaces", " {2,}"), ("lines", r"\s{2,}|[\n\r\t]"),
                          ("marks", r"[!\-.,]"), ("letters", r"\p{L}"), ("digits", r"\p{N}"), ("threes", r"\p{N}{1,3}"),
                          ("kana", DEEPSEEK[1]), ("words", GPT2)):
        yield f"split at {name}", wordpiece(corpus, bert(clean_text=False), p.Split(Regex(pattern), "merged_with_next"), 500)
        yield f"replaced {name}", wordpiece(corpus, n.Replace(Regex(pattern), "x"), p.WhitespaceSplit(), 500)
    if charsmap:
        yield from with_charsmap(corpus, charsmap)


def with_charsmap(corpus, charsmap):
    n, p = normalizers, pre_tokenizers
    spaces = n.Replace(Regex(" {2,}"), " ")
    yield "t5", template(unigram(corpus, n.Sequence([charsmap]), p.Sequence([p.WhitespaceSplit(), p.Metaspace()])),
                         "$A </s>", "$A </s> $B </s>", ["</s>"])
    yield "bge-m3", template(unigram(corpus, n.Sequence([charsmap, spaces])), "<s> $A </s>", "<s> $A </s> </s> $B </s>",
                             ["<s>", "</s>"])
    yield "deberta v3", template(
        unigram(corpus, n.Sequence([n.Strip(), charsmap, spaces]), special=[*BERT_SPECIAL, "<unk>"]), "[CLS] $A [SEP]",
        "[CLS] $A [SEP] $B:1 [SEP]:1", ["[CLS]", "[SEP]"])
    yield "xlm-r, added tokens", with_added(unigram(corpus, charsmap, p.Sequence([p.WhitespaceSplit(), p.Metaspace()])))


def byte_unigram(corpus):
    import json
    tokenizer = json.loads(unigram(corpus, normalizers.NFC()).to_str())
    model = tokenizer["model"]
    model["vocab"] += [[f"<0x{byte:02X}>", -20.0] for byte in range(256)]
    model["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(tokenizer))


def wordlevel(corpus):
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.FixedLength(3)
    train(tokenizer, trainers.WordLevelTrainer(vocab_size=3000, special_tokens=["[UNK]"], show_progress=False), corpus)
    return with_added(tokenizer)
