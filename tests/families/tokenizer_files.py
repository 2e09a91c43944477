"""What transformers makes of a folder's tokenizer.json by the class and the flags of tokenizer_config.json, compared with
what the server hands out.

    tokenizer_files.py FILE      writes the cases of tests/server/models/tokenizer_class_test.cc, with the library's values
"""
import base64
import json
import pathlib
import string
import sys
import tempfile

import grpc
import tokenizers
import transformers

LETTERS = string.ascii_letters + string.digits + "éÉ中文-'.,\"`"
TEXTS = ["plain words", "Upper CASE", "Ça École é", "E\u0301cole", "中文text中", " leading", "trailing ",
         "two  spaces\tand\nlines", "it's a-b, \"c\"", "``quoted''", "１２ ﬁ", "a\u00a0b"]
# A precompiled map of characters without entries.
CHARSMAP = base64.b64encode((1024).to_bytes(4, "little") + bytes(1024)).decode()


def word_pieces(special: list, template: dict, lowercase: bool) -> dict:
    words = [*special, *LETTERS, *("##" + letter for letter in LETTERS)]
    return {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                           "lowercase": lowercase},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": template,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {word: number for number, word in enumerate(words)}}}


def template(first: str, last: str, ids: tuple) -> dict:
    """Not quite the library's: the last token has the type of the first text."""
    def special(name: str) -> dict:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    single = [special(first), {"Sequence": {"id": "A", "type_id": 0}}, special(last)]
    tokens = {name: {"id": name, "ids": [number], "tokens": [name]} for name, number in zip((first, last), ids)}
    return {"type": "TemplateProcessing", "single": single, "special_tokens": tokens,
            "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}, special(last)]}


BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def bert(lowercase: bool) -> dict:
    return word_pieces(BERT_TOKENS, template("[CLS]", "[SEP]", (2, 3)), lowercase)


def mpnet(lowercase: bool) -> dict:
    ends = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": False}
    return word_pieces(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"], ends, lowercase)


def roberta(prefix: bool) -> dict:
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = [*ROBERTA_TOKENS, *alphabet, "Ġw", "Ġl", "wo", "le"]
    return {"normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True},
            "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True,
                               "add_prefix_space": prefix},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                      "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                      "vocab": {word: number for number, word in enumerate(words)},
                      "merges": ["Ġ w", "Ġ l", "w o", "l e"]}}


def unigram(special: list, unknown: int, ends: dict, **parts) -> dict:
    pieces = [[word, 0.0] for word in special]
    pieces += [["▁", -2.0]] + [[letter, -4.0] for letter in LETTERS if letter not in special]
    pieces += [["▁" + letter, -3.0] for letter in "abclwtuUE"]
    return {"normalizer": None,
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "post_processor": ends,
            "model": {"type": "Unigram", "unk_id": unknown, "byte_fallback": False, "vocab": pieces}, **parts}


def xlm_roberta() -> dict:
    """As bge-m3's file, which makes a token of a space at the end."""
    return unigram(ROBERTA_TOKENS, 3, template("<s>", "</s>", (0, 2)), normalizer={"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": CHARSMAP},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]})


def spm_bert(unknown: int, special: list) -> dict:
    places = special.index("[CLS]"), special.index("[SEP]")
    return unigram(special, unknown, template("[CLS]", "[SEP]", places))


def t5() -> dict:
    single = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    ends = {"type": "TemplateProcessing", "single": single, "pair": [],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}}
    ends["pair"] = [*single, {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    return unigram(["<pad>", "</s>", "<unk>"], 2, ends)


def named(name: str, **flags) -> dict:
    return {"tokenizer_class": name, **flags}


BIG_BIRD = ["<pad>", "</s>", "<s>", "<unk>", "[SEP]", "[MASK]", "[CLS]"]
# name -> (the family's model_type, tokenizer.json, tokenizer_config.json or None)
CASES = {
    "bert-lower": ("bert", bert(False), named("BertTokenizer", do_lower_case=True)),
    "bert-cased": ("bert", bert(True), named("BertTokenizerFast", do_lower_case=False)),
    "bert-no-flags": ("bert", bert(False), named("BertTokenizer")),
    "bert-no-config": ("bert", bert(False), None),
    "bert-keeps-accents": ("bert", bert(True), named("BertTokenizer", strip_accents=False)),
    "bert-cased-without-accents": ("bert", bert(False), named("BertTokenizer", do_lower_case=False, strip_accents=True)),
    "bert-chinese": ("bert", bert(True), named("BertTokenizer", tokenize_chinese_chars=False)),
    "bert-as-it-is": ("bert", bert(False), named("PreTrainedTokenizerFast", do_lower_case=True)),
    "electra-lower": ("electra", bert(False), named("ElectraTokenizer", do_lower_case=True)),
    "distilbert-cased": ("distilbert", bert(True), named("DistilBertTokenizer", do_lower_case=False)),
    "mpnet-lower": ("mpnet", mpnet(False), named("MPNetTokenizer", do_lower_case=True)),
    "modernbert-as-it-is": ("modernbert", bert(False), named("BertTokenizer", do_lower_case=True)),
    "roberta-prefix": ("roberta", roberta(False), named("RobertaTokenizer", add_prefix_space=True)),
    "roberta-no-flags": ("roberta", roberta(True), named("RobertaTokenizerFast")),
    "xlm-roberta": ("xlm-roberta", xlm_roberta(), named("XLMRobertaTokenizer")),
    "xlm-roberta-no-prefix": ("xlm-roberta", xlm_roberta(), named("XLMRobertaTokenizerFast", add_prefix_space=False)),
    "nomic-v2-moe": ("nomic_bert", xlm_roberta(), named("XLMRobertaTokenizer")),
    "camembert": ("camembert", unigram(ROBERTA_TOKENS, 3, template("<s>", "</s>", (0, 2))),
                  named("CamembertTokenizer", additional_special_tokens=[])),
    "t5": ("t5", t5(), named("T5TokenizerFast", extra_ids=0)),
    "albert-lower": ("albert", spm_bert(1, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]), named("AlbertTokenizer")),
    "albert-cased": ("albert", spm_bert(1, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]),
                     named("AlbertTokenizer", do_lower_case=False, keep_accents=True)),
    "deberta": ("deberta-v2", spm_bert(1, BERT_TOKENS), named("DebertaV2Tokenizer", split_by_punct=True)),
    "deberta-lower": ("deberta-v2", spm_bert(1, BERT_TOKENS),
                      named("DebertaV2TokenizerFast", do_lower_case=True, add_prefix_space=False)),
    "big-bird": ("big_bird", spm_bert(3, BIG_BIRD), named("BigBirdTokenizer")),
    "rembert": ("rembert", spm_bert(2, ["<pad>", "[UNK]", "<unk>", "[CLS]", "[SEP]", "[MASK]"]),
                named("RemBertTokenizer", keep_accents=False)),
}


def whole(parts: dict) -> dict:
    vocabulary = parts["model"]["vocab"]
    names = list(vocabulary) if isinstance(vocabulary, dict) else [piece for piece, _ in vocabulary]
    added = [{"id": number, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for number, name in enumerate(names) if len(name) > 2 and name[0] in "[<"]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, **parts}


def write(folder: pathlib.Path, case: tuple) -> None:
    """Writes the tokenizer beside the model's config.json, which is there or only names the family."""
    family, parts, config = case
    if not (folder / "config.json").exists():
        (folder / "config.json").write_text(json.dumps({"model_type": family}))
    (folder / "tokenizer.json").write_text(json.dumps(whole(parts), ensure_ascii=False))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))


def library_parts(folder: pathlib.Path) -> dict:
    made = json.loads(transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer.to_str())
    return {name: made[name] for name in ("normalizer", "pre_tokenizer", "post_processor")}


def write_cases(path: pathlib.Path) -> None:
    lines = []
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as scratch:
            write(pathlib.Path(scratch), case)
            found = library_parts(pathlib.Path(scratch))
        file = whole(case[1])
        file["model"] = {**file["model"], "vocab": {}, "merges": []}
        lines.append(json.dumps({"name": name, "model_type": case[0], "config": case[2], "tokenizer": file, **found}))
    path.write_text("[" + ",\n ".join(lines) + "]\n")


def fetch(port: int, name: str) -> tokenizers.Tokenizer:
    from attendant.v1 import encoder_service_pb2 as pb
    with grpc.insecure_channel(f"localhost:{port}") as channel:
        call = channel.unary_unary("/attendant.v1.EncoderService/GetTokenizer",
                                   request_serializer=pb.GetTokenizerRequest.SerializeToString,
                                   response_deserializer=pb.GetTokenizerResponse.FromString)
        return tokenizers.Tokenizer.from_str(call(pb.GetTokenizerRequest(model=name)).tokenizer_json.decode())


def differs(own: tokenizers.Tokenizer, library: transformers.PreTrainedTokenizerBase, text: str) -> bool:
    """Whether it has other ids, alone or as the second text of two, or other types of tokens."""
    pair, expected = own.encode("a pair", text), library("a pair", text, return_token_type_ids=True)
    return (own.encode(text).ids != library(text)["input_ids"] or pair.ids != expected["input_ids"]
            or pair.type_ids != expected["token_type_ids"])


def compare(program: str) -> dict:
    """Returns how many of the folders give the same ids for every text."""
    from library_families import FAMILIES
    from random_models import make
    from serving import serve
    figures = {"tokenizer_files.passed": 0, "tokenizer_files.failed": 0}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {name: pathlib.Path(scratch) / name for name in CASES}
        for name, folder in folders.items():
            make(FAMILIES[CASES[name][0]], {"vocab_size": 400}, folder)
            write(folder, CASES[name])
        with serve(program, folders) as port:
            for name, folder in folders.items():
                own, library = fetch(port, name), transformers.AutoTokenizer.from_pretrained(folder)
                wrong = [text for text in TEXTS if differs(own, library, text)]
                figures["tokenizer_files.failed" if wrong else "tokenizer_files.passed"] += 1
                if wrong:
                    print(f"{name}: other ids for {wrong}")
    return figures


if __name__ == "__main__":
    write_cases(pathlib.Path(sys.argv[1]))
