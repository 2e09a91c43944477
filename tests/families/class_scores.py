"""Small random models with heads that score classes: what the Python client makes of them, beside the library's pipelines and
CrossEncoder."""
import json
import pathlib
import sys
import tempfile
from typing import Optional

import numpy as np
import sentence_transformers
import torch
import transformers

import tokenizer_files
from library_families import FAMILIES
from random_models import make
from serving import serve

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "client" / "python"))
from attendant_client.text import TextModel  # noqa: E402

IDENTITY, SIGMOID = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"
# name -> (classes, keys of config.json)
CASES = {
    "one-class": (1, {}),
    "classes": (3, {}),
    "single-label": (3, {"problem_type": "single_label_classification"}),
    "multi-label": (3, {"problem_type": "multi_label_classification"}),
    "regression": (1, {"problem_type": "regression"}),
    "cross-encoder-plain": (1, {"sentence_transformers": {"activation_fn": IDENTITY}}),
    "cross-encoder-sigmoid": (3, {"sentence_transformers": {"activation_fn": SIGMOID}}),
    "older-cross-encoder": (1, {"sbert_ce_default_activation_function": IDENTITY}),
    "newest-cross-encoder": (3, None),  # as the library saves it
}
TEXTS = ["plain words", "other", "it's a-b"]
BOUND = 1e-4


def save(folder: pathlib.Path, classes: int, keys: Optional[dict]) -> None:
    family = FAMILIES["bert"]
    make(family, {"model": family.classifier, "num_labels": classes, "vocab_size": 400}, folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | (keys or {})))
    tokenizer_files.write(folder, ("bert", tokenizer_files.bert(True), {"tokenizer_class": "BertTokenizer"}))
    if keys is None:
        sentence_transformers.CrossEncoder(str(folder), device="cpu", activation_fn=torch.nn.Sigmoid()).save_pretrained(str(folder))


def differs(model: TextModel, folder: pathlib.Path, states_activation: bool) -> bool:
    """Whether any score is another one. A pipeline knows nothing of a CrossEncoder's activation."""
    encoder = sentence_transformers.CrossEncoder(str(folder), device="cpu")
    pairs = [(TEXTS[0], text) for text in TEXTS]
    worst = 0.0
    if encoder.config.num_labels == 1:
        own = {one.index: one.score for one in model.rerank(TEXTS[0], TEXTS)}
        worst = np.abs(np.array([own[index] for index in range(len(TEXTS))]) - encoder.predict(pairs)).max()
    if states_activation:
        expected = np.atleast_2d(encoder.predict(pairs).reshape(len(TEXTS), -1))
        labels = [f"LABEL_{index}" for index in range(expected.shape[1])]
        library = [dict(zip(labels, row)) for row in expected]
        made = model.classify(pairs)
    else:
        pipeline = transformers.pipeline("text-classification", model=str(folder), device="cpu", top_k=None)
        library = [{one["label"]: one["score"] for one in row} for row in pipeline(TEXTS)]
        made = model.classify(TEXTS)
    for row, expected in zip(made, library, strict=True):
        scores = {one.label: one.score for one in row}
        if scores.keys() != expected.keys():
            return True
        worst = max(worst, *(abs(scores[label] - float(expected[label])) for label in scores))
    return not worst <= BOUND


def compare(program: str) -> dict:
    """Returns how many of the models give the same scores."""
    figures = {"class_scores.passed": 0, "class_scores.failed": 0}
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory() as scratch:
        folders = {name: pathlib.Path(scratch) / name for name in CASES}
        for name, folder in folders.items():
            save(folder, *CASES[name])
        with serve(program, folders) as port:
            for name, folder in folders.items():
                wrong = differs(TextModel(f"localhost:{port}", name), folder, "cross-encoder" in name)
                figures["class_scores.failed" if wrong else "class_scores.passed"] += 1
                if wrong:
                    print(f"{name}: other scores than the library's")
    return figures


if __name__ == "__main__":
    print(compare(sys.argv[1]))
