"""Folders with settings that published models have, served for texts over HTTP: vectors and scores beside those of
sentence-transformers from the same folder."""
import io
import json
import pathlib
import sys
import tempfile
import urllib.error
import urllib.request

import numpy as np
import sentence_transformers
import sentencepiece
import torch
import transformers
from sentence_transformers.base.modules import Transformer
from sentence_transformers.cross_encoder.modules import LogitScore

import tokenizer_files
from library_families import FAMILIES
from random_models import make
from serving import serve_ports

TEXTS = ["plain words", "Upper CASE Ça École", "", "a <m> <n> text [SEP] of [CLS]", "中文text中 it's a-b",
         " ".join(f"word {letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
MODULES = [("Transformer", ""), ("Pooling", "1_Pooling")]
BOUND = 1e-4
RELATIVE = ("t5",)  # families without a table of positions


def sentence_folder(modules=(), pooling=None, settings=None, model=transformers.BertModel, **files):
    """A model, by default BERT, with modules or, with None, only a model. settings: tokenizer_config.json. files: others, by their
    names without an extension."""
    def write(folder: pathlib.Path) -> None:
        family = FAMILIES[model.config_class.model_type]
        make(family, {"model": model, "vocab_size": 400, "max_position_embeddings": 64}, folder)
        width = json.loads((folder / "config.json").read_text())["hidden_size"]
        if modules is not None:
            put(folder, "modules", [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
                                    for i, (name, path) in enumerate([*MODULES, *modules])])
            put(folder, "1_Pooling/config", {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True, **(pooling or {})})
        tokenizer_files.write(folder, ("bert", tokenizer_files.bert(True), {"tokenizer_class": "BertTokenizer", **(settings or {})}))
        for name, change in files.items():
            put(folder, name, {**read(folder, name), **change})
    return sentence_transformers.SentenceTransformer, write


def ranker(family="bert", settings=None, tokenizer=None, prompts=None, config_sentence_transformers=None, **config):
    """A cross-encoder of one class. prompts: those with which the library saves it; the first one is the default.
    config_sentence_transformers: that file, without a modules.json."""
    def write(folder: pathlib.Path) -> None:
        make(FAMILIES[family], {"model": FAMILIES[family].classifier, "num_labels": 1, "vocab_size": 400,
                                "max_position_embeddings": 64, **config}, folder)
        tokenizer_files.write(folder, (family, tokenizer or tokenizer_files.bert(True),
                                       {"tokenizer_class": "BertTokenizer", "model_max_length": 32, **(settings or {})}))
        if config_sentence_transformers is not None:
            put(folder, "config_sentence_transformers", config_sentence_transformers)
        if prompts is not None:
            sentence_transformers.CrossEncoder(str(folder), device="cpu", prompts=prompts, default_prompt_name=next(iter(prompts))).save(
                str(folder))
    return sentence_transformers.CrossEncoder, write


def logit_ranker(chat_template=None, **prompts):
    """A causal language model that ranks by the logits of two words, as the library saves it."""
    def write(folder: pathlib.Path) -> None:
        plain = folder.parent / f"{folder.name}-plain"
        make(FAMILIES["qwen3"], {"model": transformers.Qwen3ForCausalLM, "vocab_size": 400, "max_position_embeddings": 400}, plain)
        tokenizer_files.write(plain, ("qwen3", tokenizer_files.bert(True), {**PLAIN, "unk_token": "[UNK]", "model_max_length": 300}))
        if chat_template:
            (plain / "chat_template.jinja").write_text(chat_template)
        modules = [Transformer(str(plain), transformer_task="text-generation"), LogitScore(9, 12)]
        sentence_transformers.CrossEncoder(modules=modules, device="cpu", **prompts).save_pretrained(str(folder))
    return sentence_transformers.CrossEncoder, write


def tagger():
    """A model that classifies tokens, with unknown words whose token only the class of the tokenizer knows."""
    def write(folder: pathlib.Path) -> None:
        make(FAMILIES["bert"], {"model": transformers.BertForTokenClassification, "num_labels": 3, "vocab_size": 400}, folder)
        tokenizer_files.write(folder, ("bert", tokenizer_files.bert(True), {"tokenizer_class": "BertTokenizer", "model_max_length": 40}))
    return transformers.TokenClassificationPipeline, write


def pieces(name: str, file: str, settings=None, **options):
    """A model of a family, without modules, whose vocabulary is a SentencePiece model."""
    def write(folder: pathlib.Path) -> None:
        make(FAMILIES[name], {"vocab_size": 400, **({} if name in RELATIVE else {"max_position_embeddings": 64})}, folder)
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXTS * 9), model_writer=model, vocab_size=80, minloglevel=2,
                                                 hard_vocab_limit=False, **options)
        (folder / file).write_bytes(model.getvalue())
        put(folder, "tokenizer_config", {"model_max_length": 40, **(settings or {})})
    return sentence_transformers.SentenceTransformer, write


def words_that_end() -> dict:
    """A tokenizer that ends each text with its padding token, as Qwen3-Embedding's does."""
    made = tokenizer_files.bert(True)
    end = {"SpecialToken": {"id": "[PAD]", "type_id": 0}}
    texts = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    made["post_processor"] = {"type": "TemplateProcessing", "single": [texts[0], end], "pair": [*texts, end],
                              "special_tokens": {"[PAD]": {"id": "[PAD]", "ids": [0], "tokens": ["[PAD]"]}}}
    return made


LEFT = {"direction": "Left", "max_length": 9, "strategy": "LongestFirst", "stride": 0}
PLAIN = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
JUDGE = """{%- set text = namespace(query="", document="", instruct="Given a web search query, retrieve relevant passages that answer \
the query") -%}
{%- for message in messages -%}
{%- if message.role == "query" -%}{%- set text.query = message.content -%}
{%- elif message.role == "document" -%}{%- set text.document = message.content -%}
{%- else -%}{%- set text.instruct = message.content -%}{%- endif -%}
{%- endfor -%}
{{- "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the \
answer can only be \\"yes\\" or \\"no\\".<|im_end|>\n<|im_start|>user\n<Instruct>: " + text.instruct + "\n<Query>: " + text.query
    + "\n<Document>: " + text.document + "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n" -}}"""
# name -> (the class of the library, a function that writes the folder)
CASES = {
    "plain": sentence_folder(),
    "length": sentence_folder(settings={"model_max_length": 20}),
    "old-length": sentence_folder(settings={"max_len": 20}),
    "positions": sentence_folder(settings={**PLAIN, "model_max_length": 100}, model=transformers.Qwen3Model),
    "left": sentence_folder(settings={"model_max_length": 20, "truncation_side": "left"}),
    "left-of-tokenizer": sentence_folder(settings={"model_max_length": 20}, tokenizer={"truncation": LEFT}),
    "right-overrides": sentence_folder(settings={"model_max_length": 20, "truncation_side": "right"}, tokenizer={"truncation": LEFT}),
    "left-no-prompt": sentence_folder(pooling={"include_prompt": False}, settings={"model_max_length": 20, "truncation_side": "left"},
                                      config_sentence_transformers={"prompts": {"query": "a word "}, "default_prompt_name": "query"}),
    "named-tokens": sentence_folder(settings={"image_token": "<m>", "extra_special_tokens": {"other": "<n>"}}),
    "specific-tokens": sentence_folder(settings={"model_specific_special_tokens": {"other": "<n>"}}),
    "older-tokens": sentence_folder(added_tokens={"<n>": 300, "<m>": 299}),
    "special-map": sentence_folder(special_tokens_map={"additional_special_tokens": ["<n>", "<m>"]}),
    "special-map-and-decoder": sentence_folder(settings={"added_tokens_decoder": {}},
                                               special_tokens_map={"additional_special_tokens": ["<n>"]}),
    "dpr": sentence_folder(settings={"tokenizer_class": "DPRContextEncoderTokenizer", "do_lower_case": False}),
    "dropout": sentence_folder(modules=[("Dropout", "2_Dropout"), ("Normalize", "3_Normalize")], **{"2_Dropout/config": {"dropout": 0.2}}),
    "other-width": sentence_folder(pooling={"word_embedding_dimension": 768}),
    "only-a-model": sentence_folder(modules=None),
    "only-a-model-length": sentence_folder(modules=None, settings={"model_max_length": 20}),
    "only-a-model-sentence-config": sentence_folder(modules=None,
                                                    sentence_bert_config={"max_seq_length": 12, "do_lower_case": True}),
    "only-a-model-prompts": sentence_folder(modules=None, config_sentence_transformers={
        "prompts": {"query": "a word "}, "default_prompt_name": "query"}),
    "only-a-causal-model": sentence_folder(modules=None, settings=PLAIN, model=transformers.Qwen3ForCausalLM),
    "pieces-deberta": pieces("deberta-v2", "spm.model", pad_id=0, pad_piece="[PAD]", bos_id=1, bos_piece="[CLS]", eos_id=2,
                             eos_piece="[SEP]", unk_id=3, unk_piece="[UNK]"),
    "pieces-xlm-roberta": pieces("xlm-roberta", "sentencepiece.bpe.model"),
    "pieces-camembert": pieces("camembert", "sentencepiece.bpe.model"),
    "pieces-albert": pieces("albert", "spiece.model", pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]"],
                            user_defined_symbols=["[MASK]"]),
    "pieces-t5": pieces("t5", "spiece.model", {"tokenizer_class": "T5Tokenizer"}, pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
    "pairs": ranker(),
    "pairs-left": ranker(settings={"truncation_side": "left"}),
    "pairs-no-types": ranker(settings={"model_input_names": ["input_ids", "attention_mask"]}),
    "pairs-prompts": ranker(prompts={"query": "a word "}),
    "pairs-activation-without-modules": ranker(config_sentence_transformers={"activation_fn": "torch.nn.modules.linear.Identity"}),
    "pairs-plain-class": ranker(settings=PLAIN),
    "pairs-plain-class-types": ranker(settings={**PLAIN, "model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}),
    "logits-of-texts": logit_ranker(),
    "logits-of-texts-prompt": logit_ranker(prompts={"query": "a word "}, default_prompt_name="query"),
    "logits-of-messages": logit_ranker(JUDGE),
    "logits-of-messages-prompt": logit_ranker(JUDGE, prompts={"query": "a word"}, default_prompt_name="query"),
    "tags": tagger(),
    "causal-padding": ranker("qwen3", PLAIN, words_that_end(), pad_token_id=0),
    "causal-other-padding": ranker("qwen3", PLAIN, words_that_end(), pad_token_id=5),
}


def read(folder: pathlib.Path, name: str) -> dict:
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def put(folder: pathlib.Path, name: str, value) -> None:
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False))


def ask(port: str, path: str, body: dict):
    request = urllib.request.Request(f"http://localhost:{port}{path}", json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{path}: {error.read().decode()}") from error


def error_of_tags(port: str, name: str, folder: pathlib.Path) -> float:
    """The largest error of any score; infinity if anything else differs."""
    pipeline = transformers.pipeline("token-classification", str(folder), device="cpu")
    expected = [one for row in pipeline(TEXTS, ignore_labels=[]) for one in row]
    body = {"inputs": TEXTS, "aggregation_strategy": "none", "ignore_labels": []}
    made = [one for row in ask(port, f"/models/{name}/entities", body) for one in row]
    errors = [abs(one.pop("score") - float(other.pop("score"))) for one, other in zip(made, expected)]
    return max(errors) if made == expected else np.inf


def error_of(port: str, name: str, folder: pathlib.Path) -> float:
    """The largest error of any element. One text at a time: the library's padding on the left moves positions."""
    library, _ = CASES[name]
    if library is transformers.TokenClassificationPipeline:
        return error_of_tags(port, name, folder)
    model = library(str(folder), device="cpu")
    if library is sentence_transformers.SentenceTransformer:
        expected = model.encode(TEXTS, batch_size=1)
        made = ask(port, f"/models/{name}/embed", {"inputs": TEXTS, "normalize": False})
    else:
        expected = model.predict([(TEXTS[-1], text) for text in TEXTS], batch_size=1)
        ranked = ask(port, f"/models/{name}/rerank", {"query": TEXTS[-1], "texts": TEXTS})
        made = [one["score"] for one in sorted(ranked, key=lambda one: one["index"])]
    return float(np.abs(np.array(made) - expected).max())


def compare(program: str) -> dict:
    """Returns how many of the folders give the same vectors or scores."""
    figures = {"text_folders.passed": 0, "text_folders.failed": 0}
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory() as scratch:
        folders = {name: pathlib.Path(scratch) / name for name in CASES}
        for name, folder in folders.items():
            CASES[name][1](folder)
        with serve_ports(program, folders) as ports:
            for name, folder in folders.items():
                error = error_of(ports["http_port"], name, folder)
                passed = error <= BOUND
                figures["text_folders.passed" if passed else "text_folders.failed"] += 1
                if not passed:
                    print(f"{name}: other results than the library's, by up to {error:.3g}")
    return figures


if __name__ == "__main__":
    print(compare(sys.argv[1]))
