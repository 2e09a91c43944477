"""Debian's python3-grpcio with messages from the server's reflection: no stub, no file of the project."""
import common
import grpc
import numpy as np
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


class Service:
    """Calls the methods of a service that reflection describes."""

    def __init__(self, channel, pool, name):
        self._channel, self._name = channel, name
        self._methods = {one.name: one for one in pool.FindServiceByName(name).methods}
        self._factory = message_factory.MessageFactory(pool)

    def request(self, method):
        return self._factory.GetPrototype(self._methods[method].input_type)()

    def call(self, method, request):
        answer = self._factory.GetPrototype(self._methods[method].output_type)
        return self._channel.unary_unary(f"/{self._name}/{method}", type(request).SerializeToString, answer.FromString)(request)


def fill(tensor, kind, array):
    tensor.dtype, tensor.data = kind, array.tobytes()
    tensor.shape.extend(array.shape)


def check_native(checks, service, pool, expected):
    kinds = pool.FindEnumTypeByName("attendant.v1.DataType").values_by_name
    request = service.request("Encode")
    request.model, request.return_pooled = "minilm", True
    fill(request.token_ids, kinds["INT64"].number, expected["ids"])
    fill(request.attention_mask, kinds["UINT8"].number, expected["mask"].astype(np.uint8))
    answer = service.call("Encode", request)
    for tensor, known in ((answer.hidden_states, "last_hidden_state"), (answer.pooled, "sentence_embedding")):
        made = np.frombuffer(tensor.data, np.float32).reshape(tensor.shape)
        checks.same("Encode of attendant.v1, hidden states and vectors", made, expected[known])


def check_oip(checks, service, expected):
    request = service.request("ModelInfer")
    request.model_name = "minilm"
    for name, array in (("input_ids", expected["ids"]), ("attention_mask", expected["mask"])):
        request.inputs.add(name=name, datatype="INT64", shape=array.shape)
        request.raw_input_contents.append(array.tobytes())
    answer = service.call("ModelInfer", request)
    for output, raw in zip(answer.outputs, answer.raw_output_contents):
        made = np.frombuffer(raw, np.float32).reshape(output.shape)
        checks.same(f"ModelInfer, {output.name}", made, expected[output.name])


def check(checks, options, expected):
    with grpc.insecure_channel(options.grpc) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        names = set(database.get_services())
        wanted = {"attendant.v1.EncoderService", "inference.GRPCInferenceService", "grpc.health.v1.Health"}
        checks.that("services listed", wanted <= names, names)
        pool = descriptor_pool.DescriptorPool(database)
        check_native(checks, Service(channel, pool, "attendant.v1.EncoderService"), pool, expected)
        check_oip(checks, Service(channel, pool, "inference.GRPCInferenceService"), expected)
        health = Service(channel, pool, "grpc.health.v1.Health")
        checks.that("health", health.call("Check", health.request("Check")).status == 1)


if __name__ == "__main__":
    common.run("grpcio", check)
