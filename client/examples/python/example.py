"""Calls a running attendant-server: example.py [HOST:PORT]."""
import struct
import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from attendant.v1 import encoder_service_pb2 as pb
from attendant.v1 import encoder_service_pb2_grpc, tensor_pb2


def tensor(dtype, shape, kind, values):
    """`kind` is a letter of struct's: "f" for FLOAT32, "q" for INT64."""
    return tensor_pb2.Tensor(dtype=dtype, shape=shape, data=struct.pack(f"<{len(values)}{kind}", *values))


def print_row(label, tensor, row, count):
    """Prints the beginning of a row of a FLOAT32 tensor [..., width]."""
    values = struct.unpack_from(f"<{count}f", tensor.data, 4 * row * tensor.shape[-1])
    print(label, *(f"{value:.4f}" for value in values))


def field_of(error):
    """The field that the error names: from its details, or else from the beginning of its message."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else []:
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(bad_request) and bad_request.field_violations:
            return bad_request.field_violations[0].field
    return error.details().split(":")[0]


def main(address):
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stub = encoder_service_pb2_grpc.EncoderServiceStub(channel)

        # One sequence of three tokens. The mask keeps two; the third row is returned as zeros.
        request = pb.AttendRequest(
            model="worked-example",
            hidden_states=tensor(tensor_pb2.FLOAT32, [1, 3, 4], "f", [1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1]),
            attention_mask=tensor(tensor_pb2.INT64, [1, 3], "q", [1, 1, 0]))
        attended = stub.Attend(request, timeout=5).output
        print("Attend")
        for row in range(3):
            print_row(f"  row {row}:", attended, row, 3)

        # Three sequences of unequal lengths, one after the other, without padding.
        packed = pb.EncodeRequest(
            model="tiny", lengths=[4, 1, 2], token_ids=tensor(tensor_pb2.INT64, [7], "q", [1, 2, 3, 4, 5, 6, 7]))
        encoded = stub.Encode(packed, timeout=5).hidden_states
        print("Encode")
        first = 0
        for length in packed.lengths:
            print_row(f"  row {first} begins a sequence of {length}:", encoded, first, 3)
            first += length

        # Texts, which the server tokenizes: a vector of each.
        texts = pb.EncodeRequest(
            model="minilm", texts=["hello world", "good morning"], return_pooled=True, omit_hidden_states=True)
        embedded = stub.Encode(texts, timeout=5)
        print("Texts")
        for row, text in enumerate(texts.texts):
            print_row(f"  {text}, {embedded.lengths[row]} tokens:", embedded.pooled, row, 3)

        # The model has one layer, and this is not it.
        request.layer = 7
        try:
            stub.Attend(request, timeout=5)
        except grpc.RpcError as error:
            print(f"Error\n  code {error.code().value[0]}, field {field_of(error)}\n  {error.details()}")

        # A millisecond is too short for 8192 tokens.
        long = pb.AttendRequest(
            model="worked-example", hidden_states=tensor(tensor_pb2.FLOAT32, [1, 8192, 4], "f", [0] * 32768))
        try:
            stub.Attend(long, timeout=0.001)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                print("Deadline\n  exceeded")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "localhost:8001")
