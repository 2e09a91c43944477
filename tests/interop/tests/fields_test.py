"""Tests of the messages that are made by hand, with protobuf's own reading of them."""
import unittest

from fields import claim, field, tensor, varint
from google.protobuf import struct_pb2, wrappers_pb2


class Fields(unittest.TestCase):
    def test_numbers(self):
        for value in (0, 127, 128, 2**32, 2**63 - 1, -1, -(2**63)):
            self.assertEqual(wrappers_pb2.Int64Value.FromString(field(1, value)).value, value)
        self.assertEqual(len(varint(-1)), 10)

    def test_bytes(self):
        for value in (b"", b"text", bytes(300)):
            self.assertEqual(wrappers_pb2.BytesValue.FromString(field(1, value)).value, value)

    def test_messages_in_messages(self):
        made = field(1, field(3, b"a")) + field(1, field(3, b"b"))
        self.assertEqual([one.string_value for one in struct_pb2.ListValue.FromString(made).values], ["a", "b"])

    def test_a_claim_is_not_kept(self):
        self.assertEqual(claim(1, 1 << 30), b"\x0a\x80\x80\x80\x80\x04")

    def test_a_tensor_is_field_5(self):
        self.assertEqual(tensor(b"x", b"FP32", (1, 300)), b"\x2a\x0e\x0a\x01x\x12\x04FP32\x1a\x03\x01\xac\x02")


if __name__ == "__main__":
    unittest.main()
