"""Messages of protobuf made field by field, so that no library stands between a test and the wire."""


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def field(number: int, value) -> bytes:
    """A field of bytes, or of an integer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def claim(number: int, length: int) -> bytes:
    """The head of a field that is so long, without its bytes."""
    return varint(number << 3 | 2) + varint(length)


def tensor(name=b"input_ids", datatype=b"INT64", shape=(1, 2), more=b"") -> bytes:
    """An input of ModelInferRequest."""
    dims = b"".join(varint(size) for size in shape)
    return field(5, field(1, name) + field(2, datatype) + field(3, dims) + more)
