"""A small random XLM-R with the heads that FlagEmbedding saves beside bge-m3, compared with that library's formulas (FlagEmbedding,
inference/embedder/encoder_only/m3.py), and late interaction with sentence-transformers' MaxSim."""
import pathlib
import sys
import tempfile

import numpy as np
import safetensors.torch
import torch
import transformers
from torch.nn import functional

from attendant.v1 import encoder_service_pb2 as pb
from library_families import FAMILIES
from random_models import BOUND, make
from serving import encoder, serve, to_array, to_dense, to_tensor
from sparse_encoders import TEXTS, WORDS, figures_of, tokenizer

WIDTH = 24  # of the vectors of tokens


def save(folder: pathlib.Path) -> tuple:
    """Saves the model with its tokenizer and both heads; returns the encoder and the heads."""
    make(FAMILIES["xlm-roberta"], {"model": transformers.XLMRobertaModel}, folder)
    tokenizer().save_pretrained(folder)
    model = transformers.XLMRobertaModel.from_pretrained(folder).eval()
    heads = {"sparse_linear": torch.nn.Linear(model.config.hidden_size, 1),
             "colbert_linear": torch.nn.Linear(model.config.hidden_size, WIDTH)}
    for name, head in heads.items():
        safetensors.torch.save_file(head.state_dict(), folder / f"{name}.safetensors")
    return model, heads


@torch.no_grad()
def compute(model, heads: dict, ids: list, dtype: torch.dtype) -> tuple:
    """Returns the dense vector, the weights over the vocabulary and the vectors of tokens of one sequence."""
    model = model.to(dtype)
    sparse, colbert = (heads[name].to(dtype) for name in ("sparse_linear", "colbert_linear"))
    hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
    dense = functional.normalize(hidden[0], dim=-1)
    # The largest weight of each id, but for those of <s>, </s>, <pad> and <unk>.
    token_weights = torch.relu(sparse(hidden))[:, 0]
    weights = torch.zeros(model.config.vocab_size, dtype=dtype)
    weights.scatter_reduce_(0, torch.tensor(ids), token_weights, "amax")
    weights[[WORDS.index(word) for word in ("[CLS]", "[PAD]", "[UNK]")]] = 0
    vectors = functional.normalize(colbert(hidden[1:]), dim=-1)
    return dense.double().numpy(), weights.double().numpy(), vectors.double().numpy()


def max_sim(query: np.ndarray, documents: list) -> np.ndarray:
    return np.array([(query @ document.T).max(axis=1).sum() for document in documents])


def error(served, float32, exact) -> float:
    """Returns the largest error, as a share of its bound."""
    if served.shape != exact.shape:
        return float("inf")
    return float(np.abs(served - exact).max()) / max(BOUND, 1.5 * float(np.abs(float32 - exact).max()))


def serve_one(encode, name: str, ids: list) -> tuple:
    """Returns the three of one sequence, which one call makes."""
    answer = encode(pb.EncodeRequest(model=name, token_ids=to_tensor(np.array([ids], dtype=np.int64)), omit_hidden_states=True,
                                     return_pooled=True, return_sparse=True, return_token_vectors=True))
    return to_array(answer.pooled)[0], to_dense(answer.sparse, len(WORDS))[0], to_array(answer.token_vectors)[0]


def compare(program: str) -> dict:
    """Returns the largest errors, as shares of their bounds."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "m3"
        torch.manual_seed(7)
        model, heads = save(folder)
        made = tokenizer()
        sequences = [made(text)["input_ids"] for text in TEXTS]
        float32 = [compute(model, heads, ids, torch.float32) for ids in sequences]
        exact = [compute(model, heads, ids, torch.float64) for ids in sequences]
        shares = dict.fromkeys(("dense", "sparse", "vectors", "scores"), 0.0)
        with serve(program, {"m3": folder}) as port:
            encode = encoder(port)
            for ids, of_float32, of_float64 in zip(sequences, float32, exact):
                dense, weights, vectors = serve_one(encode, "m3", ids)
                assert not vectors[0].any(), "the first token has no vector"
                served = dense, weights[:of_float64[1].size], vectors[1:]
                of_float64 = of_float64[0], of_float64[1][:len(WORDS)], of_float64[2]
                of_float32 = of_float32[0], of_float32[1][:len(WORDS)], of_float32[2]
                for name, *three in zip(shares, served, of_float32, of_float64):
                    shares[name] = max(shares[name], error(*three))
                answer = encode(pb.EncodeRequest(model="m3", texts=TEXTS, omit_hidden_states=True,
                                                 query_vectors=to_tensor(of_float32[2].astype(np.float32))))
                scores = [max_sim(own[2], [document[2] for document in all_of]) for own, all_of in
                          ((of_float32, float32), (of_float64, exact))]
                shares["scores"] = max(shares["scores"], error(to_array(answer.scores), *scores))
        for name, share in shares.items():
            print(f"m3 {name:24}{share:14.3g}", flush=True)
    return figures_of("m3_heads", shares)


if __name__ == "__main__":
    print(compare(sys.argv[1]))
