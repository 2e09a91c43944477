"""Texts in, vectors and scores out.

    from attendant_client.text import TextModel

    model = TextModel("localhost:8001")
    model.embed(["a text", "another one"])                         # [2, 384]

The server tokenizes the texts. If it does not support the model's tokenizer, or is too old, they are tokenized here, which
needs `pip install 'attendant-client[tokenizers]'`.
"""
from ..texts import Text
from .aio import AsyncTextModel
from .model import TextModel
from .scores import LabelScore, Ranked
from .tokenizer import Tokens

__all__ = ["AsyncTextModel", "LabelScore", "Ranked", "Text", "TextModel", "Tokens"]
