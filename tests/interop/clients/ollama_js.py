"""npm's ollama, in Node."""
import json

import common
import numpy as np
import programs

CALLS = """
const {Ollama} = require("ollama");
(async () => {
  const [host, texts] = process.argv.slice(1);
  const client = new Ollama({host}), input = JSON.parse(texts), model = "minilm";
  const refused = await client.embed({model: "no-such-model", input}).catch(error => error.status_code);
  console.log(JSON.stringify({
    refused, embed: await client.embed({model, input}), old: await client.embeddings({model, prompt: input[0]}),
    short: await client.embed({model, input, dimensions: 128}), list: await client.list(), version: await client.version()}));
})();
"""


def check(checks, options, expected):
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    made = json.loads(programs.output("node", "-e", CALLS, f"http://{options.http}", json.dumps(texts), NODE_PATH=options.npm))
    checks.close("embed = native", made["embed"]["embeddings"], whole, 1e-7)
    short = whole[:, :128] / np.linalg.norm(whole[:, :128], axis=1, keepdims=True)
    checks.close("dimensions", made["short"]["embeddings"], short, 1e-6)
    checks.close("embeddings = native", [made["old"]["embedding"]], expected["sentence_embedding"][:1], 1e-6)
    checks.that("list", "minilm:latest" in {one["name"] for one in made["list"]["models"]}, made["list"])
    checks.that("version", made["version"]["version"], made["version"])
    checks.that("unknown model", made["refused"] == 404, made["refused"])


def version() -> str:
    return json.loads(programs.output("node", "-p", "JSON.stringify(require('ollama/package.json'))",
                                      NODE_PATH=common.options().npm))["version"]


if __name__ == "__main__":
    common.run(version, check)
