"""Frames of HTTP/2 (RFC 9113) written by hand, to send what no client library sends: half of a message, or calls whose
answers get no window."""
import select
import socket
import struct
import time

DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE = 1, 4
MOST_FRAME_BYTES = 16384


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def field(name: str, value: str) -> bytes:
    """A literal header field without indexing, with a new name (RFC 7541), both shorter than 127 bytes."""
    return b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()


def message(announced: int, body: bytes) -> bytes:
    """The prefix of a message of gRPC that announces `announced` bytes, and `body` behind it."""
    return b"\0" + announced.to_bytes(4, "big") + body


def value_of(block: bytes, name: str) -> str | None:
    """The value of a field of a header block, if it is there as plain text with a name before it."""
    head, found, rest = block.partition(name.encode())
    return rest[1:1 + rest[0]].decode() if found and rest else None


class Connection:
    """A connection to 127.0.0.1. Sends no more than the server's windows allow and never waits for them."""

    def __init__(self, port: int, source: str = "127.0.0.1", window: int = 65535):
        self._socket = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._next_stream = 1
        self._initial_window = self._window = 65535  # of a stream; of the connection
        self._windows, self._unsent, self._half_closing = {}, {}, set()
        self.ended = {}  # stream -> (time, header block of the trailers, or b"" for a reset)
        self.closed = False
        # Without a table the names and values of trailers are plain text.
        settings = struct.pack("!HIHI", HEADER_TABLE_SIZE, 0, INITIAL_WINDOW_SIZE, window)
        self._send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings))

    def close(self) -> None:
        self._socket.close()

    def start_call(self, path: str, **metadata: str) -> int:
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "test",
                  "content-type": "application/grpc", "te": "trailers",
                  **{name.replace("_", "-"): value for name, value in metadata.items()}}
        self._windows[stream] = self._initial_window
        self._send(frame(HEADERS, END_HEADERS, stream, b"".join(field(*item) for item in fields.items())))
        return stream

    def send(self, stream: int, data: bytes, half_close: bool = False) -> None:
        """Sends what the windows allow; `pump` sends the rest."""
        self._unsent[stream] = self._unsent.get(stream, b"") + data
        if half_close:
            self._half_closing.add(stream)
        self._send_on(stream)

    def pump(self, seconds: float) -> None:
        """Handles frames for this long."""
        until = time.monotonic() + seconds
        while not self.closed:
            readable, _, _ = select.select([self._socket], [], [], max(0, until - time.monotonic()))
            if not readable:
                return
            self._receive()

    def _receive(self) -> None:
        try:
            got = self._socket.recv(1 << 16)
        except OSError:
            got = b""
        if not got:
            self.closed = True
        self._received += got
        while len(self._received) >= 9:
            length = int.from_bytes(self._received[:3], "big")
            if len(self._received) < 9 + length:
                return
            kind, flags = self._received[3], self._received[4]
            stream = int.from_bytes(self._received[5:9], "big") & 0x7FFFFFFF
            payload, self._received = self._received[9:9 + length], self._received[9 + length:]
            self._handle(kind, flags, stream, payload)

    def _handle(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == RESET or (kind == HEADERS and flags & END_STREAM):
            self.ended.setdefault(stream, (time.monotonic(), payload if kind == HEADERS else b""))
            self._unsent.pop(stream, None)
        elif kind == PING and not flags & ACK:
            self._send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self._window += more
            elif stream in self._windows:
                self._windows[stream] += more
            self._send_all()
        elif kind == SETTINGS and not flags & ACK:
            for name, value in struct.iter_unpack("!HI", payload):
                if name == INITIAL_WINDOW_SIZE:
                    change, self._initial_window = value - self._initial_window, value
                    self._windows = {number: window + change for number, window in self._windows.items()}
            self._send(frame(SETTINGS, ACK, 0))
            self._send_all()

    def _send_all(self) -> None:
        for stream in list(self._unsent):
            self._send_on(stream)

    def _send_on(self, stream: int) -> None:
        left = self._unsent.get(stream, b"")
        while left and not self.closed:
            room = min(self._window, self._windows[stream], MOST_FRAME_BYTES)
            if room <= 0:
                break
            part, left = left[:room], left[room:]
            self._window -= len(part)
            self._windows[stream] -= len(part)
            self._send(frame(DATA, 0, stream, part))
        self._unsent[stream] = left
        if not left:
            del self._unsent[stream]
            if stream in self._half_closing:
                self._half_closing.discard(stream)
                self._send(frame(DATA, END_STREAM, stream))

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            self.closed = True
