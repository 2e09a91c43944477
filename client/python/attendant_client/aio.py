"""AsyncClient: the calls of Client for asyncio."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Iterable, List, Optional, Sequence, Tuple, TypeVar, Union

import grpc
import grpc.aio

from . import messages
from .answers import Attended, Encoded
from .channel import MAX_MESSAGE_BYTES, Connection, Metadata, Tls
from .client import DEFAULT
from .errors import from_rpc
from .options import AttendOptions, EncodeOptions
from .requests import Request, attend_request, encode_request, message_request, put_memory_request
from .stream import StreamAnswer, StreamCodec, StreamItem

if TYPE_CHECKING:
    from typing_extensions import Unpack

A = TypeVar("A")


class AsyncClient:
    """A connection to a server, or to several, for one event loop. Its arguments and calls are those of Client."""

    def __init__(self, address: str = "localhost:8001", *, timeout: Optional[float] = 60.0, tls: Union[Tls, bool] = False,
                 token: str = "", retry: bool = True, max_message_bytes: int = MAX_MESSAGE_BYTES,
                 channel_options: Sequence[Tuple[str, Any]] = (), proxy: bool = False) -> None:
        connection = Connection(address, tls, token, retry, max_message_bytes, channel_options, proxy)
        credentials = connection.credentials()
        self._timeout = timeout
        self._metadata = connection.metadata()
        self._channel: Any = (grpc.aio.insecure_channel(connection.target, connection.options()) if credentials is None
                              else grpc.aio.secure_channel(connection.target, credentials, connection.options()))

    async def close(self) -> None:
        """Ends the connection; calls that are under way fail."""
        await self._channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, request: Request[A], *, timeout: Optional[float] = DEFAULT, metadata: Metadata = ()) -> A:
        """As Client.send. Cancelling the task cancels the call."""
        call = self._channel.unary_unary(request.path)
        try:
            answer = await call(request.message(), timeout=self._timeout if timeout == DEFAULT else timeout,
                                metadata=(*self._metadata, *metadata))
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        return request.read(answer)

    async def encode(self, model: str = "", *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
                     **options: Unpack[EncodeOptions]) -> Encoded:
        """As Client.encode. EncodeOptions lists the arguments, with shapes."""
        return await self.send(encode_request(model, **options), timeout=timeout, metadata=metadata)

    async def attend(self, model: str = "", *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
                     **options: Unpack[AttendOptions]) -> Attended:
        """As Client.attend. AttendOptions lists the arguments, with shapes."""
        return await self.send(attend_request(model, **options), timeout=timeout, metadata=metadata)

    async def encode_stream(self, items: Union[Iterable[StreamItem], AsyncIterable[StreamItem]], *,
                            timeout: Optional[float] = None, metadata: Metadata = ()) -> AsyncIterator[StreamAnswer]:
        """As Client.encode_stream, of items from an iterable of either kind."""
        codec = StreamCodec()
        stream: Any = self._channel.stream_stream(messages.method_path("EncodeStream"))(
            timeout=timeout, metadata=(*self._metadata, *metadata))
        writer = asyncio.ensure_future(_write_items(stream, codec, items))
        try:
            async for message in stream:
                yield codec.read(message)
            await writer
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            writer.cancel()
            stream.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def models(self, *, timeout: Optional[float] = DEFAULT) -> List[str]:
        """As Client.models."""
        request = message_request("ListModels", messages.ListModelsRequest(), messages.ListModelsResponse)
        return list((await self.send(request, timeout=timeout)).names)

    async def model(self, name: str = "", *, timeout: Optional[float] = DEFAULT) -> messages.GetModelResponse:
        """As Client.model."""
        request = message_request("GetModel", messages.GetModelRequest(model=name), messages.GetModelResponse)
        found: messages.GetModelResponse = await self.send(request, timeout=timeout)
        return found

    async def tokenizer(self, name: str = "", *, timeout: Optional[float] = DEFAULT) -> messages.GetTokenizerResponse:
        """As Client.tokenizer."""
        request = message_request("GetTokenizer", messages.GetTokenizerRequest(model=name), messages.GetTokenizerResponse)
        found: messages.GetTokenizerResponse = await self.send(request, timeout=timeout)
        return found

    async def put_memory(self, model: str = "", *, layer: int = 0, memory: Any, time_to_live: Optional[float] = None,
                         timeout: Optional[float] = DEFAULT) -> messages.PutMemoryResponse:
        """As Client.put_memory."""
        return await self.send(put_memory_request(model, layer, memory, time_to_live), timeout=timeout)

    async def drop_memory(self, handle: str, *, timeout: Optional[float] = DEFAULT) -> int:
        """As Client.drop_memory."""
        request = message_request("DropMemory", messages.DropMemoryRequest(handle=handle), messages.DropMemoryResponse)
        return int((await self.send(request, timeout=timeout)).bytes)


async def _write_items(stream: Any, codec: StreamCodec, items: Any) -> None:
    """Writes all items to the stream. What they raise is raised when the items before are answered."""
    try:
        if hasattr(items, "__aiter__"):
            async for item in items:
                await stream.write(codec.write(item))
        else:
            for item in items:
                await stream.write(codec.write(item))
    except (grpc.RpcError, asyncio.InvalidStateError):
        return  # the stream has ended; its reader sees why
    finally:
        if not stream.done():
            await stream.done_writing()
