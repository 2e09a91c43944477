"""Small random SPLADE models and static weights of words, which sentence-transformers' SparseEncoder makes and saves, compared with
what it computes."""
import pathlib
import sys
import tempfile

import numpy as np
import sentence_transformers
import tokenizers
import torch
import transformers
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
from sentence_transformers.base.modules import Router, Transformer

from attendant.v1 import encoder_service_pb2 as pb
from library_families import FAMILIES
from random_models import BOUND, make
from serving import encoder, serve, to_dense, to_tensor

# What a model is made of, and the pooling of its logits. None: the library's own, for a folder without modules.
KINDS = {
    "bert-max": ("bert", {"pooling_strategy": "max"}),
    "bert-sum": ("bert", {"pooling_strategy": "sum"}),
    "bert-twice": ("bert", {"activation_function": "log1p_relu"}),
    "bert-sum-twice": ("bert", {"pooling_strategy": "sum", "activation_function": "log1p_relu"}),
    "bert-plain": ("bert", None),
    "distilbert-max": ("distilbert", {}),
    "xlm-roberta-max": ("xlm-roberta", {}),
    "modernbert-plain": ("modernbert", None),
}
# Weights of words, and a Router that has them for queries; None: no route.
STATIC = {"static": None, "static-half": None, "routed-query": "query", "routed-document": "document"}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(55))]
TEXTS = ["w1 w2 w3", "w54", " ".join(f"w{i * 7 % 55}" for i in range(30)), "w5 w5 w9 w0 w12"]


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """One that knows the words above, and puts [CLS] before a text and [SEP] behind it."""
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=36)


def save(kind: str, folder: pathlib.Path, scratch: pathlib.Path):
    """Saves the model and returns it as the library loads it."""
    name, pooling = KINDS[kind]
    family = FAMILIES[name]
    stem = family.classifier.__name__.removesuffix("ForSequenceClassification")
    plain = folder if pooling is None else scratch / kind
    make(family, {"model": getattr(transformers, stem + "ForMaskedLM")}, plain)
    tokenizer().save_pretrained(plain)
    if pooling is None:
        return sentence_transformers.SparseEncoder(str(folder), device="cpu")
    model = sentence_transformers.SparseEncoder(
        modules=[Transformer(str(plain), transformer_task="fill-mask"), SpladePooling(**pooling)], device="cpu")
    model.save(str(folder))
    return model


def save_static(kind: str, folder: pathlib.Path, scratch: pathlib.Path):
    """Saves a model of weights of words, or a Router, and returns it as the library loads it."""
    weights = torch.randn(len(WORDS))
    modules = [SparseStaticEmbedding(tokenizer(), weights.half() if kind.endswith("half") else weights)]
    if STATIC[kind]:
        plain = scratch / kind
        make(FAMILIES["bert"], {"model": transformers.BertForMaskedLM}, plain)
        tokenizer().save_pretrained(plain)
        documents = [Transformer(str(plain), transformer_task="fill-mask"), SpladePooling(activation_function="log1p_relu")]
        modules = [Router.for_query_document(query_modules=modules, document_modules=documents)]
    sentence_transformers.SparseEncoder(modules=modules, device="cpu").save(str(folder))
    return sentence_transformers.SparseEncoder(str(folder), device="cpu")


def compare_static(encode, kind: str, model) -> float:
    """Compares the vectors of texts: with words that the tokenizer does not know, too long, without words."""
    texts = [*TEXTS, "w5 unknown w9 w5", " ".join(f"w{i * 7 % 55}" for i in range(50)), *([""] if STATIC[kind] != "document" else [])]
    served = to_dense(encode(pb.EncodeRequest(model=kind, texts=texts, omit_hidden_states=True, return_sparse=True,
                                              truncation=pb.TRUNCATE_RIGHT)).sparse, len(WORDS))
    float32, exact = (getattr(model, name)().encode(texts, task=STATIC[kind], convert_to_sparse_tensor=False).double().numpy()
                      for name in ("float", "double"))
    return float(np.abs(served - exact[:, :len(WORDS)]).max()) / max(BOUND, 1.5 * float(np.abs(float32 - exact).max()))


def ids_of(model, texts: list) -> tuple:
    """The token ids and the mask that the library makes of the texts."""
    made = model.tokenizer(texts, padding=True, truncation=True, return_tensors="np")
    return made["input_ids"].astype(np.int64), made["attention_mask"].astype(np.uint8)


def figures_of(group: str, shares: dict) -> dict:
    """Returns the figures of a group of models, from the error of each as a share of its bound. numpy's numbers become
    Python's, which can be written as JSON."""
    errors = [float(share) for share in shares.values()]
    return {f"{group}.passed": sum(error <= 1 for error in errors),
            f"{group}.failed": sum(not error <= 1 for error in errors),
            f"{group}.worst_error": max(errors)}


def compare(program: str) -> dict:
    """Returns the largest errors, as shares of their bounds."""
    shares = {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {kind: pathlib.Path(scratch) / "served" / kind for kind in KINDS}
        torch.manual_seed(7)
        models = {kind: save(kind, folder, pathlib.Path(scratch)) for kind, folder in folders.items()}
        static = {kind: pathlib.Path(scratch) / "served" / kind for kind in STATIC}
        static_models = {kind: save_static(kind, folder, pathlib.Path(scratch)) for kind, folder in static.items()}
        routed = {kind: f"{folder},route={STATIC[kind]}" if STATIC[kind] else folder for kind, folder in static.items()}
        with serve(program, {**folders, **routed}) as port:
            encode = encoder(port)
            for kind, model in static_models.items():
                shares[kind] = compare_static(encode, kind, model)
                print(f"{kind:24}{shares[kind]:27.3g}", flush=True)
            for kind, model in models.items():
                ids, mask = ids_of(model, TEXTS)
                answer = encode(pb.EncodeRequest(model=kind, token_ids=to_tensor(ids), attention_mask=to_tensor(mask),
                                                 omit_hidden_states=True, return_sparse=True))
                float32 = model.encode(TEXTS, convert_to_sparse_tensor=False).double().numpy()
                exact = model.double().encode(TEXTS, convert_to_sparse_tensor=False).numpy()
                served = to_dense(answer.sparse, exact.shape[1])
                allowed = max(BOUND, 1.5 * float(np.abs(float32 - exact).max()))
                shares[kind] = float(np.abs(served - exact).max()) / allowed
                print(f"{kind:24}{np.count_nonzero(exact) / exact.size:12.0%} not zero{shares[kind]:14.3g}", flush=True)
    return figures_of("sparse_encoders", shares)


if __name__ == "__main__":
    print(compare(sys.argv[1]))
