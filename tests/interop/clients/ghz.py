"""ghz: load from reflection alone. It has no answers to compare; the server's statistics tell what it computed."""
import json

import common
import programs

CALLS = 200


def check(checks, options, expected):
    def load(method, request):
        return json.loads(programs.output(programs.go_program("ghz"), "--insecure", "--call", method, "-n", CALLS, "-c", 8, "-O",
                                          "json", "-d", json.dumps(request), options.grpc))

    def computed():
        asked = json.loads(programs.output(programs.go_program("grpcurl"), "-plaintext", "-d", '{"name": "minilm"}', options.grpc,
                                           "inference.GRPCInferenceService/ModelStatistics"))
        statistics = (asked.get("modelStats") or asked["model_stats"])[0]
        return int(statistics.get("inferenceCount") or statistics["inference_count"])

    before = computed()
    report = load("inference.GRPCInferenceService.ModelInfer", programs.infer_request(expected))
    checks.that(f"{CALLS} × ModelInfer: all OK", report["statusCodeDistribution"] == {"OK": CALLS},
                report["statusCodeDistribution"])
    sequences = CALLS * len(expected["ids"])
    checks.that("the server computed each sequence", computed() - before == sequences, (computed() - before, sequences))
    ids = expected["ids"]
    report = load("attendant.v1.EncoderService.Encode", {"model": "minilm", "token_ids": {
        "dtype": "INT64", "shape": list(ids.shape), "data": programs.base64.b64encode(ids.tobytes()).decode()}})
    checks.that(f"{CALLS} × Encode: all OK", report["statusCodeDistribution"] == {"OK": CALLS}, report["statusCodeDistribution"])


if __name__ == "__main__":
    common.run(lambda: programs.go_version("ghz"), check)
