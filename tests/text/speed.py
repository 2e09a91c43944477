"""How many times as fast as PyPI's tokenizers, with one thread, the same texts, and both in turns."""

import os
import statistics
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import program as programs  # noqa: E402
import strings  # noqa: E402
import tokenizers_made  # noqa: E402
from tokenizers import normalizers, pre_tokenizers  # noqa: E402

KINDS = {
    "wordpiece": lambda corpus: tokenizers_made.wordpiece(corpus, normalizers.BertNormalizer(), size=8000),
    "unigram": lambda corpus: tokenizers_made.unigram(corpus, normalizers.NFKC(), size=4000),
    "bpe": lambda corpus: tokenizers_made.bpe(corpus, pre=pre_tokenizers.ByteLevel(add_prefix_space=False), size=8000),
}
LENGTHS = {"short": (3000, 9), "long": (60, 700)}
ROUNDS = 5


def isa():
    with open("/proc/cpuinfo") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    return "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "other"


def peer_seconds(tokenizer, texts):
    start = time.process_time()
    tokenizer.encode_batch_fast(texts)
    return time.process_time() - start


def measure(program):
    corpus, figures = strings.corpus(), {}
    for kind, make in KINDS.items():
        tokenizer = make(corpus)
        for length, (count, tokens) in LENGTHS.items():
            texts = strings.prose(7, count, tokens)
            ratios = []
            for _ in range(ROUNDS):
                peer = min(peer_seconds(tokenizer, texts) for _ in range(3))
                own, made = programs.seconds(program, tokenizer.to_str(), [[text] for text in texts], 3)
                ratios.append(peer / own)
            figures[f"text.over_tokenizers.{kind}.{length}"] = round(statistics.median(ratios), 2)
            print(f"{kind} {length}: {own / len(texts) * 1e6:.2f} us a text, {made / own / 1e6:.2f} M tokens/s, "
                  f"{peer / own:.2f} times as fast [{min(ratios):.2f}, {max(ratios):.2f}]", flush=True)
    figures["text.over_tokenizers"] = min(figures.values())
    return figures
