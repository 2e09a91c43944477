"""The texts that every server embeds: English ones of unequal lengths, the same for a seed, and short ones."""
import json
import math
import pathlib
import random

SENTENCES = pathlib.Path(__file__).parents[2] / "families" / "sentences.jsonl"
DEFAULT_SEED = 5
COUNT = 512
# Words of a text, log-normal: half of the texts are shorter than a tweet, a few are paragraphs. The longest stay below the
# 256 tokens at which MiniLM is meant to be cut, since not all servers cut there.
MEDIAN_WORDS, SIGMA, FEWEST_WORDS, MOST_WORDS = 18, 0.8, 3, 140
MOST_CHARACTERS = 800  # rare words are several tokens
SHORT_TOKENS = 14  # with those at both ends


def _lines() -> list:
    return [json.loads(line) for line in SENTENCES.read_text(encoding="utf-8").splitlines()]


def sentences() -> list:
    return [line["text"] for line in _lines()]


def short() -> dict:
    """Returns the ids of each sentence of SHORT_TOKENS tokens."""
    return {line["text"]: line["ids"] for line in _lines() if len(line["ids"]) == SHORT_TOKENS}


def ragged(known: list, count: int = COUNT, seed: int = DEFAULT_SEED) -> list:
    """`count` texts, cut from the words of sentences that follow each other."""
    dice = random.Random(seed)
    words = " ".join(dice.sample(known, len(known))).split()
    made, at = [], 0
    for _ in range(count):
        length = round(dice.lognormvariate(math.log(MEDIAN_WORDS), SIGMA))
        length = max(FEWEST_WORDS, min(MOST_WORDS, length))
        text = " ".join(words[(at + i) % len(words)] for i in range(length))
        made.append(text[:MOST_CHARACTERS].rstrip())
        at += length
    return made
