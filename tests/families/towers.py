"""The towers of CLIP and SigLIP with small random weights, whole checkpoints and towers alone: the vectors of texts and of
images, compared with those that transformers makes of the same texts, by the model's tokenizer, and of the same pixels."""
import json
import pathlib
import sys
import tempfile
import urllib.request

import numpy as np
import tokenizers
import torch
import transformers as t

from attendant.v1 import encoder_service_pb2 as pb
from random_models import BOUND
from serving import encoder, getter, serve_ports, to_array, to_tensor
from sparse_encoders import figures_of

POSITIONS = 12
TEXTS = ["a photo of a cat", "Two DOGS, and  a cat!", "", "it's (not) a photo - of twenty-two very small and quick animals"]
TOWER = {"hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 96}
VISION = {**TOWER, "image_size": 20, "patch_size": 4}
PUNCTUATION = r"[!\"#\$%\&'\(\)\*\+,\-\./:;<=>\?@\[\\\]\^_`\{\|\}\~]"


def clip_tokenizer():
    letters = list(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = sorted(letters) + sorted(letter + "</w>" for letter in letters)
    merges = [("p", "h"), ("ph", "o"), ("c", "a"), ("ca", "t</w>"), ("o", "f</w>")]
    words += ["".join(merge) for merge in merges] + ["<|startoftext|>", "<|endoftext|>"]
    return t.CLIPTokenizer(vocab={word: i for i, word in enumerate(words)}, merges=merges, model_max_length=POSITIONS)


def siglip_tokenizer(side: str = "right"):
    """As converted from the published SentencePiece model."""
    n, p = tokenizers.normalizers, tokenizers.pre_tokenizers
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0), ("\u2581a", -2.5), ("cat", -3.0), ("\u2581photo", -3.0)]
    pieces += [(letter, -4.0) for letter in letters]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=2))
    regex = tokenizers.Regex
    made.normalizer = n.Sequence([n.Lowercase(), n.Replace(regex(PUNCTUATION), ""), n.Replace(regex(r"\s+"), " "), n.Strip()])
    made.pre_tokenizer = p.Metaspace()
    made.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return t.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", unk_token="<unk>", padding_side=side,
                                     pad_token="</s>" if side == "right" else "<pad>", model_max_length=POSITIONS)


def clip_config(**text):
    size = {**TOWER, "vocab_size": len(clip_tokenizer()), "max_position_embeddings": POSITIONS}
    return t.CLIPConfig(text_config=size | {"eos_token_id": clip_tokenizer().eos_token_id} | text, vision_config=VISION,
                        projection_dim=20)


def siglip_config():
    return t.SiglipConfig(text_config={**TOWER, "vocab_size": 40, "max_position_embeddings": POSITIONS}, vision_config=VISION)


# A model, its tokenizer and the way to pad texts.
CLIP = lambda: (t.CLIPModel(clip_config()), clip_tokenizer(), "longest")
OLD_CLIP = lambda: (t.CLIPModel(clip_config(eos_token_id=2)), clip_tokenizer(), "longest")
SIGLIP = lambda: (t.SiglipModel(siglip_config()), siglip_tokenizer(), "max_length")
SIGLIP2 = lambda: (t.SiglipModel(siglip_config()), siglip_tokenizer("left"), "max_length")


def alone(model_class, section: str, of):
    """A tower by itself, with the same tokenizer."""
    def make():
        model, tokenizer, padding = of()
        return model_class(getattr(model.config, section)), tokenizer, padding
    return make


# name -> (what makes the model, options of --model)
TEXT_KINDS = {
    "clip": (CLIP, ",tower=text"),
    "clip-old-end": (OLD_CLIP, ",tower=text"),
    "clip-alone": (alone(t.CLIPTextModelWithProjection, "text_config", CLIP), ""),
    "clip-without-projection": (alone(t.CLIPTextModel, "text_config", CLIP), ",tower=text"),
    "siglip": (SIGLIP, ",tower=text"),
    "siglip-padded-left": (SIGLIP2, ",tower=text"),
    "siglip-alone": (alone(t.SiglipTextModel, "text_config", SIGLIP), ""),
}
IMAGE_KINDS = {
    "clip-images": (CLIP, ",tower=vision"),
    "clip-images-alone": (alone(t.CLIPVisionModelWithProjection, "vision_config", CLIP), ""),
    "clip-images-without-projection": (alone(t.CLIPVisionModel, "vision_config", CLIP), ",tower=vision"),
    "siglip-images": (SIGLIP, ",tower=vision"),
    "siglip-images-alone": (alone(t.SiglipVisionModel, "vision_config", SIGLIP), ""),
}


def save(make, folder: pathlib.Path):
    """Makes and saves a model with weights that matter, and returns it with its tokenizer and the way to pad."""
    model, tokenizer, padding = make()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = "norm" in name and name.endswith("weight")
            wide = any(part in name for part in ("embed", "probe"))
            deviation = 0.3 if parameter.dim() < 2 else 1 if wide else parameter[0].numel() ** -0.5
            parameter.normal_(1 if is_norm else 0, 0.2 if is_norm else deviation)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, t.AutoTokenizer.from_pretrained(folder), padding


def vector_of(model, side: str, arguments: dict, dtype: torch.dtype) -> np.ndarray:
    """What the library makes of one input."""
    model.to(dtype)
    with torch.no_grad():
        features = getattr(model, f"get_{side}_features", None)
        made = (features or model)(**{key: value.to(dtype) if value.is_floating_point() else value
                                      for key, value in arguments.items()})
    for name in (f"{side}_embeds", "pooler_output"):
        if getattr(made, name, None) is not None:
            made = getattr(made, name)
            break
    return made[0].double().numpy()


def share(served, model, side: str, inputs: list) -> float:
    """The largest error, as a share of its bound."""
    exact, float32 = (np.stack([vector_of(model, side, one, dtype) for one in inputs]) for dtype in (torch.float64, torch.float32))
    return float(np.abs(served - exact).max()) / max(BOUND, 1.5 * float(np.abs(float32 - exact).max()))


def over_http(port: str, name: str) -> np.ndarray:
    """The vectors of /v1/embeddings, which have length 1."""
    request = urllib.request.Request(f"http://localhost:{port}/v1/embeddings", json.dumps({"model": name, "input": TEXTS}).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return np.array([one["embedding"] for one in json.load(response)["data"]])


def compare_texts(ports: dict, name: str, model, tokenizer, padding: str) -> float:
    inputs = []
    for text in TEXTS:
        ids = tokenizer([text], padding=padding, truncation=True, max_length=POSITIONS, return_tensors="pt")["input_ids"]
        inputs.append({"input_ids": ids})
    served = to_array(encoder(int(ports["grpc_port"]))(
        pb.EncodeRequest(model=name, texts=TEXTS, truncation=pb.TRUNCATE_RIGHT, return_pooled=True, omit_hidden_states=True)).pooled)
    unit = over_http(ports["http_port"], name)
    away = np.abs(unit - served / np.linalg.norm(served, axis=1, keepdims=True)).max()
    return max(share(served, model, "text", inputs), float(away) / BOUND)


def compare_images(ports: dict, name: str, model) -> float:
    pixels = torch.randn(3, 3, VISION["image_size"], VISION["image_size"])
    served = to_array(encoder(int(ports["grpc_port"]))(
        pb.EncodeRequest(model=name, features=to_tensor(pixels.numpy()), return_pooled=True, omit_hidden_states=True)).pooled)
    return share(served, model, "image", [{"pixel_values": one[None]} for one in pixels])


def compare_similarity(ports: dict, name: str, model) -> float:
    """Compares how the vectors of both towers are to be compared."""
    found = getter(int(ports["grpc_port"]))(pb.GetModelRequest(model=name))
    if not hasattr(model, "logit_scale"):
        return float("inf") if found.HasField("similarity") else 0
    weights = model.double().state_dict()
    numbers = np.array([weights["logit_scale"].exp().item(), weights.get("logit_bias", torch.zeros(1)).item()])
    return float(np.abs(numbers - [found.similarity.scale, found.similarity.bias]).max()) / BOUND


def compare(program: str) -> dict:
    """Returns the largest errors, as shares of their bounds."""
    shares = {}
    kinds = TEXT_KINDS | IMAGE_KINDS
    with tempfile.TemporaryDirectory() as scratch:
        torch.manual_seed(7)
        folders = {name: pathlib.Path(scratch) / name for name in kinds}
        models = {name: save(make, folders[name]) for name, (make, _) in kinds.items()}
        sources = {name: f"{folders[name]}{options}" for name, (_, options) in kinds.items()}
        with serve_ports(program, sources) as ports:
            for name, (model, tokenizer, padding) in models.items():
                is_text = name in TEXT_KINDS
                shares[name] = (compare_texts(ports, name, model, tokenizer, padding) if is_text
                                else compare_images(ports, name, model))
                shares[name] = max(shares[name], compare_similarity(ports, name, model))
                print(f"{name:38}{shares[name]:14.3g}", flush=True)
    return figures_of("towers", shares)


if __name__ == "__main__":
    print(compare(sys.argv[1]))
