"""Texts in, vectors and scores out: `pip install 'attendant-client[text]'`.

    from attendant_client.text import TextModel

    model = TextModel("localhost:8001")
    model.embed(["a text", "another one"])                         # [2, 384]

The texts are tokenized here, by the tokenizer of the model's own folder, which the server hands out.
"""
from .aio import AsyncTextModel
from .model import TextModel
from .scores import LabelScore, Ranked
from .tokenizer import Text, Tokens

__all__ = ["AsyncTextModel", "LabelScore", "Ranked", "Text", "TextModel", "Tokens"]
