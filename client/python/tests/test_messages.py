"""The committed descriptor set and stub are those of proto/."""
import importlib.util
import pathlib

import pytest
from attendant_client import channel, messages
from google.protobuf import descriptor_pb2

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "make_messages.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_messages", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_descriptor_set_is_what_protoc_makes(tool):
    committed = (tool.PACKAGE / "attendant_v1.binpb").read_bytes()
    made = tool.make_descriptor_set()
    parse = descriptor_pb2.FileDescriptorSet.FromString
    assert parse(committed) == parse(made), "run tools/make_messages.py"


def test_stub_is_that_of_the_descriptor_set(tool):
    committed = (tool.PACKAGE / "messages.pyi").read_text(encoding="utf-8")
    assert committed == tool.make_stub(tool.make_descriptor_set()), "run tools/make_messages.py"


def test_messages_keep_their_fields():
    request = messages.GetTokenizerResponse(
        tokenizer_json=b"{}", prompts={"query": "query: "}, special_ids={"cls": 101}, labels=["no", "yes"])
    read = messages.GetTokenizerResponse.FromString(request.SerializeToString())
    assert read.prompts["query"] == "query: "
    assert list(read.labels) == ["no", "yes"]
    assert read.special_ids["cls"] == 101


def test_enums_and_methods():
    assert messages.enum_values("Pooling")["mean"] == messages.MEAN
    assert messages.method_path("Encode") == "/attendant.v1.EncoderService/Encode"
    with pytest.raises(KeyError):
        messages.method_path("Decode")


def test_methods_that_are_retried_are_those_that_may_run_twice():
    service = messages._pool.FindServiceByName(messages.SERVICE)
    assert set(channel.RETRIED) == set(service.methods_by_name) - {"EncodeStream", "PutMemory", "DropMemory"}
