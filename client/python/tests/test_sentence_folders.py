"""Folders of sentence-transformers, compared with the library's own values, which sentence_folders.py has written."""
import json

import numpy as np
import pytest
from attendant_client import Client, messages
from programs import run_server
from sentence_folders import KINDS, PROMPT_TOKENS, SENTENCE_CONFIGS, SEQUENCES, VALUES, write_sentence_folder

EXPECTED = json.loads(VALUES.read_text())
MULTI = [kind for kind in KINDS if kind.startswith("multi")]


@pytest.fixture(scope="module")
def client(programs, tmp_path_factory):
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    for kind, folder in folders.items():
        write_sentence_folder(folder, kind)
    with run_server(programs, {**folders, "plain-mean": f"{folders['plain']},pooling=mean"}) as running:
        with Client(running.address) as made:
            yield made


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in MULTI])
def test_vectors_of_texts(client, kind):
    pooling = messages.enum_values("Pooling")
    wanted = {number: name for name, number in pooling.items()}[client.model(kind).text_pooling]
    prompt_tokens = None if kind == "plain" else PROMPT_TOKENS  # without modules nothing is left out
    made = client.encode(kind, input_ids=SEQUENCES, pooling=wanted, prompt_tokens=prompt_tokens).pooled
    np.testing.assert_allclose(made, EXPECTED[kind], atol=2e-6)


def test_an_option_makes_ids_and_texts_the_same(client):
    assert client.model("plain-mean").text_pooling == messages.MODEL_POOLING
    made = client.encode("plain-mean", input_ids=SEQUENCES, pooling="model").pooled
    np.testing.assert_allclose(made, EXPECTED["plain"], atol=2e-6)
    assert np.abs(client.encode("plain", input_ids=SEQUENCES, pooling="model").pooled - made).max() > 0.1  # the pooler


@pytest.mark.parametrize("kind", MULTI)
@pytest.mark.parametrize("task", ["query", "document"])
def test_vectors_of_tokens(client, kind, task):
    answer = client.encode(kind, input_ids=SEQUENCES, return_token_vectors=True, task=task)
    skips = client.tokenizer(kind)
    for ids, rows, expected in zip(SEQUENCES, answer.token_vectors, EXPECTED[kind][task]):
        skipped = set(skips.skipped_ids) if task in skips.skip_tasks else set()
        kept = [one not in skipped and (task == "query" or not skips.only_ids or one in skips.only_ids) for one in ids]
        np.testing.assert_allclose(rows[kept], np.reshape(expected, (-1, rows.shape[1])), atol=2e-6)
        assert not rows[np.invert(kept)].any()


@pytest.mark.parametrize("kind", SENTENCE_CONFIGS)
def test_prefixes_of_pylate_are_prompts_of_special_tokens(client, kind):
    found = client.tokenizer(kind)
    assert dict(found.prompts) == EXPECTED[kind]["prompts"]
    assert found.max_sequence_length == SENTENCE_CONFIGS[kind]["document_length"]
    added = {token["content"]: token for token in json.loads(found.tokenizer_json)["added_tokens"]}
    for content, number in (("##q", 47), ("##d", 34)):
        assert added[content]["id"] == number and added[content]["special"] and not added[content]["normalized"]
