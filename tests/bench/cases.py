"""The cases that are measured: models, sequence lengths, token ids, and the ways of putting sequences into batches."""
import dataclasses
import json
import pathlib
import random
import statistics

PACKED_TOKENS = 1024  # in the batches that the engine forms from unequal sequences
CLS, SEP = 101, 102
DEFAULT_SEED = 5  # of the order in which the sequences of a ragged set arrive


@dataclasses.dataclass(frozen=True)
class Model:
    """The shape of an encoder, as far as it determines the useful work, and the kind of checkpoint that it is in."""
    name: str
    layers: int
    hidden_size: int
    heads: int
    feed_forward_width: int
    embeds: bool = True  # takes token ids, or else hidden states
    kind: str = "bert"  # the "model_type" of its config.json
    key_value_heads: int = 0  # 0: heads
    head_width: int = 0  # 0: hidden_size / heads
    gated: bool = False  # the feed-forward block has two products of its input
    causal: bool = False
    large: bool = False  # weights of gigabytes, of which only so many contenders fit into memory at once

    @property
    def query_width(self) -> int:
        return self.heads * (self.head_width or self.hidden_size // self.heads)

    @property
    def key_value_width(self) -> int:
        """The width of the keys, and that of the values."""
        return self.query_width // self.heads * (self.key_value_heads or self.heads)

    def flops(self, lengths) -> float:
        """The multiplications and additions of the layers for these kept tokens only."""
        e, f = self.hidden_size, self.feed_forward_width
        tokens = sum(lengths)
        pairs = sum(n * (n + 1) / 2 if self.causal else n * n for n in lengths)
        projections = 4 * e * (self.query_width + self.key_value_width)
        feed_forward = (6 if self.gated else 4) * e * f
        return self.layers * ((projections + feed_forward) * tokens + 4 * self.query_width * pairs)


MODELS = {model.name: model for model in (
    Model("bert-base", 12, 768, 12, 3072),
    Model("bert-large", 24, 1024, 16, 4096),
    Model("minilm-l6", 6, 384, 12, 1536),
    Model("vit-base", 12, 768, 12, 3072, embeds=False),
    Model("qwen3-0.6b", 28, 1024, 16, 3072, kind="qwen3", key_value_heads=8, head_width=128, gated=True, causal=True,
          large=True),
    Model("embeddinggemma", 24, 768, 3, 1152, kind="gemma3_text", key_value_heads=1, head_width=256, gated=True,
          large=True),
    Model("bge-m3", 24, 1024, 16, 4096, kind="xlm-roberta", large=True),
)}


@dataclasses.dataclass(frozen=True)
class Case:
    """Sequences in the order in which they arrive."""
    model: Model
    name: str
    lengths: tuple
    peer_batch: int  # sequences in a batch that a padding engine forms
    with_peers: bool = True

    @property
    def ragged(self) -> bool:
        return self.name.startswith("ragged-")

    @property
    def latency(self) -> bool:
        """Whether the case is one call at a time."""
        return len(self.lengths) == 1

    @property
    def tokens(self) -> int:
        return sum(self.lengths)

    @property
    def short(self) -> bool:
        """Whether there are so few tokens that the bound, whose T is rounded up to 64, is not meaningful."""
        return self.tokens < 64

    @property
    def priced(self) -> bool:
        """Whether the price of equal bits is measured, which is done for many rows and for few."""
        return self.model.name == "bert-base" and self.name in ("8x128", "1x16")

    @property
    def in_forms(self) -> bool:
        """Whether the engine is also compared with itself in other types."""
        return self.model.name == "bert-base" and self.name in ("8x128", "1x16", "1x4")


def _shuffled(lengths, seed: int) -> tuple:
    lengths = [max(4, min(512, round(length))) for length in lengths]
    random.Random(seed).shuffle(lengths)
    return tuple(lengths)


def _quantiles(count: int):
    return [(i + 0.5) / count for i in range(count)]


def _log_normal(median: float, sigma: float, count: int) -> list:
    normal = statistics.NormalDist()
    return [median * 2.718281828459045 ** (sigma * normal.inv_cdf(q)) for q in _quantiles(count)]


def uniform(count: int, seed: int = DEFAULT_SEED) -> tuple:
    """5 to 512 tokens, all equally often."""
    return _shuffled([5 + 507 * q for q in _quantiles(count)], seed)


def log_normal(count: int, seed: int = DEFAULT_SEED) -> tuple:
    """Median 24: short texts."""
    return _shuffled(_log_normal(24, 0.7, count), seed)


def ms_marco(count: int, seed: int = DEFAULT_SEED) -> tuple:
    """Half queries, half passages."""
    return _shuffled(_log_normal(9, 0.35, count // 2) + _log_normal(78, 0.42, count - count // 2), seed)


def _ragged(model: Model, sequences: int, seed: int, marco_peers: bool) -> list:
    return [Case(model, "ragged-uniform", uniform(sequences, seed), 8),
            Case(model, "ragged-lognormal", log_normal(4 * sequences, seed), 32),
            Case(model, "ragged-msmarco", ms_marco(4 * sequences, seed), 32, marco_peers)]


def _uniform_case(model: Model, batch: int, length: int, with_peers: bool = True) -> Case:
    return Case(model, f"{batch}x{length}", (length,) * batch, batch, with_peers and model.embeds)


def default_cases(seed: int = DEFAULT_SEED) -> list:
    """The cases that targets.py has targets for, and similar ones. The peers are left out where they would take most of
    the run."""
    base, small = MODELS["bert-base"], MODELS["minilm-l6"]
    return [_uniform_case(base, 8, 128), _uniform_case(base, 8, 512), _uniform_case(base, 1, 16),
            _uniform_case(base, 1, 4, with_peers=False), _uniform_case(base, 32, 32),
            _uniform_case(base, 4, 2048, with_peers=False),
            *_ragged(base, 24, seed, marco_peers=False), _uniform_case(small, 8, 128), _uniform_case(small, 1, 16),
            *large_cases()]


def large_cases() -> list:
    """The cases of the models whose weights take gigabytes."""
    qwen3, gemma, m3 = MODELS["qwen3-0.6b"], MODELS["embeddinggemma"], MODELS["bge-m3"]
    return [_uniform_case(qwen3, 4, 512), _uniform_case(qwen3, 1, 32), _uniform_case(gemma, 8, 128),
            _uniform_case(m3, 8, 128)]


def cases_in(dtype: str, wanted: list) -> list:
    """The cases of `wanted` that a default run measures in this type: in bf16x3, for which the peers would run f32 once
    more, only the one with a target, and large models in f32 only."""
    if dtype == "f32":
        return wanted
    if dtype != "bf16x3":
        return [case for case in wanted if not case.model.large]
    return [case for case in wanted if (case.model.name, case.name) == ("bert-base", "8x128")]


def full_cases(seed: int = DEFAULT_SEED) -> list:
    cases = []
    for model in MODELS.values():
        if model.large:
            continue
        cases += [_uniform_case(model, batch, length) for length in (16, 64, 128, 512) for batch in (1, 8, 32)]
        if model.name == "bert-base":
            cases += [_uniform_case(model, 32, 32), _uniform_case(model, 4, 2048),
                      _uniform_case(model, 1, 4, with_peers=False)]
        if model.embeds:
            cases += _ragged(model, 64, seed, marco_peers=True)
    return cases + large_cases()


class TokenIds:
    """Sequences of any length, cut from the sentences of the families suite."""

    def __init__(self, sentences: pathlib.Path):
        self._stream = [token for line in sentences.read_text(encoding="utf-8").splitlines()
                        for token in json.loads(line)["ids"] if token not in (CLS, SEP)]

    def sequences(self, lengths) -> list:
        made, at = [], 0
        for length in lengths:
            inner = [self._stream[(at + i) % len(self._stream)] for i in range(length - 2)]
            made.append([CLS, *inner, SEP])
            at += length
        return made


def packed(lengths) -> list:
    """Batches of indices in arrival order; a batch is closed before it would exceed PACKED_TOKENS."""
    batches, tokens = [[]], 0
    for index, length in enumerate(lengths):
        if batches[-1] and tokens + length > PACKED_TOKENS:
            batches.append([])
            tokens = 0
        batches[-1].append(index)
        tokens += length
    return batches


def _cut(order: list, size: int) -> list:
    return [order[i:i + size] for i in range(0, len(order), size)]


def arrangements(case: Case) -> dict:
    """The ways of giving the case to a padding engine: name -> batches of indices."""
    arrival = list(range(len(case.lengths)))
    if not case.ragged:
        return {"arrival": [arrival]}
    by_length = sorted(arrival, key=lambda i: case.lengths[i])
    return {"arrival": _cut(arrival, case.peer_batch),
            "sorted": _cut(by_length, case.peer_batch),
            "single": _cut(arrival, 1)}


def engine_batches(case: Case) -> list:
    return packed(case.lengths) if case.ragged else [list(range(len(case.lengths)))]
