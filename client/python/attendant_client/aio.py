"""AsyncClient: the calls of Client for asyncio."""
from __future__ import annotations

import asyncio
from typing import (TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple,
                    TypeVar, Union)

import grpc
import grpc.aio

from . import messages
from .answers import Attended, Encoded
from .channel import DEFAULT, MAX_MESSAGE_BYTES, Connection, Metadata, Tls
from .division import Division
from .errors import AttendantError, InvalidArgument, from_rpc
from .options import AttendOptions, EncodeOptions, TokenizeOptions
from .patience import Patience
from .requests import Request, attend_request, encode_request, message_request, put_memory_request
from .stream import StreamAnswer, StreamCodec, StreamItem
from .text_requests import EncodedTexts, TextRequests, TokenizedTexts, divides_texts
from .texts import paired

if TYPE_CHECKING:
    from typing_extensions import Unpack

A = TypeVar("A")


class AsyncClient:
    """A connection to one or several servers, for one event loop. Arguments and calls are the same as in Client."""

    def __init__(self, address: str = "localhost:8001", *, timeout: Optional[float] = DEFAULT, tls: Union[Tls, bool] = False,
                 token: str = "", retry: bool = True, wait: bool = True, max_message_bytes: int = MAX_MESSAGE_BYTES,
                 channel_options: Sequence[Tuple[str, Any]] = (), proxy: bool = False) -> None:
        connection = Connection(address, tls, token, retry, max_message_bytes, channel_options, proxy, timeout)
        credentials = connection.credentials()
        self._timeout = connection.timeout_of
        self._waits = wait
        self._sleep = asyncio.sleep
        self._models: Dict[str, messages.GetModelResponse] = {}
        self._metadata = connection.metadata()
        self._channel: Any = (grpc.aio.insecure_channel(connection.target, connection.options()) if credentials is None
                              else grpc.aio.secure_channel(connection.target, credentials, connection.options()))

    async def close(self) -> None:
        """Closes the connection; running calls fail."""
        await self._channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, request: Request[A], *, timeout: Optional[float] = DEFAULT, metadata: Metadata = ()) -> A:
        """As Client.send. Cancelling the task cancels the call."""
        call = self._channel.unary_unary(request.path)
        patience = Patience(self._waits, self._timeout(request.path, timeout))
        message = request.message()
        while True:
            try:
                answer = await call(message, timeout=patience.left(), metadata=(*self._metadata, *metadata))
                break
            except grpc.RpcError as error:
                refusal = from_rpc(error)
            await self._sleep(patience.pause(refusal))
        return request.read(answer)

    async def encode(self, model: str = "", *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
                     **options: Unpack[EncodeOptions]) -> Encoded:
        """As Client.encode. EncodeOptions lists the arguments, with shapes."""
        if divides_texts(options):
            texts = EncodedTexts(await self._known(model), options)
            await self.send_texts(texts, timeout=timeout, metadata=metadata)
            return texts.joined()
        division = await self._divide(model, options)
        if not division.parts:
            return await self.send(encode_request(model, **division.options), timeout=timeout, metadata=metadata)
        requests = (encode_request(model, **part.options) for part in division.parts)
        timeout = self._timeout(messages.method_path("Encode"), timeout)
        stream = self.encode_stream(requests, timeout=timeout, metadata=metadata)
        found = {answer.index: answer.result() async for answer in stream}
        return division.join_encoded([found[index] for index in range(len(found))])

    async def tokenize(self, model: str = "", *, texts: Iterable[str], text_pairs: Optional[Iterable[str]] = None,
                       timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
                       **options: Unpack[TokenizeOptions]) -> List[messages.TextTokens]:
        """As Client.tokenize."""
        found = TokenizedTexts(paired(texts, text_pairs), await self._known(model), options, lambda tokens: tokens)
        await self.send_texts(found, timeout=timeout, metadata=metadata)
        return found.found()

    async def send_texts(self, texts: TextRequests[Any], *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
                         progress: Callable[[int], None] = lambda done: None) -> None:
        """As Client.send_texts."""
        patience = Patience(self._waits, self._timeout(texts.path, timeout))
        while texts.groups:
            async for answer in self._text_answers(texts, patience, metadata):
                progress(texts.take(answer))
            texts.next_round()

    async def _text_answers(self, texts: TextRequests[Any], patience: Patience, metadata: Metadata) -> AsyncIterator[StreamAnswer]:
        async def requests() -> AsyncIterator[Request[Any]]:
            for group in texts.groups:
                yield await asyncio.to_thread(texts.make, group) if texts.slow else texts.make(group)

        if texts.streams and len(texts.groups) > 1:
            async for answer in self.encode_stream(requests(), timeout=patience.left(), metadata=metadata):
                yield answer
            return
        index = 0
        async for request in requests():
            try:
                answer = StreamAnswer(index, await self.send(request, timeout=patience.left(), metadata=metadata))
            except InvalidArgument as error:
                answer = StreamAnswer(index, error=error)
            yield answer
            index += 1

    async def attend(self, model: str = "", *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
                     **options: Unpack[AttendOptions]) -> Attended:
        """As Client.attend. AttendOptions lists the arguments, with shapes."""
        division = await self._divide(model, options)
        if not division.parts:
            return await self.send(attend_request(model, **division.options), timeout=timeout, metadata=metadata)
        patience = Patience(self._waits, self._timeout(messages.method_path("Attend"), timeout))
        requests = (attend_request(model, **part.options) for part in division.parts)
        return division.join_attended([await self.send(one, timeout=patience.left(), metadata=metadata) for one in requests])

    async def encode_stream(self, items: Union[Iterable[StreamItem], AsyncIterable[StreamItem]], *,
                            timeout: Optional[float] = None, metadata: Metadata = ()) -> AsyncIterator[StreamAnswer]:
        """As Client.encode_stream, of items from an iterable of either kind."""
        codec = StreamCodec(self._waits)
        patience = Patience(self._waits, timeout)
        source = _aiter_of(items)
        failure: Optional[Exception] = None
        while True:
            stream: Any = self._channel.stream_stream(messages.method_path("EncodeStream"))(
                timeout=patience.left(), metadata=(*self._metadata, *metadata))
            writer = asyncio.ensure_future(_write_items(stream, codec, source))
            end: Optional[AttendantError] = None
            try:
                async for message in stream:
                    answer = codec.read(message)
                    if answer is not None:
                        yield answer
                failure = await writer or failure
            except grpc.RpcError as error:
                end = from_rpc(error)
                if self._waits and end.retry_after is not None:
                    failure = await writer or failure  # which finds at the next item that the stream has ended
            finally:
                writer.cancel()
                stream.cancel()
                await asyncio.gather(writer, return_exceptions=True)
            if end is not None:
                codec.lose(end)
            refusal = codec.refusal()
            if refusal is None:
                break
            await self._sleep(patience.pause(refusal))
        if failure is not None:
            raise failure

    async def models(self, *, timeout: Optional[float] = DEFAULT) -> List[str]:
        """As Client.models."""
        request = message_request("ListModels", messages.ListModelsRequest(), messages.ListModelsResponse)
        return list((await self.send(request, timeout=timeout)).names)

    async def model(self, name: str = "", *, timeout: Optional[float] = DEFAULT) -> messages.GetModelResponse:
        """As Client.model."""
        request = message_request("GetModel", messages.GetModelRequest(model=name), messages.GetModelResponse)
        found: messages.GetModelResponse = await self.send(request, timeout=timeout)
        return found

    async def _divide(self, model: str, options: Mapping[str, Any]) -> Division:
        division = Division(options)
        if division.may_be_needed():
            division.fit(await self._known(model))
        return division

    async def _known(self, model: str) -> messages.GetModelResponse:
        if model not in self._models:
            self._models[model] = await self.model(model)
        return self._models[model]

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


async def _aiter_of(items: Union[Iterable[StreamItem], AsyncIterable[StreamItem]]) -> AsyncIterator[StreamItem]:
    """Yields the items of an iterable of either kind."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def _write_items(stream: Any, codec: StreamCodec, items: AsyncIterator[StreamItem]) -> Optional[Exception]:
    """Writes the remaining items to the stream. Returns their exception, to raise after the responses to earlier items."""
    try:
        for message in codec.write_again():
            await stream.write(message)
        async for item in items:
            await stream.write(codec.write(item))
    except (grpc.RpcError, asyncio.InvalidStateError):
        pass  # the stream has ended; its reader sees why
    except Exception as failure:
        return failure
    finally:
        if not stream.done():
            await stream.done_writing()
    return None
