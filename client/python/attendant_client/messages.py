"""The messages and enums of `attendant.v1`, made at run time from the descriptor set in this directory.

No code is generated, so the versions of protobuf's compiler and runtime need not match. The descriptors have a separate pool,
so an application may also load modules that protoc has made from the same files.

Every message of the protocol is a class of this module, and every value of its enums an integer: `EncodeRequest`, `MEAN`.
"""
from __future__ import annotations

import importlib.resources
from typing import Any, Dict

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "attendant.v1.EncoderService"

_pool = descriptor_pool.DescriptorPool()
_files = descriptor_pb2.FileDescriptorSet.FromString(
    importlib.resources.files(__package__).joinpath("attendant_v1.binpb").read_bytes())


def _make_class(name: str) -> Any:
    descriptor = _pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(_pool).GetPrototype(descriptor)  # before protobuf 4.22


def _load() -> None:
    for file in _files.file:
        _pool.AddSerializedFile(file.SerializeToString())
    for file in _files.file:
        for message in file.message_type:
            globals()[message.name] = _make_class(f"{file.package}.{message.name}")
        for enum in file.enum_type:
            globals().update({value.name: value.number for value in enum.value})


def enum_values(name: str) -> Dict[str, int]:
    """Returns the values of an enum of the protocol in lower case, such as {"model_pooling": 0, "first_token": 1, …}."""
    values = _pool.FindEnumTypeByName(f"attendant.v1.{name}").values
    return {value.name.lower(): value.number for value in values}


def method_path(name: str) -> str:
    """Returns the path of a method. KeyError if the service has no such method."""
    method = _pool.FindServiceByName(SERVICE).methods_by_name[name]
    return f"/{SERVICE}/{method.name}"


_load()
