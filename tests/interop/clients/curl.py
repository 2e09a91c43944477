"""curl: the protocol's REST form by hand."""
import json

import common
import numpy as np
import programs


def check(checks, options, expected):
    def curl(path, *arguments):
        """The status and the body."""
        body, _, status = programs.output("curl", "-sS", "-w", "\n%{http_code}", *arguments,
                                          f"http://{options.http}{path}").rpartition("\n")
        return int(status), body

    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/minilm/ready"):
        status, body = curl(path)
        checks.that(path, status == 200, (status, body))
    status, body = curl("/v2")
    checks.that("server metadata", status == 200 and json.loads(body)["name"], body)
    status, body = curl("/v2/models/minilm")
    checks.that("model metadata", status == 200 and json.loads(body)["name"] == "minilm", body)
    ids, mask = expected["ids"], expected["mask"]
    request = {"id": "seven", "outputs": [{"name": "sentence_embedding"}], "inputs": [
        {"name": "input_ids", "datatype": "INT64", "shape": list(ids.shape), "data": ids.tolist()},
        {"name": "attention_mask", "datatype": "INT64", "shape": list(mask.shape), "data": mask.ravel().tolist()}]}
    status, body = curl("/v2/models/minilm/infer", "-H", "content-type: application/json", "-d", json.dumps(request))
    checks.that("infer: 200", status == 200, (status, body[:200]))
    answer = json.loads(body)
    output = answer["outputs"][0]
    checks.that("id echoed", answer["id"] == "seven", answer["id"])
    checks.same("nested and flat data = native", np.array(output["data"], np.float32).reshape(output["shape"]),
                expected["sentence_embedding"])
    for path, sent in (("/v2/models/nobody/infer", json.dumps(request)), ("/v2/models/minilm/infer", "{")):
        status, body = curl(path, "-d", sent)
        checks.that("refusals: 4xx with an error", 400 <= status < 500 and json.loads(body)["error"], (status, body))


if __name__ == "__main__":
    common.run(lambda: programs.output("curl", "--version").split()[1], check)
