"""The checkpoint as torch and Hugging Face load it, for the peers that need it in this form."""
import json
import multiprocessing
import pathlib

import torch
import transformers

import worker

SENTENCES = pathlib.Path(__file__).parents[2] / "families" / "sentences.jsonl"


class HiddenStates(torch.nn.Module):
    """From ids and mask [B, S] to the last hidden state [B, S, E] only, which keeps poolers and caches out of exported
    graphs."""

    def __init__(self, folder: pathlib.Path, dtype: torch.dtype = torch.float32, attention: str = "sdpa"):
        super().__init__()
        self.model = transformers.AutoModel.from_pretrained(folder, dtype=dtype, attn_implementation=attention)
        self.model.pooler = None
        self.model.config.use_cache = False
        self.eval()

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


class Traceable(HiddenStates):
    """For exporters that trace: the code of transformers that makes the masks of causal and windowed layers cannot be
    traced, so these models get finished masks."""

    def forward(self, input_ids, attention_mask):
        if hasattr(self.model.config, "layer_types"):
            attention_mask = self._masks(attention_mask)
        return super().forward(input_ids, attention_mask)

    def _masks(self, kept) -> dict:
        """Kind of layer -> mask [B, 1, S, S]."""
        config = self.model.config
        at = torch.arange(kept.shape[1])
        distance = at[:, None] - at[None, :]
        bidirectional = getattr(config, "use_bidirectional_attention", False)
        seen = distance == distance if bidirectional else distance >= 0
        masks = {"full_attention": seen}
        if "sliding_attention" in config.layer_types:
            masks["sliding_attention"] = seen & (distance.abs() < config.sliding_window)
        masks = {kind: mask[None, None] & kept[:, None, None, :].bool() for kind, mask in masks.items()}
        if config._attn_implementation == "sdpa":
            return masks
        least = torch.finfo(self.model.dtype).min
        return {kind: torch.where(mask, 0.0, least) for kind, mask in masks.items()}


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
    """The folder that `convert(path)` fills from the checkpoint, which is kept next to it."""
    target = folder / "converted" / name
    if not target.exists():
        unfinished = target.with_name("unfinished-" + name)
        unfinished.mkdir(parents=True, exist_ok=True)
        call_apart(convert, unfinished)
        unfinished.rename(target)
    return target


def call_apart(convert, *arguments) -> None:
    """Calls it in a process of its own, with which the memory goes that converting takes: several times that of the
    model."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)

    def call() -> None:
        try:
            convert(*arguments)
            theirs.send("")
        except Exception as error:  # the table shows as the reason whatever a library throws
            theirs.send(f"{type(error).__name__}: {error}")

    process = fork.Process(target=call)
    process.start()
    theirs.close()
    try:
        why = ours.recv()
    except EOFError:
        why = "the conversion ended without a word"
    process.join()
    if why:
        raise worker.Refused(why)
