"""npm's openai, ai (Vercel's AI SDK), cohere-ai, voyageai and @huggingface/inference, in Node."""
import json
import pathlib

import common
import numpy as np
import programs

PACKAGES = ("openai", "ai", "@ai-sdk/openai-compatible", "@ai-sdk/cohere", "cohere-ai", "voyageai", "@huggingface/inference")
# Vectors of all texts, and rankings of the texts after the first: lists of an index and a score. textClassification expects a
# list for each text, which is for requests with parameters.
CALLS = """
const [url, json] = process.argv.slice(1), texts = JSON.parse(json), [query, ...documents] = texts;
const model = "minilm", apiKey = "unused";
(async () => {
  const {OpenAI} = require("openai"), {CohereClient, CohereClientV2} = require("cohere-ai"), {VoyageAIClient} = require("voyageai");
  const {embedMany, rerank} = require("ai"), {createOpenAICompatible} = require("@ai-sdk/openai-compatible");
  const {createCohere} = require("@ai-sdk/cohere"), {InferenceClient} = require("@huggingface/inference");
  const openai = new OpenAI({baseURL: url + "/v1", apiKey, maxRetries: 0});
  const first = new CohereClient({token: apiKey, environment: url}), second = new CohereClientV2({token: apiKey, environment: url});
  const voyage = new VoyageAIClient({apiKey, environment: url + "/v1"});
  const compatible = createOpenAICompatible({name: "attendant", baseURL: url + "/v1", apiKey});
  const cohere = createCohere({baseURL: url + "/v2", apiKey});
  const hub = name => new InferenceClient("hf_unused").endpoint(url + "/models/" + name);
  const pairs = list => list.map(one => [one.index, one.relevanceScore]);
  const vectors = {
    "openai": (await openai.embeddings.create({model, input: texts})).data.map(one => one.embedding),
    "ai": (await embedMany({model: compatible.embeddingModel(model), values: texts})).embeddings,
    "ai, Cohere": (await embedMany({model: cohere.embeddingModel(model), values: texts})).embeddings,
    "cohere-ai": (await second.embed({model, texts, inputType: "search_document", embeddingTypes: ["float"]})).embeddings.float,
    "cohere-ai, version 1": (await first.embed({model, texts, inputType: "search_document"})).embeddings,
    "voyageai": (await voyage.embed({model, input: texts, inputType: "document"})).data.map(one => one.embedding),
    "huggingface": await hub(model).featureExtraction({inputs: texts})};
  const ranked = await rerank({model: cohere.reranking("reranker"), query, documents});
  const rankings = {
    "ai": ranked.ranking.map(one => [one.originalIndex, one.score]),
    "cohere-ai": pairs((await second.rerank({model: "reranker", query, documents})).results),
    "voyageai": pairs((await voyage.rerank({model: "reranker", query, documents})).data)};
  const classes = await hub("classes").textClassification({inputs: query, parameters: {}});
  const refused = await openai.embeddings.create({model: "no-such-model", input: texts}).catch(error => error.message);
  console.log(JSON.stringify({vectors, rankings, classes, refused}));
})();
"""


def check(checks, options, expected):
    texts, whole, scores = expected["texts"].tolist(), expected["normalized"], expected["rank_scores"]
    made = json.loads(programs.output("node", "-e", CALLS, f"http://{options.http}", json.dumps(texts), NODE_PATH=options.npm))
    for name, vectors in made["vectors"].items():
        checks.close(f"{name}: vectors = native", vectors, whole, 1e-6)
    order = np.argsort(-scores).tolist()
    for name, ranking in made["rankings"].items():
        checks.that(f"{name}: order = native", [index for index, _ in ranking] == order, ranking)
        checks.close(f"{name}: scores = native", [score for _, score in ranking], scores[order], 1e-6)
    powers = np.sort(np.exp(expected["class_scores"][0].astype(np.float64)))[::-1]
    checks.close("huggingface: classes = native", [one["score"] for one in made["classes"]], powers / powers.sum(), 1e-6)
    checks.that("unknown model", "no-such-model" in made["refused"], made["refused"])


def version() -> str:
    npm = pathlib.Path(common.options().npm)
    return ", ".join(json.loads((npm / name / "package.json").read_text(encoding="utf-8"))["version"] for name in PACKAGES)


if __name__ == "__main__":
    common.run(version, check)
