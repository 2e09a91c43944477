"""Models whose texts the server does not take. Needs no package of PyPI."""
import sys
import types

import numpy as np
import pytest
from attendant_client import Client, FailedPrecondition, InvalidArgument, NotFound, messages
from attendant_client.text import TextModel
from attendant_client.text.rows import Wish
from attendant_client.text.tasks import Tasks
from attendant_client.text.tokenizer import ModelTokenizer
from bert import SMALL, write_checkpoint
from fake_server import serve
from programs import run_server


class _Tokenizer:
    @staticmethod
    def from_str(text):
        raise Exception("data did not match any variant")  # as the package does


@pytest.mark.parametrize("content, reason", [(b"{}", "data did not match"), (b"\xff", "can't decode")])
def test_a_tokenizer_that_the_package_cannot_read_is_named(monkeypatch, content, reason):
    monkeypatch.setitem(sys.modules, "tokenizers", types.SimpleNamespace(Tokenizer=_Tokenizer))
    found = messages.GetTokenizerResponse(tokenizer_json=content)
    tokenizer = ModelTokenizer(found, messages.GetModelResponse(name="org/m"))
    with pytest.raises(FailedPrecondition, match=f"model org/m does not accept texts: its tokenizer.json cannot be read: .*{reason}"):
        tokenizer.ids(["a text"], "right")


def test_a_model_whose_tokenizer_cannot_be_read_takes_ids_alone(programs, tmp_path):
    write_checkpoint(tmp_path, SMALL)
    (tmp_path / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n")
    with run_server(programs, {"BAAI/bge": tmp_path}) as running, Client(running.address) as client:
        assert client.models() == ["BAAI/bge"]
        assert client.model("BAAI/bge").name == "BAAI/bge"
        assert client.encode("BAAI/bge", input_ids=[[1, 2, 3]]).hidden_states[0].shape[0] == 3
        with pytest.raises(NotFound, match="model BAAI/bge has no tokenizer: its tokenizer.json cannot be read: .* git lfs pull"):
            TextModel(client, "BAAI/bge").embed("a text")


class _PaddingTokenizer:
    @classmethod
    def from_str(cls, text):
        return cls()

    def no_padding(self):
        self.padding = None

    def no_truncation(self):
        pass

    def enable_padding(self, *, direction, pad_id, length):
        self.padding = direction, pad_id, length

    def encode_batch(self, texts):
        return [types.SimpleNamespace(ids=self.padding, type_ids=[]) for _ in texts]


@pytest.mark.parametrize("padding, expected", [({"length": 64, "id": 1}, ("right", 1, 64)), (None, None),
                                               ({"length": 8, "is_left": True}, ("left", 0, 8))])
def test_texts_are_padded_as_the_model_says(monkeypatch, padding, expected):
    monkeypatch.setitem(sys.modules, "tokenizers", types.SimpleNamespace(Tokenizer=_PaddingTokenizer))
    embeddings = messages.EmbeddingDescription(text_padding=messages.TextPadding(**padding) if padding else None)
    tokenizer = ModelTokenizer(messages.GetTokenizerResponse(), messages.GetModelResponse(embeddings=embeddings))
    assert tokenizer.ids(["a text"], None)[0][0] == expected


class _CodePoints(_PaddingTokenizer):
    def encode_batch(self, texts):
        return [types.SimpleNamespace(ids=[ord(letter) for letter in "".join(text)], type_ids=[]) for text in texts]


def test_default_prompts_go_before_texts_and_pairs(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", types.SimpleNamespace(Tokenizer=_CodePoints))
    found = messages.GetTokenizerResponse(prompts={"query": "a "}, default_prompt="query")
    tasks = Tasks(messages.GetModelResponse(name="m", classes=1), found)
    wish = Wish("classifier", truncation=None)
    for rows, sent in ((tasks.rerank("b", ["c"], wish), "a bc"), (tasks.classify(["b"], wish), "a b")):
        request = messages.EncodeRequest.FromString(rows.make([0]).message())
        assert "".join(map(chr, np.frombuffer(request.token_ids.data, np.int32))) == sent


def test_older_servers_are_told_apart(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)  # as if it were not installed
    model, found = messages.GetModelResponse(name="m", pooled_width=4), messages.GetTokenizerResponse(tokenizer_json=b"{}")
    methods = {"GetModel": lambda request, context: model.SerializeToString(),
               "GetTokenizer": lambda request, context: found.SerializeToString()}
    with serve(methods) as address, Client(address) as client:
        for call in (client.encode, client.tokenize):
            with pytest.raises(InvalidArgument, match='texts: not supported by model "m": the server does not support texts'):
                call("m", texts=["a"])
        with pytest.raises(ImportError, match=r"which is older than texts.*pip install 'attendant-client\[tokenizers\]'"):
            TextModel(client, "m").embed("a")


def test_so_are_models_whose_texts_the_server_does_not_take(client):
    with pytest.raises(InvalidArgument, match='texts: not supported by model "tiny": .+'):
        client.encode("tiny", texts=["a"])
