"""Folders of sentence-transformers with small random models, compared with what the library makes of texts."""
import pathlib
import sys
import tempfile

import numpy as np
import sentence_transformers
import torch
import transformers
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Pooling

from attendant.v1 import encoder_service_pb2 as pb
from library_families import FAMILIES
from random_models import BOUND, make
from serving import encoder, getter, serve, to_array, to_tensor
from sparse_encoders import TEXTS, figures_of, ids_of, tokenizer

PROMPT = "w7 w8 w3 "
WIDTH = 64  # of the vectors that the first Dense makes
TOKENS = "token_embeddings"
PUNCTUATION = ["w1", "w9", "no such token"]


def dense(inputs: int, outputs: int, activation=torch.nn.Tanh, **keys) -> Dense:
    return Dense(inputs, outputs, activation_function=activation(), **keys)


def of_tokens(mask: MultiVectorMask) -> list:
    """The modules behind the transformer of a MultiVectorEncoder."""
    return [lambda width: dense(width, WIDTH, torch.nn.Identity, bias=False, module_input_name=TOKENS),
            lambda _: mask, lambda _: Normalize(module_input_name=TOKENS)]


def pooled(*modes: str, include_prompt: bool = True):
    return lambda width: Pooling(width, modes, include_prompt=include_prompt)


# The modules behind the transformer, by the width of its output. None: no modules.json.
KINDS = {
    "plain": None,
    "two-dense": [pooled("mean"), lambda width: dense(width, WIDTH, bias=False), lambda _: dense(WIDTH, 20),
                  lambda _: Normalize()],
    "three-dense": [pooled("cls", "max"), lambda width: dense(2 * width, WIDTH), lambda _: dense(WIDTH, WIDTH, torch.nn.ReLU),
                    lambda _: dense(WIDTH, 8, torch.nn.Identity)],
    "normalize-named": [pooled("mean"), lambda _: Normalize(module_input_name="sentence_embedding")],
    "no-prompt-mean": [pooled("mean", include_prompt=False), lambda _: Normalize()],
    "no-prompt-others": [pooled("cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", include_prompt=False)],
    "with-prompt": [pooled("mean")],
    "multi-vector": of_tokens(MultiVectorMask()),
    "multi-vector-skips": of_tokens(MultiVectorMask(PUNCTUATION)),
    "multi-vector-skips-all": of_tokens(MultiVectorMask(PUNCTUATION, skiplist_tasks=["query", "document"])),
    "multi-vector-keeps": of_tokens(MultiVectorMask(["w1"], keep_only_token_ids=[6, 10, 14])),
}
# Causal models and others with their layers: the family and the class of the model in the folder, and the options of --model; served by its modules, or without
# any as the library pools it.
CAUSAL = {
    "causal-last-token": ("qwen3", transformers.Qwen3Model, [pooled("lasttoken"), lambda _: Normalize()], ""),
    "causal-language-model": ("qwen3", transformers.Qwen3ForCausalLM, None, ""),
    "causal-without-head": ("llama", transformers.LlamaModel, None, ""),
    "bidirectional-language-model": ("qwen2", transformers.Qwen2ForCausalLM, None, ""),
    "embeddinggemma": ("gemma3_text", transformers.Gemma3TextModel,
                       [pooled("mean"), lambda width: dense(width, 4 * width, torch.nn.Identity, bias=False),
                        lambda width: dense(4 * width, width, torch.nn.Identity, bias=False), lambda _: Normalize()], ""),
    "bidirectional-by-option": ("mistral", transformers.MistralForCausalLM, [pooled("mean")], ",causal=false"),
}
# Options of --model, for the folder "plain", and the library's modules that do the same.
OPTIONS = {f"pooling={name}": [pooled(mode)] for name, mode in
           (("mean", "mean"), ("max", "max"), ("first_token", "cls"), ("last_token", "lasttoken"))}


def save(kind: str, folder: pathlib.Path, scratch: pathlib.Path):
    """Saves the model and returns it as the library has it."""
    modules = KINDS[kind]
    plain = folder if modules is None else scratch / kind
    make(FAMILIES["bert"], {"model": transformers.BertModel}, plain)
    tokenizer().save_pretrained(plain)
    return build(kind, plain, modules, folder)


def save_causal(kind: str, folder: pathlib.Path, scratch: pathlib.Path):
    """Does the same for a row of CAUSAL."""
    family, library_class, modules, option = CAUSAL[kind]
    plain = folder if modules is None else scratch / kind
    variant = {"is_causal": False} if kind == "bidirectional-language-model" else {}
    make(FAMILIES[family], {"model": library_class, **variant}, plain)
    tokenizer().save_pretrained(plain)
    model = build(kind, plain, modules, folder)
    if option:  # which says what the folder does not
        model[0].auto_model.config.is_causal = False
    return model


def build(kind: str, plain: pathlib.Path, modules, folder=None):
    """Returns the library's model with these modules behind the transformer `plain`, and saves it to `folder`."""
    if modules is None:
        return sentence_transformers.SentenceTransformer(str(plain), device="cpu")
    transformer = Transformer(str(plain))
    width = transformer.get_embedding_dimension()
    library = sentence_transformers.MultiVectorEncoder if kind.startswith("multi") else sentence_transformers.SentenceTransformer
    model = library(modules=[transformer, *(one(width) for one in modules)], device="cpu")
    if folder:
        model.save(str(folder))
    return model


def prompt_tokens(model, prompt: str) -> int:
    """How many of a text's tokens the library takes for the prompt's."""
    return model.preprocess(["w0"], prompt=prompt)["prompt_length"]


def request(name: str, model, texts: list, **fields) -> pb.EncodeRequest:
    ids, mask = ids_of(model, texts)
    return pb.EncodeRequest(model=name, token_ids=to_tensor(ids), attention_mask=to_tensor(mask), omit_hidden_states=True, **fields)


def share(served: np.ndarray, float32: np.ndarray, exact: np.ndarray) -> float:
    """Returns the largest error, as a share of its bound."""
    if served.shape != exact.shape:
        return float("inf")
    if exact.size == 0:
        return 0
    return float(np.abs(served - exact).max()) / max(BOUND, 1.5 * float(np.abs(float32 - exact).max()))


def in_both(model, call) -> tuple:
    """Returns what the library computes in float32, and in float64."""
    float32 = call(model.float())
    exact = call(model.double())
    return float32, exact


def of_texts(encode, get, name: str, model) -> float:
    """Compares the vectors of texts, without a prompt and with one."""
    pooling = get(pb.GetModelRequest(model=name)).text_pooling
    shares = []
    for prompt in ("", PROMPT):
        float32, exact = in_both(model, lambda library: library.encode(TEXTS, prompt=prompt).astype(np.float64))
        # As the library does, always; only the model's own modules may leave them out.
        count = [prompt_tokens(model, prompt)] if prompt and pooling == pb.MODEL_POOLING else []
        answer = encode(request(name, model, [prompt + text for text in TEXTS], return_pooled=True, pooling=pooling,
                                prompt_tokens=count))
        shares.append(share(to_array(answer.pooled), float32, exact))
    return max(shares)


def of_tokens_of(encode, name: str, model) -> float:
    """Compares the vectors of the tokens of queries and of documents, without those that are left out."""
    shares = []
    for task in ("query", "document", None):
        float32, exact = in_both(model, lambda library: [rows.double().numpy() for rows in library.encode(TEXTS, task=task)])
        answer = encode(request(name, model, TEXTS, return_token_vectors=True, task=task or ""))
        served = [rows[np.any(rows != 0, axis=1)] for rows in to_array(answer.token_vectors)]
        shares += [share(*rows) for rows in zip(served, float32, exact)]
    return max(shares)


def compare(program: str) -> dict:
    """Returns the largest errors, as shares of their bounds."""
    shares = {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {kind: pathlib.Path(scratch) / "served" / kind for kind in KINDS}
        torch.manual_seed(7)
        models = {kind: save(kind, folder, pathlib.Path(scratch)) for kind, folder in folders.items()}
        sources = dict(folders)
        for kind, (*_, option) in CAUSAL.items():
            folder = pathlib.Path(scratch) / "served" / kind
            models[kind] = save_causal(kind, folder, pathlib.Path(scratch))
            sources[kind] = f"{folder}{option}"
        for option, modules in OPTIONS.items():
            name = option.replace("=", "-")
            models[name] = build(name, folders["plain"], modules)
            sources[name] = f"{folders['plain']},{option}"
        with serve(program, sources) as port:
            encode, get = encoder(port), getter(port)
            for name, model in models.items():
                compared = of_tokens_of(encode, name, model) if name.startswith("multi") else of_texts(encode, get, name, model)
                shares[name] = compared
                print(f"{name:38}{compared:14.3g}", flush=True)
    return figures_of("sentence_models", shares)


if __name__ == "__main__":
    print(compare(sys.argv[1]))
