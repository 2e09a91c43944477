"""Models of texts with heads: the real MiniLM's layers and tokenizer, and random weights for what its folder lacks."""
import json
import pathlib
import shutil

import numpy as np

CLASSES = ["calm", "glad", "sad"]
TAGS = ["O", "PLACE", "NAME"]  # of tokens
# name of the model -> (architecture of transformers, labels, whether the head reads the pooler's output)
HEADS = {
    "reranker": ("BertForSequenceClassification", ["LABEL_0"], True),
    "classes": ("BertForSequenceClassification", CLASSES, True),
    "tags": ("BertForTokenClassification", TAGS, False),
}
FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def read(path: pathlib.Path) -> dict:
    """The float32 tensors of a safetensors file."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    return {name: np.frombuffer(data[begin:], np.float32, offset=one["data_offsets"][0],
                                count=int(np.prod(one["shape"]))).reshape(one["shape"])
            for name, one in json.loads(data[8:begin]).items() if name != "__metadata__" and one["dtype"] == "F32"}


def write(path: pathlib.Path, tensors: dict) -> None:
    """Writes float32 tensors."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    head = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def make(minilm: pathlib.Path, folder: pathlib.Path) -> dict:
    """Writes a folder for each of HEADS and returns {name: folder}."""
    config = json.loads((minilm / "config.json").read_text(encoding="utf-8"))
    layers = {f"bert.{name}": tensor for name, tensor in read(minilm / "model.safetensors").items()}
    made = {}
    for seed, (name, (architecture, labels, pools)) in enumerate(HEADS.items()):
        random, made[name] = np.random.default_rng(seed), folder / name
        made[name].mkdir(parents=True, exist_ok=True)
        width = config["hidden_size"]
        head = {"classifier.weight": random.normal(0, 0.5, (len(labels), width)).astype(np.float32),
                "classifier.bias": np.zeros(len(labels), np.float32)}
        kept = {key: tensor for key, tensor in layers.items() if pools or ".pooler." not in key}
        write(made[name] / "model.safetensors", {**kept, **head})
        naming = {"id2label": dict(enumerate(labels)), "label2id": {label: index for index, label in enumerate(labels)}}
        (made[name] / "config.json").write_text(json.dumps({**config, "architectures": [architecture], **naming}), encoding="utf-8")
        for file in FILES:
            shutil.copyfile(minilm / file, made[name] / file)
    return made


def prompted(minilm: pathlib.Path, folder: pathlib.Path, prompts: dict) -> pathlib.Path:
    """The real MiniLM with prompts, which it does not have by itself: links to its files, and settings of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for one in minilm.iterdir():
        (folder / one.name).symlink_to(one.resolve())
    settings = folder / "config_sentence_transformers.json"
    known = json.loads(settings.read_text(encoding="utf-8"))
    settings.unlink()
    settings.write_text(json.dumps({**known, "prompts": prompts}), encoding="utf-8")
    return folder
