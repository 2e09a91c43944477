"""The bytes of requests and answers, and how often arrays are copied on the way."""
import tracemalloc

import numpy as np
import pytest
from attendant_client import attend_request, encode_request, messages, wire
from attendant_client.answers import read_encoded
from attendant_client.arrays import WireArray, tensor_chunks
from attendant_client.stream import StreamCodec

MIB = 1 << 20


def test_message_is_the_one_that_protobuf_reads():
    sequences = [np.ones((2, 3), np.float32), np.full((1, 3), 2, np.float32)]
    request = encode_request("m", hidden_states=sequences, layers=range(1, 3), pooling="mean", normalize=True,
                             intermediate_layers=[1], head_gates=[[1, 0.5]], request_id="r", truncation="left", query_rows=[2, 0])
    read = messages.EncodeRequest.FromString(request.message())
    assert (read.model, read.layers.first, read.layers.count, read.pooling) == ("m", 1, 2, messages.MEAN)
    assert (list(read.lengths), list(read.query_rows), list(read.head_gates)) == ([2, 1], [2, 0], [1, 0.5])
    assert read.return_pooled and read.normalize_pooled and read.truncation == messages.TRUNCATE_LEFT
    assert (read.hidden_states.dtype, list(read.hidden_states.shape)) == (messages.FLOAT32, [3, 3])
    assert read.hidden_states.data == np.concatenate(sequences).tobytes()


def test_memory_is_written_with_its_parts():
    request = attend_request("m", layer=1, hidden_states=np.ones((1, 1, 2)), memory=np.ones((1, 2, 2), np.float16))
    read = messages.AttendRequest.FromString(request.message())
    assert read.layer == 1 and read.memory.hidden_states.dtype == messages.FLOAT16
    assert list(read.memory.hidden_states.shape) == [1, 2, 2]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_every_type(dtype):
    request = encode_request(input_ids=np.array([[1, 0]], dtype))
    read = messages.EncodeRequest.FromString(request.message()).token_ids
    assert read.dtype == getattr(messages, dtype.upper()) and read.data == np.array([1, 0], dtype).tobytes()


def test_bfloat16():
    made = WireArray("bfloat16", np.array([[0x3F80, 0x4000]], np.uint16))
    read = messages.Tensor.FromString(wire.join(tensor_chunks([made], (1, 2))))
    assert read.dtype == messages.BFLOAT16 and read.data == bytes([0x80, 0x3F, 0, 0x40])


def peak_of(function):
    tracemalloc.start()
    try:
        kept = function()
        return tracemalloc.get_traced_memory()[1], kept
    finally:
        tracemalloc.stop()


LARGE = np.ones((64, 256, 256), np.float32)  # 16 MiB


@pytest.mark.parametrize("rows", [LARGE, [LARGE[0]] * 64], ids=["array", "list"])
def test_a_request_copies_its_arrays_once(rows):
    peak, message = peak_of(lambda: encode_request("m", hidden_states=rows).message())
    assert 16 * MIB < len(message) < 16 * MIB + 1000
    assert peak < 17 * MIB


def test_a_prepared_request_is_not_copied_again():
    prepared = encode_request("m", hidden_states=LARGE).prepare()
    peak, message = peak_of(prepared.message)
    assert peak < MIB and message is prepared.message()


def test_an_item_of_a_stream_is_copied_once():
    peak, _ = peak_of(lambda: StreamCodec().write(encode_request("m", hidden_states=LARGE)))
    assert peak < 17 * MIB


def test_an_answer_is_copied_once():
    message = messages.EncodeResponse(hidden_states=messages.Tensor(
        dtype=messages.FLOAT32, shape=LARGE.shape, data=LARGE.tobytes())).SerializeToString()
    peak, answer = peak_of(lambda: read_encoded(message, lengths=[64 * 256], all_rows=True))
    assert peak < 17 * MIB
    assert answer.hidden_states[0].flags.writeable


def test_unknown_fields_of_an_answer_are_passed_over():
    answer = messages.EncodeResponse(pooled=messages.Tensor(dtype=messages.FLOAT32, shape=[1], data=bytes(4))).SerializeToString()
    unknown = b"".join([wire.varint(900 << 3), wire.varint(5), wire.varint(901 << 3 | 2), b"\x02ab",
                        wire.varint(902 << 3 | 5), bytes(4), wire.varint(903 << 3 | 1), bytes(8)])
    assert read_encoded(unknown + answer + unknown, lengths=None, all_rows=True).pooled.tolist() == [0]
