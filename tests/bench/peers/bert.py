"""The checkpoint as torch and Hugging Face load it, for the peers that need it in this form."""
import json
import pathlib

import torch
import transformers

SENTENCES = pathlib.Path(__file__).parents[2] / "families" / "sentences.jsonl"


class HiddenStates(torch.nn.Module):
    """From ids and mask [B, S] to the last hidden state [B, S, E] only, which keeps the pooler out of exported
    graphs."""

    def __init__(self, folder: pathlib.Path, dtype: torch.dtype = torch.float32, attention: str = "sdpa"):
        super().__init__()
        self.model = transformers.AutoModel.from_pretrained(folder, dtype=dtype, attn_implementation=attention)
        self.model.pooler = None
        self.eval()

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def example() -> tuple:
    ids = torch.ones((2, 16), dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    return ids, mask


def calibration_sentences(count: int) -> list:
    """Token ids of English sentences."""
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["ids"] for line in lines[-count:]]


def converted(folder: pathlib.Path, name: str, convert) -> pathlib.Path:
    """The file that `convert(path)` makes of the checkpoint, which is kept next to it."""
    target = folder / "converted" / name
    if not target.exists():
        unfinished = target.with_name("unfinished-" + name)
        unfinished.mkdir(parents=True, exist_ok=True)
        convert(unfinished)
        unfinished.rename(target)
    return target
