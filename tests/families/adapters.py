"""LoRA adapters that PEFT saves for small random models, merged by the server, compared with what PEFT computes."""
import pathlib
import sys
import tempfile

import peft
import torch

from library_families import FAMILIES
from random_models import compare_text, make
from serving import encoder, serve
from sparse_encoders import figures_of

# By the family: options of the adapter. Fused projections, tables of embeddings, other ranks and scales.
ADAPTERS = {
    "bert": {"target_modules": ["query", "value", "word_embeddings"]},
    "distilbert": {"target_modules": "all-linear", "rank_pattern": {"attention.q_lin": 2}, "alpha_pattern": {"q_lin": 3}},
    "roberta": {"target_modules": ["query", "key", "dense"], "use_rslora": True},
    "modernbert": {"target_modules": ["Wqkv", "Wi", "Wo"]},
}


def adapt(name: str, base: pathlib.Path, folder: pathlib.Path):
    """Saves a model and an adapter of it, and returns the model with the adapter merged."""
    model = peft.get_peft_model(make(FAMILIES[name], {}, base), peft.LoraConfig(r=4, lora_alpha=8, **ADAPTERS[name]))
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_" in key:
                parameter.normal_(0, 0.2)
    model.save_pretrained(folder)
    return model.merge_and_unload()


def compare(program: str) -> dict:
    """Returns the largest errors, as shares of their bounds."""
    shares = {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {name: (pathlib.Path(scratch) / name / "base", pathlib.Path(scratch) / name / "adapter") for name in ADAPTERS}
        torch.manual_seed(7)
        models = {name: adapt(name, *of_name) for name, of_name in folders.items()}
        sources = {name: f"{base},adapter={adapter}" for name, (base, adapter) in folders.items()}
        with serve(program, sources) as port:
            for name, model in models.items():
                shares[name] = compare_text(FAMILIES[name], model.eval(), encoder(port), name)
                print(f"{name + ' with an adapter':38}{shares[name]:14.3g}", flush=True)
    return figures_of("adapters", shares)


if __name__ == "__main__":
    print(compare(sys.argv[1]))
