"""Client of Attendant, the inference server for transformer encoder layers on CPUs.

    from attendant_client import Client

    client = Client("host:8001")
    answer = client.encode("minilm", input_ids=[[101, 7592, 2088, 102]], pooling="model")
    answer.pooled                                                  # [1, 384]
"""
from .aio import AsyncClient
from .answers import Attended, Encoded
from .channel import Tls
from .client import Client
from .errors import (AttendantError, Cancelled, DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument, NotFound,
                     PermissionDenied, ServerBusy, Unauthenticated, Unavailable, Unimplemented)
from .options import AttendOptions, EncodeOptions, Memory
from .requests import Request, attend_request, encode_request
from .sparse import SparseVectors
from .stream import Part, StreamAnswer

__all__ = [
    "AsyncClient", "AttendOptions", "Attended", "AttendantError", "Cancelled", "Client", "DeadlineExceeded", "EncodeOptions",
    "Encoded", "FailedPrecondition", "Internal", "InvalidArgument", "Memory", "NotFound", "Part", "PermissionDenied", "Request",
    "ServerBusy", "SparseVectors", "StreamAnswer", "Tls", "Unauthenticated", "Unavailable", "Unimplemented", "attend_request",
    "encode_request",
]
