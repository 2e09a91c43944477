"""Small random models of late interaction, whose queries are expanded: texts, as sentence-transformers' MultiVectorEncoder makes
vectors of them and scores documents. Folders of the library, of PyLate and of Stanford's ColBERT."""
import json
import pathlib
import sys
import tempfile
import urllib.request

import numpy as np
import safetensors.torch
import sentence_transformers
import tokenizers
import torch
import transformers
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

from attendant.v1 import encoder_service_pb2 as pb
from library_families import FAMILIES
from random_models import BOUND, make
from serving import encoder, serve_ports, to_array
from sparse_encoders import figures_of

TOKENS = "token_embeddings"
WIDTH = 24  # of the vectors
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[Q]", "[D]", "[unused0]", "[unused1]"]
WORDS = [*SPECIAL, *(f"w{i}" for i in range(45)), ".", ",", "?", "!", "#"]
QUERIES = ["w1 w2 w3", "w4", "w5 . w6 ?", " ".join(f"w{i}" for i in range(18))]
DOCUMENTS = ["w1 w2 , w9 .", "w30", " ".join(f"w{i * 7 % 45} ," for i in range(20)), "w4 w3 ! w2"]
PROMPTS = {"query": "[Q] ", "document": "[D] "}
FIXED = {"strategy": "fixed", "length": 12}
PYLATE = {"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 12, "document_length": 16,
          "attend_to_expansion_tokens": False, "skiplist_words": [".", ","], "do_query_expansion": True, "similarity_fn_name": "MaxSim",
          "prompts": {}, "default_prompt_name": None}
STANFORD = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 12, "doc_maxlen": 16, "dim": WIDTH,
            "attend_to_mask_tokens": False, "mask_punctuation": True, "similarity": "cosine"}


def tokenizer(mask: bool = True) -> transformers.PreTrainedTokenizerFast:
    """One that knows the words above, with [CLS] and [SEP] around texts; or without a mask, and [SEP] ends texts."""
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(SPECIAL)
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    roles = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"} if mask else {"eos_token": "[SEP]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", model_max_length=36, **roles)


def dense(inputs: int, outputs: int = WIDTH, activation=torch.nn.Identity, **keys) -> Dense:
    return Dense(inputs, outputs, bias=False, activation_function=activation(), module_input_name=TOKENS, **keys)


def colbert(width: int, *layers) -> list:
    return [*(layers or [dense(width)]), MultiVectorMask([".", ",", "no token"]), Normalize(module_input_name=TOKENS)]


def edge(width: int) -> list:
    """Two layers, as small published models have them: what they take is added to what they make."""
    return colbert(width, dense(width, 2 * width, torch.nn.GELU, use_residual=True), dense(2 * width, WIDTH, use_residual=True),
                   dense(WIDTH, WIDTH, torch.nn.Tanh, use_residual=True))


# The library's own: the family, the modules behind the transformer by its width, and the settings of the transformer.
KINDS = {
    "fixed": ("bert", colbert, {"query_expansion": FIXED, "document_length": 16}),
    "attended": ("bert", colbert, {"query_expansion": {**FIXED, "attend": True}}),
    "least": ("bert", colbert, {"query_expansion": {"strategy": "min", "length": 12}}),
    "least-cut": ("bert", colbert, {"query_expansion": {"strategy": "min", "length": 8, "token": "w44"}, "query_length": 14}),
    "lengths": ("bert", colbert, {"query_length": 6, "document_length": 9}),
    "mean": ("bert", colbert, {"query_expansion": FIXED}),
    "counted-positions": ("xlm-roberta", colbert, {"query_expansion": FIXED}),
    "relative-positions": ("mpnet", colbert, {"query_expansion": FIXED}),
    "windows": ("modernbert", edge, {"query_expansion": FIXED}),
    "unscaled": ("t5", colbert, {"query_expansion": FIXED}),
    "causal": ("qwen3", colbert, {"query_expansion": FIXED}),
    "causal-attended": ("qwen3", edge, {"query_expansion": {**FIXED, "attend": True}}),
}
# Of PyLate: the settings that differ from those above.
PYLATES = {
    "pylate": {},
    "pylate-attended": {"attend_to_expansion_tokens": True, "skiplist_words": None},
    "pylate-unexpanded": {"do_query_expansion": False},
    "pylate-long-queries": {"do_query_expansion": False, "query_length": None, "document_length": 9},
    "pylate-prompts": {"prompts": {"query": "w7 w8 ", "document": "[D] w9 "}},
}
STANFORDS = {"stanford": {}, "stanford-attended": {"attend_to_mask_tokens": True, "mask_punctuation": False}}


def save_base(family: str, folder: pathlib.Path) -> None:
    make(FAMILIES[family], {}, folder)
    tokenizer(mask=family != "qwen3").save_pretrained(folder)


def save_own(kind: str, folder: pathlib.Path, scratch: pathlib.Path) -> None:
    family, modules, settings = KINDS[kind]
    save_base(family, scratch / kind)
    transformer = Transformer(str(scratch / kind), **settings)
    transformer.tokenizer.padding_side = "right"
    model = sentence_transformers.MultiVectorEncoder(
        modules=[transformer, *modules(transformer.get_embedding_dimension())], device="cpu", prompts=PROMPTS,
        similarity_fn_name="meanmaxsim" if kind == "mean" else None)
    model.save(str(folder))


def save_pylate(kind: str, folder: pathlib.Path) -> None:
    """As PyLate writes it: its Dense alone, and its settings beside the prompts."""
    save_base("bert", folder)
    width = json.loads((folder / "config.json").read_text())["hidden_size"]
    layer = Dense(width, WIDTH, bias=False, activation_function=torch.nn.Identity())
    (folder / "1_Dense").mkdir()
    layer.save(str(folder / "1_Dense"))
    config = {"in_features": width, "out_features": WIDTH, "bias": False, "use_residual": False,
              "activation_function": "torch.nn.modules.linear.Identity"}
    (folder / "1_Dense" / "config.json").write_text(json.dumps(config))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 15, "do_lower_case": False}))
    (folder / "modules.json").write_text(json.dumps([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}]))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({**PYLATE, **PYLATES[kind]}))


def save_stanford(kind: str, folder: pathlib.Path) -> None:
    """As Stanford's library writes it: the linear layer among the weights of a BERT."""
    save_base("bert", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
    path = folder / "model.safetensors"
    tensors = {f"bert.{name}": tensor for name, tensor in safetensors.torch.load_file(path).items()}
    safetensors.torch.save_file({**tensors, "linear.weight": torch.randn(WIDTH, config["hidden_size"])}, path, metadata={"format": "pt"})
    (folder / "artifact.metadata").write_text(json.dumps({**STANFORD, **STANFORDS[kind]}))


def save(kind: str, folder: pathlib.Path, scratch: pathlib.Path):
    """Saves the model, and returns it as the library reads it."""
    folder.mkdir(parents=True)
    if kind in KINDS:
        save_own(kind, folder, scratch)
    elif kind in PYLATES:
        save_pylate(kind, folder)
    else:
        save_stanford(kind, folder)
    return sentence_transformers.MultiVectorEncoder(str(folder), device="cpu")


def compute(model, dtype: torch.dtype) -> tuple:
    """Returns the vectors of the queries and of the documents, and the scores, [queries, documents]."""
    model = model.to(dtype)
    queries, documents = model.encode_query(QUERIES), model.encode_document(DOCUMENTS)
    products = [[(query.double() @ document.double().T).max(dim=1).values.sum() for document in documents] for query in queries]
    scores = torch.tensor(products)
    if model.similarity_fn_name == "meanmaxsim":
        scores /= torch.tensor([[len(query)] for query in queries])
    assert torch.allclose(scores.float(), model.similarity(queries, documents).cpu().float(), atol=1e-4), "the library scores differently"
    return [rows.double().numpy() for rows in queries], [rows.double().numpy() for rows in documents], scores.double().numpy()


def served_vectors(encode, kind: str, texts: list, task: str) -> list:
    answer = encode(pb.EncodeRequest(model=kind, texts=texts, task=task, return_token_vectors=True, omit_hidden_states=True,
                                     truncation=pb.TRUNCATE_RIGHT))
    rows = np.split(to_array(answer.token_vectors), np.cumsum(answer.lengths)[:-1])
    return [own[np.any(own != 0, axis=1)] for own in rows]


def post(port: int, path: str, body: dict):
    request = urllib.request.Request(f"http://localhost:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def served_scores(port: int, kind: str) -> np.ndarray:
    """Returns the scores of a route, another one for each query."""
    scores = np.zeros((len(QUERIES), len(DOCUMENTS)))
    for number, query in enumerate(QUERIES):
        path = ("/rerank", "/v1/rerank", "/v2/rerank")[number % 3]
        body = {"query": query, "truncate": True, "texts": DOCUMENTS} if path == "/rerank" else {"query": query, "documents": DOCUMENTS}
        answer = post(port, f"/models/{kind}{path}" if path == "/rerank" else path, {"model": kind, **body})
        for rank in answer if isinstance(answer, list) else answer["results"]:
            scores[number, rank["index"]] = rank["score"] if "score" in rank else rank["relevance_score"]
    return scores


def error(served, float32, exact) -> float:
    """Returns the largest error, as a share of its bound."""
    if served.shape != exact.shape:
        return float("inf")
    return float(np.abs(served - exact).max()) / max(BOUND, 1.5 * float(np.abs(float32 - exact).max()))


def compare_one(encode, http_port: int, kind: str, model) -> float:
    float32, exact = compute(model, torch.float32), compute(model, torch.float64)
    shares = []
    for task, texts, *of_task in (("query", QUERIES, float32[0], exact[0]), ("document", DOCUMENTS, float32[1], exact[1])):
        served = served_vectors(encode, kind, texts, task)
        shares += [error(*rows) for rows in zip(served, *of_task)]
    listed = post(http_port, f"/models/{kind}/embed_all", {"inputs": QUERIES, "prompt_name": "query"})
    shares += [error(np.array(rows), *own) for rows, *own in zip(listed, float32[0], exact[0])]
    # Sums of as many errors as a query has vectors.
    scores = served_scores(http_port, kind)
    bound = max(BOUND * max(map(len, exact[0])), 1.5 * float(np.abs(float32[2] - exact[2]).max()))
    shares.append(float(np.abs(scores - exact[2]).max()) / bound)
    return max(shares)


def compare(program: str) -> dict:
    """Returns the largest errors, as shares of their bounds."""
    shares = {}
    with tempfile.TemporaryDirectory() as scratch:
        torch.manual_seed(7)
        folders = {kind: pathlib.Path(scratch) / "served" / kind for kind in (*KINDS, *PYLATES, *STANFORDS)}
        models = {kind: save(kind, folder, pathlib.Path(scratch)) for kind, folder in folders.items()}
        with serve_ports(program, folders) as ports:
            encode = encoder(int(ports["grpc_port"]))
            for kind, model in models.items():
                shares[kind] = compare_one(encode, int(ports["http_port"]), kind, model)
                print(f"{kind:28}{shares[kind]:14.3g}", flush=True)
    return figures_of("late_interaction", shares)


if __name__ == "__main__":
    print(compare(sys.argv[1]))
