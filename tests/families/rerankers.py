"""Rerankers that are small random causal language models: sentence-transformers' LogitScore, as its CrossEncoder computes it."""
import json
import pathlib
import sys
import tempfile

import numpy as np
import sentence_transformers
import torch
import transformers
from sentence_transformers.base.modules import Transformer
from sentence_transformers.cross_encoder.modules import LogitScore

from attendant.v1 import encoder_service_pb2 as pb
from library_families import FAMILIES
from random_models import BOUND, make
from serving import encoder, serve, to_array, to_tensor
from sparse_encoders import TEXTS, figures_of, tokenizer

# The family, whether its output embedding is that of its words, and the ids of both words; None: one alone.
KINDS = {"qwen3-tied": ("qwen3", True, (9, 12)), "qwen3-untied": ("qwen3", False, (9, 12)), "qwen2-one": ("qwen2", True, (7, None))}
CLASSES = {"qwen3": transformers.Qwen3ForCausalLM, "qwen2": transformers.Qwen2ForCausalLM}


def save(kind: str, folder: pathlib.Path, scratch: pathlib.Path):
    """Saves a CrossEncoder, and returns its language model."""
    name, tied, (true, false) = KINDS[kind]
    plain = scratch / kind
    make(FAMILIES[name], {"model": CLASSES[name], "tie_word_embeddings": tied}, plain)
    tokenizer().save_pretrained(plain)
    made = sentence_transformers.CrossEncoder(
        modules=[Transformer(str(plain), transformer_task="text-generation"), LogitScore(true, false)], device="cpu")
    made.save(str(folder))
    assert json.loads((folder / "modules.json").read_text())[1]["type"].endswith("LogitScore")
    return CLASSES[name].from_pretrained(plain).eval()


@torch.no_grad()
def compute(model, ids: list, words: tuple, dtype: torch.dtype) -> float:
    logits = model.to(dtype)(input_ids=torch.tensor([ids])).logits[0, -1].double()
    return float(logits[words[0]] - (0 if words[1] is None else logits[words[1]]))


def compare(program: str) -> dict:
    """Returns the largest errors, as shares of their bounds."""
    shares = {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {kind: pathlib.Path(scratch) / "served" / kind for kind in KINDS}
        torch.manual_seed(7)
        models = {kind: save(kind, folder, pathlib.Path(scratch)) for kind, folder in folders.items()}
        sequences = [tokenizer()(text)["input_ids"] for text in TEXTS]
        with serve(program, folders) as port:
            encode = encoder(port)
            for kind, model in models.items():
                served, float32, exact = [], [], []
                for ids in sequences:
                    answer = encode(pb.EncodeRequest(model=kind, token_ids=to_tensor(np.array([ids], dtype=np.int64)),
                                                     omit_hidden_states=True, return_pooled=True, pooling=pb.CLASSIFIER))
                    served.append(to_array(answer.pooled)[0, 0])
                    float32.append(compute(model, ids, KINDS[kind][2], torch.float32))
                    exact.append(compute(model, ids, KINDS[kind][2], torch.float64))
                errors = np.abs(np.array([served, float32]) - np.array(exact)).max(axis=1)
                shares[kind] = float(errors[0] / max(BOUND, 1.5 * errors[1]))
                print(f"{kind:24}{shares[kind]:14.3g}", flush=True)
    return figures_of("rerankers", shares)


if __name__ == "__main__":
    print(compare(sys.argv[1]))
