"""The 19 conformance cases of the Open Inference Protocol: how a server has to answer what clients get wrong, or do seldom.

Runs where tritonclient is installed, whose messages it sends: they are not this project's. Prints one JSON document,
{"version": …, "rows": [{"case", "status", "detail"}]}. The variable INTEROP has "grpc", "http", and of a server of its own
that the case of draining stops, "draining" and "draining_pid". Both serve synthetic:minilm-l6 as `l6`.
"""
import importlib.metadata
import json
import os
import signal
import sys
import time
import traceback
import urllib.request

import grpc
import numpy as np
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

WIDTH = 384
OPTIONS = json.loads(os.environ["INTEROP"])
CHANNEL = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
BAD = grpc.StatusCode.INVALID_ARGUMENT
CASES = []


class Server:
    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, CHANNEL)
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)

    def infer(self, request, timeout=60):
        return self.stub.ModelInfer(request, timeout=timeout)

    def statistics(self):
        return self.stub.ModelStatistics(pb.ModelStatisticsRequest(name="l6")).model_stats[0]


def case(function):
    CASES.append(function)
    return function


def ids(*shape, model="l6", outputs=("sentence_embedding",), raw=None, kind="INT64", **more):
    """A request for ids of this shape, all 5, or with these raw bytes."""
    request = pb.ModelInferRequest(model_name=model, **more)
    request.inputs.add(name="input_ids", datatype=kind, shape=shape)
    for name in outputs:
        request.outputs.add(name=name)
    request.raw_input_contents.append(np.full(shape, 5, np.int64).tobytes() if raw is None else raw)
    return request


def rows(*shape, name="hidden_states", kind="FP32"):
    request = pb.ModelInferRequest(model_name="l6.hidden")
    request.inputs.add(name=name, datatype=kind, shape=shape)
    request.raw_input_contents.append(np.ones(shape, np.float32).tobytes())
    return request


def refused(call, code, *words):
    """The call fails with this code, and its message has these words."""
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, f"{error.code()}: {error.details()}"
        assert all(word in error.details() for word in words), error.details()
        return
    raise AssertionError(f"accepted, where {code} was expected")


def vector(answer, index=0):
    return np.frombuffer(answer.raw_output_contents[index], np.float32).reshape(answer.outputs[index].shape)


@case
def contents_and_raw(server):
    """contents beside raw_input_contents are refused"""
    request = ids(1, 2)
    request.inputs[0].contents.int64_contents.extend([5, 5])
    refused(lambda: server.infer(request), BAD, "input_ids")


@case
def count_of_raw_entries(server):
    """as many raw entries as inputs: fewer and more are refused"""
    short = ids(1, 2)
    short.inputs.add(name="attention_mask", datatype="INT64", shape=[1, 2])
    refused(lambda: server.infer(short), BAD, "raw_input_contents")
    surplus = ids(1, 2)
    surplus.raw_input_contents.append(b"12345678")
    refused(lambda: server.infer(surplus), BAD, "raw_input_contents")


@case
def sizes(server):
    """raw bytes of another size, negative, overflowing and huge dimensions are refused"""
    for request in (ids(1, 2, raw=b"123"), ids(1, 2, raw=b""), ids(1, 3, raw=b"\0" * 16)):
        refused(lambda made=request: server.infer(made), BAD, "input_ids")
    for shape in ((-1, 2), (1, -2), (2**62, 2**62), (2**32, 2**32), (2**63 - 1, 1), (1 << 40, 1)):
        refused(lambda dims=shape: server.infer(ids(*dims, raw=b"\5" + b"\0" * 7)), BAD)


@case
def typed_contents(server):
    """contents in lists, also INT8, INT16 and BOOL, give the same bits as raw ones"""
    plain = vector(server.infer(ids(2, 3)))
    for kind, field in (("INT64", "int64_contents"), ("INT32", "int_contents"), ("INT16", "int_contents"),
                        ("INT8", "int_contents"), ("UINT8", "uint_contents")):
        request = pb.ModelInferRequest(model_name="l6", outputs=ids(1, 1).outputs)
        getattr(request.inputs.add(name="input_ids", datatype=kind, shape=[2, 3]).contents, field).extend([5] * 6)
        request.inputs.add(name="attention_mask", datatype="BOOL", shape=[2, 3]).contents.bool_contents.extend([True] * 6)
        assert np.array_equal(vector(server.infer(request)), plain), kind
    listed = pb.ModelInferRequest(model_name="l6.hidden")
    listed.inputs.add(name="hidden_states", datatype="FP32", shape=[1, 2, WIDTH]).contents.fp32_contents.extend([1.0] * 2 * WIDTH)
    assert np.array_equal(vector(server.infer(listed)), vector(server.infer(rows(1, 2, WIDTH))))


@case
def half_floats_in_lists(server):
    """FP16 and BF16 in lists, for which the protocol has none, are refused"""
    for kind in ("FP16", "BF16"):
        request = pb.ModelInferRequest(model_name="l6.hidden")
        made = request.inputs.add(name="hidden_states", datatype=kind, shape=[1, 1, WIDTH])
        made.contents.fp32_contents.extend([1.0] * WIDTH)
        refused(lambda sent=request: server.infer(sent), BAD, "hidden_states")


@case
def unknown_models(server):
    """unknown model and version: NOT_FOUND; a version that is no number: INVALID_ARGUMENT"""
    refused(lambda: server.infer(ids(1, 2, model="nobody")), grpc.StatusCode.NOT_FOUND, "nobody")
    refused(lambda: server.infer(ids(1, 2, model_version="77")), grpc.StatusCode.NOT_FOUND, "77")
    refused(lambda: server.infer(ids(1, 2, model_version="one")), BAD, "one")


@case
def wrong_inputs(server):
    """unknown, missing and repeated inputs, wrong type, rank and width are refused, with the tensor's name"""
    refused(lambda: server.infer(rows(1, 2, WIDTH, name="pixels")), BAD, "pixels")
    missing = pb.ModelInferRequest(model_name="l6")
    refused(lambda: server.infer(missing), BAD, "input_ids")
    twice = ids(1, 2)
    twice.inputs.append(twice.inputs[0])
    twice.raw_input_contents.append(twice.raw_input_contents[0])
    refused(lambda: server.infer(twice), BAD, "input_ids")
    refused(lambda: server.infer(ids(1, 2, kind="FP64")), BAD, "input_ids", "FP64")
    refused(lambda: server.infer(ids(1, 2, kind="NONSENSE")), BAD, "input_ids", "NONSENSE")
    refused(lambda: server.infer(ids(2)), BAD, "input_ids")
    refused(lambda: server.infer(rows(2, WIDTH)), BAD, "hidden_states")
    refused(lambda: server.infer(rows(1, 2, WIDTH + 1)), BAD, "hidden_states", str(WIDTH), str(WIDTH + 1))


@case
def requested_outputs(server):
    """no outputs: the default ones; an unknown one is refused"""
    answer = server.infer(ids(1, 2, outputs=()))
    metadata = server.stub.ModelMetadata(pb.ModelMetadataRequest(name="l6"))
    assert [one.name for one in answer.outputs] == [one.name for one in metadata.outputs]
    assert len(answer.raw_output_contents) == len(answer.outputs)
    refused(lambda: server.infer(ids(1, 2, outputs=("riches",))), BAD, "riches")


@case
def ids_and_parameters(server):
    """the id is echoed; unknown parameters are ignored, known ones of a wrong type refused"""
    request = ids(1, 2, id="seven")
    request.parameters["triton_enable_empty_final_response"].bool_param = False
    request.parameters["headers"].string_param = "none"
    assert server.infer(request).id == "seven"
    request.parameters["normalize"].string_param = "yes"
    refused(lambda: server.infer(request), BAD, "normalize")


@case
def priorities(server):
    """priority as int64 and as uint64, however large; a negative one is refused"""
    for field, value in (("int64_param", 1), ("uint64_param", 1), ("uint64_param", 1000)):
        request = ids(1, 2)
        setattr(request.parameters["priority"], field, value)
        server.infer(request)
    request.parameters["priority"].int64_param = -1
    refused(lambda: server.infer(request), BAD, "priority")


@case
def deadlines(server):
    """of `timeout` and the call's deadline the earlier one holds"""
    late = grpc.StatusCode.DEADLINE_EXCEEDED
    request = ids(16, 512)
    request.parameters["timeout"].int64_param = 1
    refused(lambda: server.infer(request), late)
    request.parameters["timeout"].int64_param = 60_000_000
    server.infer(request)
    refused(lambda: server.infer(request, timeout=0.005), late)


@case
def empty_and_large_batches(server):
    """B or S of 0 are refused; a batch above max_batch_size is refused, with the limit"""
    refused(lambda: server.infer(ids(0, 2)), BAD, "input_ids")
    refused(lambda: server.infer(ids(1, 0)), BAD, "input_ids")
    most = server.stub.ModelConfig(pb.ModelConfigRequest(name="l6")).config.max_batch_size
    assert vector(server.infer(ids(most, 1))).shape == (most, WIDTH)
    refused(lambda: server.infer(ids(most + 1, 1)), BAD, str(most))


@case
def shared_memory(server):
    """shared memory is refused, named in a request or registered; nothing is left to unregister"""
    request = ids(1, 2)
    request.inputs[0].parameters["shared_memory_region"].string_param = "../../etc/passwd"
    refused(lambda: server.infer(request), BAD, "input_ids", "shared_memory_region")
    request = ids(1, 2)
    request.outputs[0].parameters["shared_memory_region"].string_param = "a"
    refused(lambda: server.infer(request), BAD, "shared_memory_region")
    region = pb.SystemSharedMemoryRegisterRequest(name="a", key="/a", offset=2**63, byte_size=2**63)
    refused(lambda: server.stub.SystemSharedMemoryRegister(region), grpc.StatusCode.UNIMPLEMENTED, "shared memory")
    server.stub.SystemSharedMemoryUnregister(pb.SystemSharedMemoryUnregisterRequest())
    server.stub.CudaSharedMemoryUnregister(pb.CudaSharedMemoryUnregisterRequest())
    assert not server.stub.SystemSharedMemoryStatus(pb.SystemSharedMemoryStatusRequest()).regions


@case
def draining(_):
    """a server that drains refuses with UNAVAILABLE, and ends what it has begun"""
    server = Server(OPTIONS["draining"])
    server.infer(ids(1, 2))
    under_way = [server.stub.ModelInfer.future(ids(32, 512), timeout=120) for _ in range(2)]
    health = server.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
    assert next(health) == b"\x08\x01"
    begun = False
    while not begun:  # each iteration asks the server, until both requests are there
        begun = inflight() >= 2
    os.kill(OPTIONS["draining_pid"], signal.SIGTERM)
    assert next(health) == b"\x08\x02"  # NOT_SERVING
    refused(lambda: server.infer(ids(1, 2)), grpc.StatusCode.UNAVAILABLE)
    for call in under_way:
        assert vector(call.result()).shape == (32, WIDTH)


def inflight():
    """Requests that the server of the case of draining has received and not answered."""
    with urllib.request.urlopen(f"http://{OPTIONS['draining_http']}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("attendant_inflight_requests"):
                return float(line.split()[-1])
    raise AssertionError("no metric of requests in flight")


@case
def large_messages(server):
    """a message above the cap: RESOURCE_EXHAUSTED, and the connection stays"""
    refused(lambda: server.infer(ids(1, 2, raw=bytes(1 << 26))), grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max")
    server.infer(ids(1, 2))


@case
def cancelled(server):
    """a cancelled call that waits is not computed, one that is computed ends early"""
    begin = time.monotonic()
    server.infer(ids(32, 512))
    whole = time.monotonic() - begin
    before = server.statistics().inference_count
    first, second = (server.stub.ModelInfer.future(ids(32, 512), timeout=60) for _ in range(2))
    second.cancel()
    assert second.code() == grpc.StatusCode.CANCELLED
    first.result()
    computed = server.statistics().inference_count - before
    assert computed == 32, f"{computed} sequences were computed, not 32"
    batches = server.statistics().execution_count
    running = server.stub.ModelInfer.future(ids(32, 512), timeout=60)
    while server.statistics().execution_count < batches + 2:  # until it has computed some of its batches
        assert not running.done()
    assert running.cancel()
    begin = time.monotonic()
    server.infer(ids(1, 2))
    taken = time.monotonic() - begin
    assert taken < whole / 2, f"the next call took {taken:.3f} s, a whole one takes {whole:.3f} s"


@case
def streams(server):
    """streaming inference is refused clearly, and the connection stays"""
    requests = iter([ids(1, 2), ids(1, 2, model="nobody"), ids(1, 2)])
    refused(lambda: list(server.stub.ModelStreamInfer(requests, timeout=30)), grpc.StatusCode.UNIMPLEMENTED, "ModelInfer")
    server.infer(ids(1, 2))


@case
def health(server):
    """health of the server and of a model: SERVING; of another name: NOT_FOUND"""
    check = server.channel.unary_unary("/grpc.health.v1.Health/Check")
    for name in (b"", b"l6"):
        assert check(bytes([10, len(name)]) + name if name else b"") == b"\x08\x01", name
    refused(lambda: check(b"\x0a\x04nope"), grpc.StatusCode.NOT_FOUND)


@case
def many_calls(server):
    """1,000 calls at once over one channel all end: answered, or refused as too many"""
    calls = [server.stub.ModelInfer.future(ids(1, 8), timeout=60) for _ in range(1000)]
    codes = [call.code() for call in calls]
    answered = codes.count(grpc.StatusCode.OK)
    assert answered + codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 1000, set(codes)
    assert answered >= 200, f"{answered} were answered"
    server.infer(ids(1, 2))


def main():
    server, found = Server(OPTIONS["grpc"]), []
    for function in CASES:
        detail = ""
        try:
            function(server)
        except (AssertionError, grpc.RpcError, OSError) as error:
            traceback.print_exc(file=sys.stderr)
            detail = f"{type(error).__name__}: {error}"[:400]
        found.append({"case": function.__doc__, "status": "failed" if detail else "passed", "detail": detail})
    print(json.dumps({"version": importlib.metadata.version("tritonclient"), "rows": found}))


if __name__ == "__main__":
    main()
