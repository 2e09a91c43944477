"""Texts of ColBERT folders of PyLate, whose prefixes are tokens."""
import json

import pytest
from attendant_client import Client
from attendant_client.text.tokenizer import ModelTokenizer
from programs import run_server
from sentence_folders import SENTENCE_CONFIGS, TEXTS, VALUES, write_sentence_folder


@pytest.mark.parametrize("kind", SENTENCE_CONFIGS)
def test_texts_have_the_ids_of_the_library(programs, tmp_path, kind):
    write_sentence_folder(tmp_path, kind)
    expected = json.loads(VALUES.read_text())[kind]["texts"]
    with run_server(programs, {kind: tmp_path}) as running, Client(running.address) as client:
        tokenizer = ModelTokenizer(client.tokenizer(kind), client.model(kind))
        for task, text in TEXTS.items():
            assert tokenizer.ids([tokenizer.prompt(None, task) + text], "right") == [(expected[task], [])]
            (made,) = client.tokenize(kind, texts=[text], prompt_name=task, truncation="right")
            assert list(made.ids) == expected[task]
