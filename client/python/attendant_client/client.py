"""Client: blocking calls."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

import grpc

from . import messages
from .answers import Attended, Encoded
from .channel import DEFAULT, MAX_MESSAGE_BYTES, Connection, Metadata, Tls
from .division import Division
from .errors import AttendantError, InvalidArgument, from_rpc
from .options import AttendOptions, EncodeOptions, TokenizeOptions
from .patience import Patience
from .requests import Request, attend_request, encode_request, message_request, put_memory_request
from .stream import ItemWriter, StreamAnswer, StreamCodec, StreamItem
from .text_requests import EncodedTexts, TextRequests, TokenizedTexts, divides_texts
from .texts import paired

if TYPE_CHECKING:
    from typing_extensions import Unpack

A = TypeVar("A")


class Client:
    """A connection to one or several servers. Thread-safe.

        client = Client("host:8001")
        answer = client.encode("minilm", input_ids=[[101, 7592, 102], [101, 102]], pooling="model")

    address: "host:port" (or "http://host:port", or https for TLS), "unix:/path", or several servers, called in turn,
        "ipv4:10.0.0.1:8001,10.0.0.2:8001". The first call connects.
    timeout: default timeout of calls in seconds, also sent as the gRPC deadline; None: no limit. If omitted, calls that compute have
        no limit, because their time depends on the input, and others have 60 seconds.
    tls: True or a Tls for an encrypted connection.
    token: bearer token to send; requires TLS or a Unix socket.
    retry: retry calls up to four times in about two seconds while servers refuse them with UNAVAILABLE.
    wait: while the server is full, wait as long as it requests and retry, within the call's timeout.
    max_message_bytes: maximum size of a message in either direction.
    channel_options: additional gRPC channel arguments.
    proxy: use the HTTP proxy from the environment (grpc_proxy, https_proxy or http_proxy; no_proxy).
    """

    def __init__(self, address: str = "localhost:8001", *, timeout: Optional[float] = DEFAULT, tls: Union[Tls, bool] = False,
                 token: str = "", retry: bool = True, wait: bool = True, max_message_bytes: int = MAX_MESSAGE_BYTES,
                 channel_options: Sequence[Tuple[str, Any]] = (), proxy: bool = False) -> None:
        connection = Connection(address, tls, token, retry, max_message_bytes, channel_options, proxy, timeout)
        credentials = connection.credentials()
        self._timeout = connection.timeout_of
        self._waits = wait
        self._sleep = time.sleep
        self._models: Dict[str, messages.GetModelResponse] = {}
        self._metadata = connection.metadata()
        self._channel: Any = (grpc.insecure_channel(connection.target, connection.options()) if credentials is None
                              else grpc.secure_channel(connection.target, credentials, connection.options()))

    def close(self) -> None:
        """Closes the connection; running calls fail."""
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, request: Request[A], *, timeout: Optional[float] = DEFAULT, metadata: Metadata = ()) -> A:
        """Sends a request made by `encode_request` or `attend_request` and returns the response."""
        call = self._channel.unary_unary(request.path)
        patience = Patience(self._waits, self._timeout(request.path, timeout))
        message = request.message()
        while True:
            try:
                answer = call(message, timeout=patience.left(), metadata=[*self._metadata, *metadata])
                break
            except grpc.RpcError as error:
                refusal = from_rpc(error)
            self._sleep(patience.pause(refusal))
        return request.read(answer)

    def encode(self, model: str = "", *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
               **options: Unpack[EncodeOptions]) -> Encoded:
        """Runs whole encoder layers. EncodeOptions lists the arguments with their shapes, Encoded the results.

        model: name of a loaded model; empty: the only one. timeout: seconds. metadata: headers, such as a traceparent.

        Input that exceeds one request is split into several, sent over one stream.
        """
        if divides_texts(options):
            texts = EncodedTexts(self._known(model), options)
            self.send_texts(texts, timeout=timeout, metadata=metadata)
            return texts.joined()
        division = self._divide(model, options)
        if not division.parts:
            return self.send(encode_request(model, **division.options), timeout=timeout, metadata=metadata)
        requests = (encode_request(model, **part.options) for part in division.parts)
        timeout = self._timeout(messages.method_path("Encode"), timeout)
        found = {answer.index: answer.result() for answer in self.encode_stream(requests, timeout=timeout, metadata=metadata)}
        return division.join_encoded([found[index] for index in range(len(found))])

    def tokenize(self, model: str = "", *, texts: Iterable[str], text_pairs: Optional[Iterable[str]] = None,
                 timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
                 **options: Unpack[TokenizeOptions]) -> List[messages.TextTokens]:
        """Returns the tokens of texts, as computed by `encode`. TokenizeOptions lists the other arguments.

        text_pairs: the second texts of pairs that the model reads together.
        """
        found = TokenizedTexts(paired(texts, text_pairs), self._known(model), options, lambda tokens: tokens)
        self.send_texts(found, timeout=timeout, metadata=metadata)
        return found.found()

    def send_texts(self, texts: TextRequests[Any], *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
                   progress: Callable[[int], None] = lambda done: None) -> None:
        """Sends the requests for texts, until all texts are done. progress: called with the number of texts in each."""
        patience = Patience(self._waits, self._timeout(texts.path, timeout))
        while texts.groups:
            for answer in self._text_answers(texts, patience, metadata):
                progress(texts.take(answer))
            texts.next_round()

    def _text_answers(self, texts: TextRequests[Any], patience: Patience, metadata: Metadata) -> Iterator[StreamAnswer]:
        if texts.streams and len(texts.groups) > 1:
            yield from self.encode_stream(texts.requests(), timeout=patience.left(), metadata=metadata)
            return
        for index, request in enumerate(texts.requests()):  # a call of its own may be tried again
            try:
                answer = StreamAnswer(index, self.send(request, timeout=patience.left(), metadata=metadata))
            except InvalidArgument as error:
                answer = StreamAnswer(index, error=error)
            yield answer

    def attend(self, model: str = "", *, timeout: Optional[float] = DEFAULT, metadata: Metadata = (),
               **options: Unpack[AttendOptions]) -> Attended:
        """Runs the attention of one layer. AttendOptions lists the arguments, with their shapes, Attended the results.

        model: name of a loaded model; empty: the only one. timeout: seconds. metadata: headers, such as a traceparent.

        If there are more sequences than the server accepts in one request, they are sent in several requests, one after another,
        unless they attend to a registered memory of more than one sequence.
        """
        division = self._divide(model, options)
        if not division.parts:
            return self.send(attend_request(model, **division.options), timeout=timeout, metadata=metadata)
        patience = Patience(self._waits, self._timeout(messages.method_path("Attend"), timeout))
        requests = (attend_request(model, **part.options) for part in division.parts)
        return division.join_attended([self.send(one, timeout=patience.left(), metadata=metadata) for one in requests])

    def encode_stream(self, items: Iterable[StreamItem], *, timeout: Optional[float] = None,
                      metadata: Metadata = ()) -> Iterator[StreamAnswer]:
        """Sends many requests over one stream and yields the responses in order of completion.

        items: requests made by `encode_request`, or Parts. Another thread reads the iterable, a few items ahead of the
            responses. An exception of the iterable is raised here, after the responses to the items before it.
        timeout: seconds for the whole stream; None: no limit.

        Requests that a full server refuses are sent again on another stream at the time that it requests; Parts are not.
        """
        codec = StreamCodec(self._waits)
        writer = ItemWriter(codec, items)
        patience = Patience(self._waits, timeout)
        while True:
            stream: Any = self._channel.stream_stream(messages.method_path("EncodeStream"))(
                writer.messages(), timeout=patience.left(), metadata=[*self._metadata, *metadata])
            end: Optional[AttendantError] = None
            try:
                for message in stream:
                    answer = codec.read(message)
                    if answer is not None:
                        yield answer
            except grpc.RpcError as error:
                end = from_rpc(error)
            finally:
                stream.cancel()
            if end is not None:
                writer.lose(end)
            refusal = codec.refusal()
            if refusal is None:
                break
            self._sleep(patience.pause(refusal))
        if writer.failure is not None:
            raise writer.failure

    def models(self, *, timeout: Optional[float] = DEFAULT) -> List[str]:
        """Returns the names of the loaded models in ascending order."""
        request = message_request("ListModels", messages.ListModelsRequest(), messages.ListModelsResponse)
        return list(self.send(request, timeout=timeout).names)

    def model(self, name: str = "", *, timeout: Optional[float] = DEFAULT) -> messages.GetModelResponse:
        """Returns the description of a model: its layers, limits and costs. The protocol describes each field."""
        request = message_request("GetModel", messages.GetModelRequest(model=name), messages.GetModelResponse)
        found: messages.GetModelResponse = self.send(request, timeout=timeout)
        return found

    def _divide(self, model: str, options: Mapping[str, Any]) -> Division:
        """Divides the request according to the model's limits."""
        division = Division(options)
        if division.may_be_needed():
            division.fit(self._known(model))
        return division

    def _known(self, model: str) -> messages.GetModelResponse:
        """Returns the description of a model, which the client fetches once."""
        if model not in self._models:
            self._models[model] = self.model(model)
        return self._models[model]

    def tokenizer(self, name: str = "", *, timeout: Optional[float] = DEFAULT) -> messages.GetTokenizerResponse:
        """Returns the tokenizer files of a model. NotFound if it has no readable tokenizer.json."""
        request = message_request("GetTokenizer", messages.GetTokenizerRequest(model=name), messages.GetTokenizerResponse)
        found: messages.GetTokenizerResponse = self.send(request, timeout=timeout)
        return found

    def put_memory(self, model: str = "", *, layer: int = 0, memory: Any, time_to_live: Optional[float] = None,
                   timeout: Optional[float] = DEFAULT) -> messages.PutMemoryResponse:
        """Registers a memory for `attend(memory_handle=…)`. The response has its handle, size and expiry time.

        memory: a Memory, or its hidden_states. time_to_live: seconds; None: the server's maximum.
        """
        return self.send(put_memory_request(model, layer, memory, time_to_live), timeout=timeout)

    def drop_memory(self, handle: str, *, timeout: Optional[float] = DEFAULT) -> int:
        """Drops a registered memory and returns the number of bytes freed."""
        request = message_request("DropMemory", messages.DropMemoryRequest(handle=handle), messages.DropMemoryResponse)
        return int(self.send(request, timeout=timeout).bytes)
