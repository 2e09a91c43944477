"""Small folders with modules of sentence-transformers, and what the library makes of them.

    python3 sentence_folders.py      writes sentence_values.json; needs PyPI's sentence-transformers 6.2
"""
import dataclasses
import json
import pathlib
import string
import tempfile

import numpy as np
from bert import SMALL, write_checkpoint, write_safetensors

VALUES = pathlib.Path(__file__).with_name("sentence_values.json")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, *string.ascii_lowercase, *("##" + letter for letter in string.ascii_lowercase), ".", ",", "?"]
# [CLS], letters, a full stop or a comma, [SEP].
SEQUENCES = [[2, 8, 5, 57, 9, 3], [2, 20, 58, 58, 3], [2, 30, 12, 11, 7, 22, 57, 6, 3]]
PROMPT_TOKENS = 2
ROOT = "sentence_transformers."
TRANSFORMER, POOLING = ROOT + "base.modules.transformer.Transformer", ROOT + "sentence_transformer.modules.pooling.Pooling"
DENSE, NORMALIZE = ROOT + "base.modules.dense.Dense", ROOT + "base.modules.normalize.Normalize"
PYLATE_DENSE = "pylate.models.Dense.Dense"
MASK = ROOT + "multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask"
OF_TOKENS = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}


def pooling(*modes, **keys):
    return POOLING, {"embedding_dimension": SMALL.width, "pooling_mode": list(modes), **keys}


def dense(inputs, outputs, activation="linear.Identity", **keys):
    return DENSE, {"in_features": inputs, "out_features": outputs, "bias": True, "activation_function": f"torch.nn.modules.{activation}",
                   **keys}


def multi_vector(**mask):
    return [dense(SMALL.width, 8, **OF_TOKENS), (MASK, mask), (NORMALIZE, OF_TOKENS)]


# The modules behind the transformer, with their config.json. None: no modules.json.
KINDS = {
    "plain": None,
    "no-prompt": [pooling("mean", include_prompt=False), (NORMALIZE, {})],
    "no-prompt-others": [pooling("cls", "max", "weightedmean", "lasttoken", include_prompt=False)],
    "two-dense": [pooling("mean"), dense(SMALL.width, 32, "activation.Tanh"), dense(32, SMALL.width),
                  (NORMALIZE, {"module_input_name": "sentence_embedding"})],
    "multi-vector": multi_vector(skiplist_words=[".", ",", "no token"]),
    "multi-vector-keeps": multi_vector(skiplist_words=["."], skiplist_tasks=["query"], keep_only_token_ids=[5, 57, 58, 30]),
}


# As PyLate writes it. The first words of its prefixes are tokens of the vocabulary, which the model was trained with.
PYLATE = {"model_type": "ColBERT", "prompts": {"query": "b ", "other": "c "}, "default_prompt_name": None, "similarity_fn_name": "MaxSim",
          "query_prefix": "##q ", "document_prefix": "##d ", "query_length": 5, "document_length": 12,
          "attend_to_expansion_tokens": False, "skiplist_words": [".", "?"], "do_query_expansion": False}
SENTENCE_CONFIGS = {
    "multi-pylate": PYLATE,
    "multi-pylate-punctuation": {**PYLATE, "skiplist_words": None},
    # Before version 5 of sentence-transformers.
    "multi-pylate-old": {name: value for name, value in PYLATE.items() if name not in ("model_type", "skiplist_words")},
}
KINDS.update({kind: [(PYLATE_DENSE, dense(SMALL.width, 8, use_residual=False)[1])] for kind in SENTENCE_CONFIGS})
TEXTS = {"query": "a", "document": "a. b?c d, e f g h i j k l"}  # the document is too long


def tokenizer():
    """A tokenizer.json that makes a token of each letter."""
    def special(name):
        return {"SpecialToken": {"id": name, "type_id": 0}}

    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": number, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": True} for number, word in enumerate(SPECIAL)],
        "normalizer": None, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")}},
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {word: number for number, word in enumerate(WORDS)}}}


def write_sentence_folder(folder: pathlib.Path, kind: str) -> None:
    write_checkpoint(folder, dataclasses.replace(SMALL, classes=0), pooling="")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "BertTokenizer", **{f"{word[1:-1].lower()}_token": word for word in SPECIAL}}))
    if KINDS[kind] is None:
        return
    modules = [{"idx": 0, "name": "0", "path": "", "type": TRANSFORMER}]
    random = np.random.default_rng(3)
    for index, (name, config) in enumerate(KINDS[kind], 1):
        path = folder / f"{index}_{name.split('.')[-1]}"
        modules.append({"idx": index, "name": str(index), "path": path.name, "type": name})
        path.mkdir()
        (path / "config.json").write_text(json.dumps(config))
        if name in (DENSE, PYLATE_DENSE):
            shape = config["out_features"], config["in_features"]
            write_safetensors(path / "model.safetensors", {
                "linear.weight": (0.3 * random.standard_normal(shape)).astype(np.float32),
                "linear.bias": (0.3 * random.standard_normal(shape[:1])).astype(np.float32)})
    (folder / "modules.json").write_text(json.dumps(modules))
    if kind in SENTENCE_CONFIGS:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(SENTENCE_CONFIGS[kind]))


def main() -> None:
    """Writes for each kind what the library computes in float64: vectors of sequences, or those of tokens by the task."""
    import sentence_transformers
    import torch

    def run(model, ids, **keywords):
        features = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.int64)}
        if not keywords:
            features["prompt_length"] = PROMPT_TOKENS
        with torch.inference_mode():
            return model(features, **keywords)

    values = {}
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as scratch:
            write_sentence_folder(pathlib.Path(scratch), kind)
            if kind.startswith("multi"):
                model = sentence_transformers.MultiVectorEncoder(scratch, device="cpu").double().eval()
                made = {task: [run(model, ids, task=task) for ids in SEQUENCES] for task in ("query", "document")}
                values[kind] = {task: [one["token_embeddings"][0][one["attention_mask"][0].bool()].tolist() for one in of_task]
                                for task, of_task in made.items()}
                if kind in SENTENCE_CONFIGS:
                    values[kind]["prompts"] = model.prompts
                    values[kind]["texts"] = {task: model.preprocess([text], prompt=model.prompts[task], task=task)["input_ids"][0].tolist()
                                             for task, text in TEXTS.items()}
            else:
                model = sentence_transformers.SentenceTransformer(scratch, device="cpu").double().eval()
                values[kind] = [run(model, ids)["sentence_embedding"][0].tolist() for ids in SEQUENCES]
    rounded = json.loads(json.dumps(values), parse_float=lambda text: round(float(text), 7))
    VALUES.write_text(json.dumps(rounded, separators=(",", ":")).replace("]],", "]],\n") + "\n")


if __name__ == "__main__":
    main()
