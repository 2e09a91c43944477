"""curl: the commands that the pages show, as they stand there."""
import json
import pathlib
import re

import common
import numpy as np
import programs

ROOT = pathlib.Path(__file__).parents[3]
PAGES = ("README.md", "client/text-embeddings.md", "server/text_calls/README.md")
SHOWN = re.compile(r"^curl [^\n]*?localhost:8002/v1/embeddings[^\n]*$", re.M)


def check(checks, options, expected):
    def shell(command):
        """The JSON that a command of a page prints."""
        return json.loads(programs.output("bash", "-c", command.replace("localhost:8002", options.http)))

    commands = sorted({command for page in PAGES for command in SHOWN.findall((ROOT / page).read_text(encoding="utf-8"))})
    checks.that(f"{len(commands)} of the pages' commands", commands, "the pages show none")
    for command in commands:
        made = np.array([one["embedding"] for one in shell(command)["data"]])
        checks.that("vectors of the pages' commands", made.shape[1] == 384 and np.allclose((made**2).sum(1), 1, atol=1e-5), command)

    def post(path, body):
        return shell(f"curl -sS --fail-with-body localhost:8002{path} -d @- <<'END'\n{json.dumps(body)}\nEND")

    texts = expected["texts"].tolist()
    made = [one["embedding"] for one in post("/v1/embeddings", {"input": texts})["data"]]
    checks.close("a body without Content-Type: JSON = native", made, expected["normalized"], 1e-7)
    checks.close("/embed = native", post("/models/minilm/embed", {"inputs": texts}), expected["normalized"], 1e-7)
    checks.that("/openapi.json", "/v1/embeddings" in shell("curl -sS localhost:8002/openapi.json")["paths"])


if __name__ == "__main__":
    common.run(lambda: programs.output("curl", "--version").split()[1], check)
