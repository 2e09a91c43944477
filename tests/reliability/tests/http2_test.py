"""Tests of the frames that are written by hand, against a listener that only records."""
import socket
import unittest

import http2


class Fields(unittest.TestCase):
    def test_values_are_found_by_their_length(self):
        block = http2.field("grpc-status", "8") + http2.field("attendant-reason", "queue_seconds") + b"\x5fmore"
        self.assertEqual(http2.value_of(block, "attendant-reason"), "queue_seconds")
        self.assertEqual(http2.value_of(block, "grpc-status"), "8")
        self.assertIsNone(http2.value_of(block, "grpc-message"))


class Frames(unittest.TestCase):
    def setUp(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connection = http2.Connection(self._listener.getsockname()[1], window=0)
        self.server, _ = self._listener.accept()
        self.server.settimeout(10)

    def tearDown(self):
        self.connection.close()
        self.server.close()
        self._listener.close()

    def receive(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            received += self.server.recv(count - len(received))
        return received

    def receive_frame(self) -> tuple:
        head = self.receive(9)
        return head[3], head[4], int.from_bytes(head[5:], "big"), self.receive(int.from_bytes(head[:3], "big"))

    def begin(self) -> None:
        self.assertEqual(self.receive(24), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        kind, flags, stream, settings = self.receive_frame()
        self.assertEqual((kind, flags, stream), (http2.SETTINGS, 0, 0))
        self.assertEqual(settings, bytes((0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0)))

    def test_announces_its_window_and_calls(self):
        self.begin()
        stream = self.connection.start_call("/a.B/C", grpc_timeout="1S")
        kind, flags, number, fields = self.receive_frame()
        self.assertEqual((kind, flags, number), (http2.HEADERS, http2.END_HEADERS, stream))
        self.assertIn(b"\0\x05:path\x06/a.B/C", fields)
        self.assertIn(b"\0\x0cgrpc-timeout\x021S", fields)

    def test_sends_no_more_than_the_windows_allow(self):
        self.begin()
        stream = self.connection.start_call("/a.B/C")
        self.receive_frame()
        self.connection.send(stream, bytes(70000), half_close=True)
        sizes = [len(self.receive_frame()[3]) for _ in range(4)]
        self.assertEqual(sizes, [16384, 16384, 16384, 65535 - 3 * 16384])
        more = (10000).to_bytes(4, "big")
        self.server.sendall(http2.frame(http2.WINDOW_UPDATE, 0, stream, more) +
                            http2.frame(http2.WINDOW_UPDATE, 0, 0, more))
        self.connection.pump(0)
        self.assertEqual(len(self.receive_frame()[3]), 70000 - 65535)
        kind, flags, number, payload = self.receive_frame()
        self.assertEqual((kind, flags, number, payload), (http2.DATA, http2.END_STREAM, stream, b""))

    def test_knows_how_a_call_ended(self):
        first, second = self.connection.start_call("/a.B/C"), self.connection.start_call("/a.B/C")
        self.server.sendall(http2.frame(http2.HEADERS, http2.END_STREAM | http2.END_HEADERS, first, b"trailers") +
                            http2.frame(http2.RESET, 0, second, bytes(4)))
        self.connection.pump(0)
        self.assertEqual(self.connection.ended[first][1], b"trailers")
        self.assertEqual(self.connection.ended[second][1], b"")
        self.server.close()
        self.connection.pump(0)
        self.assertTrue(self.connection.closed)


if __name__ == "__main__":
    unittest.main()
