"""Client: calls that wait for their answer."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

import grpc

from . import messages
from .answers import Attended, Encoded
from .channel import MAX_MESSAGE_BYTES, Connection, Metadata, Tls
from .errors import from_rpc
from .options import AttendOptions, EncodeOptions
from .requests import Request, attend_request, encode_request, message_request, put_memory_request
from .stream import StreamAnswer, StreamCodec, StreamItem

if TYPE_CHECKING:
    from typing_extensions import Unpack

A = TypeVar("A")
# Stands for the time-out of the client.
DEFAULT = -1.0


class Client:
    """A connection to a server, or to several. Threads may share it.

        client = Client("host:8001")
        answer = client.encode("minilm", input_ids=[[101, 7592, 102], [101, 102]], pooling="model")

    address: "host:port" (or "http://host:port", or https for TLS), "unix:/path", or several servers that calls go to in turn,
        "ipv4:10.0.0.1:8001,10.0.0.2:8001". The first call connects.
    timeout: seconds for a call that does not name its own; None: no limit. The server knows it, as the call's deadline.
    tls: True, or the PEM texts of a Tls. False: the connection is not encrypted.
    token: bearer token for a server that asks for one; refused without TLS, but for Unix sockets.
    retry: try calls again, up to four times in about two seconds, while servers refuse them with UNAVAILABLE.
    max_message_bytes: the largest message that is sent or received.
    channel_options: further arguments of gRPC's channel.
    proxy: go through the HTTP proxy that the environment names (grpc_proxy, https_proxy or http_proxy; no_proxy).
    """

    def __init__(self, address: str = "localhost:8001", *, timeout: Optional[float] = 60.0, tls: Union[Tls, bool] = False,
                 token: str = "", retry: bool = True, max_message_bytes: int = MAX_MESSAGE_BYTES,
                 channel_options: Sequence[Tuple[str, Any]] = (), proxy: bool = False) -> None:
        connection = Connection(address, tls, token, retry, max_message_bytes, channel_options, proxy)
        credentials = connection.credentials()
        self._timeout = timeout
        self._metadata = connection.metadata()
        self._channel: Any = (grpc.insecure_channel(connection.target, connection.options()) if credentials is None
                              else grpc.secure_channel(connection.target, credentials, connection.options()))

    def close(self) -> None:
        """Ends the connection; calls that are under way fail."""
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, request: Request[A], *, timeout: Optional[float] = DEFAULT, metadata: Metadata = ()) -> A:
        """Sends a request that `encode_request` or `attend_request` has made, and returns its answer."""
        call = self._channel.unary_unary(request.path)
        try:
            answer = call(request.message(), timeout=self._timeout if timeout == DEFAULT else timeout,
                          metadata=[*self._metadata, *metadata])
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        return request.read(answer)

    def encode(self, model: str = "", *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
               **options: Unpack[EncodeOptions]) -> Encoded:
        """Runs whole encoder layers. EncodeOptions lists the arguments, with shapes; Encoded is the answer.

        model: name of a loaded model; empty: the only one. timeout: seconds. metadata: headers, such as a traceparent.
        """
        return self.send(encode_request(model, **options), timeout=timeout, metadata=metadata)

    def attend(self, model: str = "", *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
               **options: Unpack[AttendOptions]) -> Attended:
        """Runs the attention of one layer. AttendOptions lists the arguments, with shapes; Attended is the answer.

        model: name of a loaded model; empty: the only one. timeout: seconds. metadata: headers, such as a traceparent.
        """
        return self.send(attend_request(model, **options), timeout=timeout, metadata=metadata)

    def encode_stream(self, items: Iterable[StreamItem], *, timeout: Optional[float] = None,
                      metadata: Metadata = ()) -> Iterator[StreamAnswer]:
        """Sends many requests over one stream, and yields the answers as they finish, in any order.

        items: requests that `encode_request` has made, or Parts. They are taken from the iterable by another thread, a few
            ahead of the answers. What it raises is raised here, after the answers to the items before.
        timeout: seconds for the whole stream; None: no limit.
        """
        codec = StreamCodec()
        failures: List[Exception] = []

        def write() -> Iterator[bytes]:
            try:
                for item in items:
                    yield codec.write(item)
            except Exception as failure:  # the caller's: it is not for gRPC's thread
                failures.append(failure)

        stream: Any = self._channel.stream_stream(messages.method_path("EncodeStream"))(
            write(), timeout=timeout, metadata=[*self._metadata, *metadata])
        try:
            for message in stream:
                yield codec.read(message)
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            stream.cancel()
        if failures:
            raise failures[0]

    def models(self, *, timeout: Optional[float] = DEFAULT) -> List[str]:
        """Returns the names of the models that the server has loaded, in ascending order."""
        request = message_request("ListModels", messages.ListModelsRequest(), messages.ListModelsResponse)
        return list(self.send(request, timeout=timeout).names)

    def model(self, name: str = "", *, timeout: Optional[float] = DEFAULT) -> messages.GetModelResponse:
        """Returns the description of a model: its layers, limits and costs. The protocol describes each field."""
        request = message_request("GetModel", messages.GetModelRequest(model=name), messages.GetModelResponse)
        found: messages.GetModelResponse = self.send(request, timeout=timeout)
        return found

    def tokenizer(self, name: str = "", *, timeout: Optional[float] = DEFAULT) -> messages.GetTokenizerResponse:
        """Returns what turns text into ids for a model. NotFound: its folder has no tokenizer.json that can be read."""
        request = message_request("GetTokenizer", messages.GetTokenizerRequest(model=name), messages.GetTokenizerResponse)
        found: messages.GetTokenizerResponse = self.send(request, timeout=timeout)
        return found

    def put_memory(self, model: str = "", *, layer: int = 0, memory: Any, time_to_live: Optional[float] = None,
                   timeout: Optional[float] = DEFAULT) -> messages.PutMemoryResponse:
        """Registers what `attend(memory_handle=…)` attends to. The answer has its handle, size and time of expiry.

        memory: a Memory, or its hidden_states. time_to_live: seconds; None: as long as the server allows.
        """
        return self.send(put_memory_request(model, layer, memory, time_to_live), timeout=timeout)

    def drop_memory(self, handle: str, *, timeout: Optional[float] = DEFAULT) -> int:
        """Forgets a registered memory, and returns the bytes that the server no longer keeps."""
        request = message_request("DropMemory", messages.DropMemoryRequest(handle=handle), messages.DropMemoryResponse)
        return int(self.send(request, timeout=timeout).bytes)
