"""grpcurl, which knows the services from reflection alone."""
import json

import common
import programs


def check(checks, options, expected):
    def call(method, request):
        return json.loads(programs.output(grpcurl, "-plaintext", "-max-msg-sz", 1 << 26, "-d", json.dumps(request),
                                          options.grpc, method))

    grpcurl = programs.go_program("grpcurl")
    listed = programs.output(grpcurl, "-plaintext", options.grpc, "list").split()
    checks.that("services listed", {"attendant.v1.EncoderService", "inference.GRPCInferenceService"} <= set(listed), listed)
    described = programs.output(grpcurl, "-plaintext", options.grpc, "describe", "inference.GRPCInferenceService")
    checks.that("methods described", "rpc ModelInfer" in described, described)
    answer = call("inference.GRPCInferenceService/ModelInfer", programs.infer_request(expected))
    raw = answer.get("rawOutputContents") or answer["raw_output_contents"]  # by grpcurl's version
    checks.same("ModelInfer = native", programs.floats(raw[0]).reshape(-1, 384), expected["sentence_embedding"])
    ids = expected["ids"]
    native = call("attendant.v1.EncoderService/Encode", {
        "model": "minilm", "return_pooled": True,
        "token_ids": {"dtype": "INT64", "shape": list(ids.shape), "data": programs.base64.b64encode(ids.tobytes()).decode()},
        "attention_mask": {"dtype": "UINT8", "shape": list(ids.shape),
                           "data": programs.base64.b64encode(expected["mask"].astype("uint8").tobytes()).decode()}})
    checks.same("Encode", programs.floats(native["pooled"]["data"]).reshape(-1, 384), expected["sentence_embedding"])
    checks.that("health", call("grpc.health.v1.Health/Check", {"service": "minilm"})["status"] == "SERVING")
    refused = programs.run(grpcurl, "-plaintext", "-d", '{"model_name": "nobody"}', options.grpc,
                           "inference.GRPCInferenceService/ModelInfer")
    checks.that("unknown model: NotFound", refused.returncode != 0 and "NotFound" in refused.stderr, refused.stderr)


if __name__ == "__main__":
    common.run(lambda: programs.go_version("grpcurl"), check)
