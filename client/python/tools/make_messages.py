#!/usr/bin/env python3
"""Remakes what the package has of the protocol: attendant_client/attendant_v1.binpb and attendant_client/messages.pyi.

    tools/make_messages.py      Needs protoc (Debian's protobuf-compiler) and the package protobuf.
"""
from __future__ import annotations

import pathlib
import subprocess
import tempfile
import textwrap

from google.protobuf import descriptor_pb2

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "attendant_client"
PROTO = PACKAGE.parent.parent.parent / "proto"
FILES = ("attendant/v1/tensor.proto", "attendant/v1/encoder_service.proto")
SCALARS = {"FLOAT": "float", "DOUBLE": "float", "BOOL": "bool", "STRING": "str", "BYTES": "bytes"}  # all others are integers
HEADER = '''"""Types of the messages that messages.py makes. Made by tools/make_messages.py."""
from typing import Dict, Iterable, Mapping, MutableMapping, MutableSequence, Optional

from google.protobuf.message import Message

SERVICE: str

def enum_values(name: str) -> Dict[str, int]: ...
def method_path(name: str) -> str: ...
'''

Field = descriptor_pb2.FieldDescriptorProto
Descriptor = descriptor_pb2.DescriptorProto


def make_descriptor_set() -> bytes:
    """Returns the descriptor set that protoc makes of the protocol."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "set.binpb"
        subprocess.run(["protoc", f"--proto_path={PROTO}", "--include_imports", f"--descriptor_set_out={out}", *FILES], check=True)
        return out.read_bytes()


def single_type(field: Field) -> str:
    if field.type == Field.TYPE_MESSAGE:
        return field.type_name.rsplit(".", 1)[1]
    return SCALARS.get(Field.Type.Name(field.type).removeprefix("TYPE_"), "int")


def map_types(field: Field, message: Descriptor) -> str:
    """Returns "str, int" for a map<string, int64>; empty for any other field."""
    for nested in message.nested_type:
        if nested.options.map_entry and field.type_name.endswith("." + nested.name):
            return ", ".join(single_type(entry) for entry in nested.field)
    return ""


def write_field(field: Field, message: Descriptor) -> tuple[str, str]:
    """Returns the type of the attribute, and that of the argument of the constructor."""
    if types := map_types(field, message):
        return f"MutableMapping[{types}]", f"Optional[Mapping[{types}]]"
    single = single_type(field)
    if field.label == Field.LABEL_REPEATED:
        return f"MutableSequence[{single}]", f"Optional[Iterable[{single}]]"
    return single, f"Optional[{single}]"


def write_message(message: Descriptor) -> str:
    fields = [(field.name, *write_field(field, message)) for field in message.field]
    if not fields:
        return f"class {message.name}(Message):\n    def __init__(self) -> None: ...\n"
    attributes = "".join(f"    {name}: {attribute}\n" for name, attribute, _ in fields)
    # Lines break between arguments only.
    arguments = ", ".join(f"{name}: {argument} = ...".replace(" ", "~") for name, _, argument in fields)
    lines = textwrap.fill(arguments, 130, initial_indent=" " * 8, subsequent_indent=" " * 8).replace("~", " ")
    return f"class {message.name}(Message):\n{attributes}    def __init__(\n        self, *,\n{lines}\n    ) -> None: ...\n"


def make_stub(descriptor_set: bytes) -> str:
    """Returns the text of messages.pyi."""
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file
    values = "".join(f"{value.name}: int\n" for file in files for enum in file.enum_type for value in enum.value)
    return "\n".join([HEADER, values, *(write_message(message) for file in files for message in file.message_type)])


def main() -> None:
    descriptor_set = make_descriptor_set()
    (PACKAGE / "attendant_v1.binpb").write_bytes(descriptor_set)
    (PACKAGE / "messages.pyi").write_text(make_stub(descriptor_set), encoding="utf-8")


if __name__ == "__main__":
    main()
