"""Small random models of every family, which are made, saved, served and compared layer by layer."""
import dataclasses
import json
import pathlib
import sys
import tempfile
import zlib

import numpy as np
import torch
import transformers

import authors_families
import formula_families
import library_families
from attendant.v1 import encoder_service_pb2 as pb
from family import Family
from serving import encoder, serve, to_array, to_dense, to_tensor

FAMILIES = library_families.FAMILIES | formula_families.FAMILIES | authors_families.FAMILIES
BOUND = 5e-5  # or 1.5 times the error of torch's own float32
# The lowest cosines of any token's last hidden state, in any family, for untrained models. The lowest are those of mT5,
# whose gates multiply two rounded products: 0.9995 in bf16 with this seed; other draws gave 0.9989 to 0.9997.
LOWEST_COSINES = {"bf16x3": 0.999999, "bf16": 0.9995, "int8": 0.99}
LENGTHS = (9, 1, 21, 14)
# Heads of more than linear layers and a norm, which the server leaves out.
OTHER_HEADS = ("BigBirdForQuestionAnswering",)
# The families whose heads over the vocabulary the server has, with options of the config by the name of the variant.
MASKED_WORDS = {"masked-words": {}, "masked-words-untied": {"tie_word_embeddings": False}}
WORD_HEADS = dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "albert", "mpnet",
                            "big_bird", "roformer", "data2vec-text", "ernie", "esm"), MASKED_WORDS)
WORD_HEADS["rembert"] = {"masked-words": {}}
WORD_HEADS["deberta-v2"] = {**MASKED_WORDS, "masked-words-new": {"legacy": False},
                            "masked-words-narrow": {"embedding_size": 20}}
WORD_HEADS["modernbert"] = {**MASKED_WORDS, "masked-words-no-bias": {"decoder_bias": False},
                            "masked-words-biases": {"classifier_bias": True, "norm_bias": True},
                            "masked-words-silu": {"classifier_activation": "silu"}}


def make(family: Family, variant: dict, folder: pathlib.Path):
    """Makes and saves a model with weights that matter, and returns it as it was saved."""
    options = {**family.common, **variant}
    save, shard = options.pop("save", "float32"), options.pop("shard", "1GB")
    config_json, reload = options.pop("config_json", None), options.pop("reload", False)
    model = options.pop("model", family.model)(family.config(**options)).eval()
    with torch.no_grad():
        # Values that are not saved, such as rotary frequencies, are not rounded either.
        kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
        for name, parameter in model.named_parameters():
            if family.constants and family.constants in name:
                kept[name] = parameter.clone()
            elif parameter.dim() >= 2:
                embedding = (any(part in name for part in ("embed", "relative", "shared", "probe"))
                             and "patch_embedding." not in name)
                parameter.normal_(0, 1 if embedding else parameter[0].numel() ** -0.5)
            elif "norm" in name.lower() and name.endswith("weight") or "lambda" in name:
                parameter.normal_(family.gamma, 0.2 * family.gamma)
            else:
                parameter.normal_(0, 0.3)
        if family.blank:
            model.get_input_embeddings().weight[0] = 0
        model.to(getattr(torch, save)).save_pretrained(folder, max_shard_size=shard)
        model.float()
        for name, tensor in (*model.named_buffers(), *model.named_parameters()):
            if name in kept:
                tensor.copy_(kept[name])
    if config_json:
        path = folder / "config.json"
        path.write_text(json.dumps(config_json(json.loads(path.read_text()))))
    if not reload:
        return model
    return type(model).from_pretrained(folder, dtype=torch.float32, **getattr(family.model, "keywords", {})).float().eval()


def masks():
    """Masks [B, S] that keep tokens in three ways."""
    longest = max(LENGTHS) + 3
    index, lengths = np.arange(longest), np.array(LENGTHS)[:, None]
    holed = index < lengths
    holed[:, 2::5] = False
    return {"right": (index < lengths), "left": (index >= longest - lengths), "holed": holed}


def each_alone(model, arguments: dict):
    """Returns the arguments of each sequence without its padding, and its place in its row."""
    for row, kept in enumerate(arguments["attention_mask"].numpy().astype(bool)):
        span = slice(int(kept.argmax()), len(kept) - int(kept[::-1].argmax()))
        for part in model.modules():  # a short sequence changes it permanently
            if hasattr(part, "set_attention_type"):
                part.set_attention_type(model.config.attention_type)
                break
        yield {key: value[row:row + 1, span] for key, value in arguments.items()}, row, span


def run_alone(family: Family, model, arguments: dict, dtype) -> tuple:
    """As run_library, with zeros in rows of padding."""
    mask = arguments["attention_mask"]
    states, pooled = None, []
    for own_arguments, row, span in each_alone(model, arguments):
        own, vector = run_library(dataclasses.replace(family, alone=False), model, own_arguments, dtype)
        states = states or [np.zeros((*mask.shape, one.shape[2])) for one in own]
        for padded, one in zip(states, own):
            padded[row, span] = one[0, :span.stop - span.start]
        pooled.append(vector)
    return states, np.concatenate(pooled) if family.pooler else None


def run_library(family: Family, model, arguments: dict, dtype) -> list:
    """Returns [hidden states entering layer 0, after each layer but the last, at the end], and the pooled vectors or
    None."""
    if family.alone:
        return run_alone(family, model, arguments, dtype)
    typed = {key: value.to(dtype) if value.is_floating_point() else value for key, value in arguments.items()}
    with torch.no_grad():
        out = family.encoder(model.to(dtype))(**typed, output_hidden_states=True)
    states = [*out.hidden_states[:-1], out.last_hidden_state]
    pooled = getattr(out, "pooler_output", None) if family.pooler else None
    return [s.double().numpy() for s in states], None if pooled is None else pooled.double().numpy()


def ask(encode, name: str, layers: int, pooler: bool, **tensors) -> tuple:
    answer = encode(pb.EncodeRequest(model=name, intermediate_layers=range(layers - 1), return_pooled=pooler,
                                     **{key: to_tensor(value) for key, value in tensors.items()}))
    states = [to_array(layer.tensor) for layer in answer.intermediate] + [to_array(answer.hidden_states)]
    return states, to_array(answer.pooled) if pooler else None


def share_of_bound(exact, float32, served, kept) -> float:
    """The largest ratio, over all layers, of the error to the allowed one."""
    worst = 0.0
    for a, b, c in zip(exact, float32, served, strict=True):
        allowed = max(BOUND, 1.5 * np.abs(a - b)[kept].max())
        error = np.abs(a - c)[kept].max()
        worst = max(worst, error / allowed if np.isfinite(error) else np.inf)
    return worst


def text_case(family: Family, config, mask: np.ndarray) -> tuple:
    """Makes token ids with the mask: the arguments of the library, and the tensors of a request."""
    config = getattr(config, "text_config", config)
    ids = torch.randint(2, config.vocab_size, mask.shape)
    if family.blank:
        ids[~torch.from_numpy(mask)] = 0
    if family.masks is not None:
        ids[(torch.rand(ids.shape) < 0.2) & torch.from_numpy(mask)] = family.masks
        ids[np.arange(len(ids)), mask.argmax(axis=1)] = 3  # masks alone are NaN in the library
    if family.pooled == "end":  # the last token, and perhaps others before it
        kept = torch.from_numpy(mask)
        ids[~kept] = 1
        ids[(torch.rand(ids.shape) < 0.1) & kept] = config.eos_token_id
        ids[np.arange(len(ids)), mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)] = config.eos_token_id
    if family.counted:  # padding within the text, and padding of either id
        ids[torch.rand(ids.shape) < 0.2] = 1
    arguments = {"input_ids": ids, "attention_mask": torch.from_numpy(mask.astype(np.int64))}
    index = np.broadcast_to(np.arange(mask.shape[1]), mask.shape)
    # The library's own positions, but where tables count from the left and padding is there: the server leaves it out.
    if family.position_ids and not family.counted and not mask[:, 0].all():
        arguments["position_ids"] = torch.from_numpy(np.where(mask, index - mask.argmax(axis=1)[:, None], 0))
    tensors = {"token_ids": ids.numpy(), "attention_mask": mask.astype(np.uint8)}
    if family.row_positions is not None:
        tensors["position_ids"] = np.ascontiguousarray(index) + family.row_positions
    return arguments, tensors


def compare_text(family: Family, model, encode, name: str) -> float:
    worst = 0.0
    for mask in masks().values():
        arguments, tensors = text_case(family, model.config, mask)
        exact, exact_pooled = run_library(family, model, arguments, torch.float64)
        float32, float32_pooled = run_library(family, model, arguments, torch.float32)
        pooler = family.pooler and bool({"first": mask[:, 0].all(), "last": mask[:, -1].all(), "end": True}[family.pooled])
        served, pooled = ask(encode, name, len(exact) - 1, pooler, **tensors)
        worst = max(worst, share_of_bound(exact[1:], float32[1:], served, mask))
        if pooler:
            worst = max(worst, share_of_bound([exact_pooled], [float32_pooled], [pooled], slice(None)))
    return worst


def scores_of(family: Family, model, arguments: dict, dtype) -> np.ndarray:
    """The scores of the library's head: one row for a sequence, or for each of its tokens."""
    typed = {key: value.to(dtype) if value.is_floating_point() else value for key, value in arguments.items()}
    model.to(dtype)
    cases = each_alone(model, typed) if family.alone else [(typed, 0, None)]
    scores = []
    with torch.no_grad():
        for one, row, span in cases:
            out = model(**one)
            own = torch.stack([out.start_logits, out.end_logits], -1) if "start_logits" in out else out.logits
            if span and own.dim() == 3:
                padded = torch.zeros(1, arguments["attention_mask"].shape[1], own.shape[2], dtype=own.dtype)
                padded[:, span] = own
                own = padded
            scores.append(own)
    return torch.cat(scores).double().numpy()


def compare_tokens(family: Family, model, encode, name: str) -> float:
    """The scores that the model's head gives to each token."""
    worst = 0.0
    for mask in masks().values():
        arguments, tensors = text_case(family, model.config, mask)
        scores = [scores_of(family, model, arguments, dtype) for dtype in (torch.float64, torch.float32)]
        answer = encode(pb.EncodeRequest(model=name, omit_hidden_states=True, return_token_vectors=True,
                                         **{key: to_tensor(value) for key, value in tensors.items()}))
        worst = max(worst, share_of_bound(scores[:1], scores[1:], [to_array(answer.token_vectors)], mask))
    return worst


def compare_words(family: Family, model, encode, name: str) -> float:
    """SPLADE's vectors over the vocabulary, by the model's head."""
    worst = 0.0
    for mask in masks().values():
        arguments, tensors = text_case(family, model.config, mask)
        exact, float32 = (splade_of(scores_of(family, model, arguments, dtype), mask) for dtype in (torch.float64, torch.float32))
        answer = encode(pb.EncodeRequest(model=name, omit_hidden_states=True, return_sparse=True,
                                         **{key: to_tensor(value) for key, value in tensors.items()}))
        worst = max(worst, share_of_bound([exact], [float32], [to_dense(answer.sparse, exact.shape[1])], slice(None)))
    return worst


def splade_of(logits: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Formal et al. 2021: the largest log(1 + max(0, logit)) of the kept tokens, for each word."""
    return np.log1p(np.maximum(logits, 0) * mask[:, :, None]).max(axis=1)


def compare_classes(family: Family, model, encode, name: str) -> float:
    """The scores of the model's head."""
    if family.text:
        arguments, tensors = text_case(family, model.config, masks()["right"])
    else:
        arguments = {key: torch.cat([family.inputs(model.config)[key] for _ in range(3)])
                     for key in family.inputs(model.config)}
        body = getattr(model, model.base_model_prefix, model)
        tensors = {"hidden_states": run_library(family, body, arguments, torch.float64)[0][0].astype(np.float32)}
    scores = [scores_of(family, model, arguments, dtype) for dtype in (torch.float64, torch.float32)]
    answer = encode(pb.EncodeRequest(model=name, omit_hidden_states=True, return_pooled=True, pooling=pb.CLASSIFIER,
                                     **{key: to_tensor(value) for key, value in tensors.items()}))
    return share_of_bound(scores[:1], scores[1:], [to_array(answer.pooled)], slice(None))


def lowest_cosine(family: Family, model, encode, name: str) -> float:
    """The lowest cosine of any token's last hidden state."""
    mask = masks()["right"]
    if family.text:
        arguments, tensors = text_case(family, model.config, mask)
        exact, _ = run_library(family, model, arguments, torch.float64)
        rows = exact[-1][mask]
    else:
        exact = [run_library(family, model, family.inputs(model.config), torch.float64)[0] for _ in range(3)]
        tensors = {"hidden_states": np.concatenate([states[0] for states in exact]).astype(np.float32)}
        mask = np.ones(tensors["hidden_states"].shape[:2], bool)
        rows = np.concatenate([states[-1] for states in exact])[mask]
    served = ask(encode, name, 1, False, **tensors)[0][-1][mask]
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(served, axis=1)
    return float(((rows * served).sum(axis=1) / lengths).min())


def take_features(family: Family, model, inputs: list):
    """The features from which the server's front makes the rows that enter layer 0, [B, S, W]; None if the model has no
    front."""
    if family.pixels:
        return np.concatenate([one[family.pixels].numpy() for one in inputs])
    model = model.to(torch.float64)
    if family.positions:
        own = family.positions(model).detach().numpy()
        return np.concatenate([run_library(family, model, one, torch.float64)[0][0] - own for one in inputs])
    found = family.features(model)
    if found is None:
        return None
    module, side = found
    taken = []
    hook = module.register_forward_hook(
        lambda _, came, left: taken.append((came[0] if side == "input" else left).detach().clone().numpy()))
    for one in inputs:
        run_library(family, model, one, torch.float64)
    hook.remove()
    return np.concatenate(taken)


def compare_signals(family: Family, model, encode, name: str) -> float:
    """Runs each sequence alone in the library, and all of them in one padded request."""
    inputs = [family.inputs(model.config) for _ in range(3)]
    exact = [run_library(family, model, one, torch.float64) for one in inputs]
    float32 = [run_library(family, model, one, torch.float32) for one in inputs]
    entering = np.concatenate([states[0] for states, _ in float32])
    padded = np.pad(entering, ((0, 0), (0, 5), (0, 0))).astype(np.float32)
    mask = np.pad(np.ones(entering.shape[:2], np.uint8), ((0, 0), (0, 5)))
    served, pooled = ask(encode, name, len(exact[0][0]) - 1, family.pooler, hidden_states=padded, attention_mask=mask)
    answers = [(served, pooled)]
    features = take_features(family, model, inputs)
    if features is not None:
        answers.append(ask(encode, name, len(exact[0][0]) - 1, family.pooler, features=features.astype(np.float32)))
    return max(worst_of_signals(family, exact, float32, *answer) for answer in answers)


def worst_of_signals(family: Family, exact, float32, served, pooled) -> float:
    worst = 0.0
    for i, ((states, vector), (states32, vector32)) in enumerate(zip(exact, float32)):
        own = [layer[i:i + 1, :states[0].shape[1]] for layer in served]
        worst = max(worst, share_of_bound(states[1:], states32[1:], own, slice(None)))
        if family.pooler:
            worst = max(worst, share_of_bound([vector], [vector32], [pooled[i:i + 1]], slice(None)))
    return worst


def token_heads(family: Family) -> dict:
    """The family's models that score tokens, by the name of the variant."""
    if family.tokens:
        return {"token-classes": family.tokens.__name__}
    if not family.text or not family.classifier:
        return {}
    stem = family.classifier.__name__.removesuffix("ForSequenceClassification")
    heads = {"token-classes": stem + "ForTokenClassification", "answer-ends": stem + "ForQuestionAnswering"}
    return {variant: name for variant, name in heads.items()
            if hasattr(transformers, name) and name not in OTHER_HEADS}


def word_heads(name: str, family: Family) -> dict:
    """The family's masked language models, by the name of the variant."""
    stem = family.classifier.__name__.removesuffix("ForSequenceClassification") if family.classifier else ""
    return {variant: {"model": getattr(transformers, stem + "ForMaskedLM"), **options}
            for variant, options in WORD_HEADS.get(name, {}).items()}


def compare_family(program: str, name: str, family: Family) -> tuple:
    """Returns variant -> worst error, as a share of its bound, and compute type -> lowest cosine."""
    variants = dict(family.variants)
    if family.classifier:
        variants["classifier"] = {"model": family.classifier, "num_labels": 5}
    variants |= {head: {"model": getattr(transformers, model)} for head, model in token_heads(family).items()}
    variants |= word_heads(name, family)
    first = next(iter(variants))
    with tempfile.TemporaryDirectory() as scratch:
        folders = {variant: pathlib.Path(scratch) / variant for variant in variants}
        models = {variant: make(family, options, folders[variant]) for variant, options in variants.items()}
        sources = {variant: f"{folder}{family.options}" for variant, folder in folders.items()}
        sources |= {dtype: f"{sources[first]},dtype={dtype},emulate=true" for dtype in LOWEST_COSINES}
        with serve(program, sources, "--max-request-tokens", "512", "--max-batch-tokens", "512") as port:
            encode = encoder(port)
            one = compare_text if family.text else compare_signals
            by_variant = {variant: compare_classes for variant in variants if "model" in variants[variant]}
            by_variant |= dict.fromkeys(token_heads(family), compare_tokens)
            by_variant |= dict.fromkeys(word_heads(name, family), compare_words)
            shares = {variant: by_variant.get(variant, one)(family, model, encode, variant)
                      for variant, model in models.items()}
            return shares, {dtype: lowest_cosine(family, models[first], encode, dtype) for dtype in LOWEST_COSINES}


def compare(program: str, only=()) -> dict:
    figures = {"families.passed": 0, "families.failed": 0, "configurations.passed": 0, "worst_error.f32": 0.0,
               **{f"lowest_cosine.{dtype}": 1.0 for dtype in LOWEST_COSINES}}
    print(f"{'family':24}{'configurations':>16}{'agree':>8}{'worst error / bound':>22}  {'of':14}"
          + "".join(f"{'cosine ' + dtype:>14}" for dtype in LOWEST_COSINES))
    for name, family in FAMILIES.items():
        if only and name not in only:
            continue
        torch.manual_seed(zlib.crc32(name.encode()))  # gives the same weights whatever ran before
        shares, cosines = compare_family(program, name, family)
        agree = sum(share <= 1 for share in shares.values())
        worst = max(shares, key=shares.get)
        print(f"{name:24}{len(shares):16}{agree:8}{shares[worst]:22.3g}  {worst:14}"
              + "".join(f"{cosine:14.6f}" for cosine in cosines.values()), flush=True)
        passed = agree == len(shares) and all(cosines[dtype] >= least for dtype, least in LOWEST_COSINES.items())
        figures["families.passed" if passed else "families.failed"] += 1
        figures["configurations.passed"] += int(agree)  # numpy's bool, which JSON does not know
        figures["worst_error.f32"] = max(figures["worst_error.f32"], float(shares[worst]))
        for dtype, cosine in cosines.items():
            figures[f"lowest_cosine.{dtype}"] = min(figures[f"lowest_cosine.{dtype}"], cosine)
    return figures


if __name__ == "__main__":
    print(compare(sys.argv[1], sys.argv[2:]))
