"""Static embeddings, as sentence-transformers and model2vec save them, compared with what these libraries make of texts."""
import pathlib
import sys
import tempfile

import model2vec
import numpy as np
import sentence_transformers
import torch
from sentence_transformers.base.modules import Dense, Normalize, Router
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from attendant.v1 import encoder_service_pb2 as pb
from random_models import BOUND
from serving import encoder, serve, to_array
from sparse_encoders import WORDS, figures_of, tokenizer

WIDTH = 48
# With words that the tokenizer does not know, without tokens, and longer than some models take.
TEXTS = ["w1 w2 w3 w1", "w54", "", "w5 unknown w9", " ".join(f"w{i * 7 % 55}" for i in range(30))]


def rows(count: int = len(WORDS)) -> torch.Tensor:
    return torch.randn(count, WIDTH)


def library(*more, weights=None):
    """A model of sentence-transformers: the table, and modules behind it."""
    table = StaticEmbedding(tokenizer(), embedding_weights=rows() if weights is None else weights)
    return sentence_transformers.SentenceTransformer(modules=[table, *more], device="cpu")


def distilled(**keys) -> model2vec.StaticModel:
    """A model of model2vec."""
    table = keys.pop("table", rows())
    return model2vec.StaticModel(table.numpy(), tokenizer()._tokenizer, config={"model_type": "model2vec"}, **keys)


def shared(count: int) -> dict:
    """A table of so many rows for all words."""
    return {"table": rows(count), "token_mapping": np.random.default_rng(3).integers(0, count, len(WORDS))}


def weights() -> np.ndarray:
    return np.random.default_rng(4).random(len(WORDS)).astype(np.float32)


def routed():
    """A table for queries, and another one for documents."""
    tables = [StaticEmbedding(tokenizer(), embedding_weights=rows()) for _ in range(2)]
    router = Router.for_query_document(query_modules=tables[:1], document_modules=tables[1:])
    return sentence_transformers.SentenceTransformer(modules=[router, Normalize()], device="cpu")


KINDS = {
    "plain": library,
    "routed-query": routed,
    "routed-document": routed,
    "normalized": lambda: library(Normalize()),
    "dense": lambda: library(Dense(WIDTH, 20), Normalize()),
    "half": lambda: library(weights=rows().half()),
    "model2vec": distilled,
    "model2vec-normalized": lambda: distilled(normalize=True),
    "model2vec-weights": lambda: distilled(weights=weights()),
    "model2vec-shared": lambda: distilled(weights=weights(), normalize=True, **shared(9)),
    "model2vec-cut": lambda: distilled(max_length=4),
    "model2vec-without-modules": lambda: distilled(normalize=True),
}


def save(kind: str, folder: pathlib.Path):
    """Saves the model, and returns a function from texts to what its library makes of them, in float64."""
    model = KINDS[kind]()
    if isinstance(model, model2vec.StaticModel):
        model.save_pretrained(folder)
    else:
        model.save(str(folder))
    if not kind.endswith("without-modules"):
        loaded = sentence_transformers.SentenceTransformer(str(folder), device="cpu").double()
        task = kind.removeprefix("routed-") if kind.startswith("routed") else None
        return lambda texts: loaded.encode(texts, task=task).astype(np.float64)
    (folder / "modules.json").unlink()
    own = model2vec.StaticModel.from_pretrained(folder, force_download=False)
    return lambda texts: own.encode(texts).astype(np.float64)


def compare(program: str) -> dict:
    """Returns the largest errors, as shares of their bounds."""
    shares = {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {kind: pathlib.Path(scratch) / kind for kind in KINDS}
        torch.manual_seed(7)
        libraries = {kind: save(kind, folder) for kind, folder in folders.items()}
        sources = {kind: f"{folder},route={kind.removeprefix('routed-')}" if kind.startswith("routed") else folder
                   for kind, folder in folders.items()}
        with serve(program, sources) as port:
            encode = encoder(port)
            for kind, exact in libraries.items():
                # model2vec itself leaves unknown words out, and a dense layer makes something of a text without tokens.
                texts = [text for text in TEXTS if not (("unknown" in text and kind.endswith("without-modules"))
                                                        or (text == "" and kind == "dense"))]
                served = to_array(encode(pb.EncodeRequest(model=kind, texts=texts, return_pooled=True,
                                                          truncation=pb.TRUNCATE_RIGHT)).pooled)
                shares[kind] = float(np.abs(served - exact(texts)).max()) / BOUND
                print(f"{kind:28}{shares[kind]:14.3g}", flush=True)
    return figures_of("static_models", shares)


if __name__ == "__main__":
    print(compare(sys.argv[1]))
