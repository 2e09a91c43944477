"""Haystack's embedders and rankers of OpenAI, text-embeddings-inference, Cohere, Jina and Ollama."""
import os

import common
import numpy as np

os.environ.update({name: "unused" for name in ("OPENAI_API_KEY", "HF_TOKEN", "COHERE_API_KEY", "JINA_API_KEY")},
                  HAYSTACK_TELEMETRY_ENABLED="False")
from haystack import Document  # noqa: E402
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder  # noqa: E402
from haystack_integrations.components.embedders.cohere import CohereDocumentEmbedder, CohereTextEmbedder  # noqa: E402
from haystack_integrations.components.embedders.huggingface_api import (  # noqa: E402
    HuggingFaceAPIDocumentEmbedder, HuggingFaceAPITextEmbedder)
from haystack_integrations.components.embedders.jina import JinaDocumentEmbedder, JinaTextEmbedder  # noqa: E402
from haystack_integrations.components.embedders.ollama import OllamaDocumentEmbedder, OllamaTextEmbedder  # noqa: E402
from haystack_integrations.components.rankers.cohere import CohereRanker  # noqa: E402
from haystack_integrations.components.rankers.huggingface_api import HuggingFaceTEIRanker  # noqa: E402
from haystack_integrations.components.rankers.jina import JinaRanker  # noqa: E402


def check(checks, options, expected):
    url, texts, whole, scores = f"http://{options.http}", expected["texts"].tolist(), expected["normalized"], expected["rank_scores"]
    tei = {"api_type": "text_embeddings_inference", "api_params": {"url": f"{url}/models/minilm"}, "truncate": True, "normalize": True}
    embedders = {
        "OpenAI": (OpenAITextEmbedder, OpenAIDocumentEmbedder, {"model": "minilm", "api_base_url": f"{url}/v1"}),
        "TEI": (HuggingFaceAPITextEmbedder, HuggingFaceAPIDocumentEmbedder, tei),
        "Cohere": (CohereTextEmbedder, CohereDocumentEmbedder, {"model": "minilm", "api_base_url": url}),
        "Jina": (JinaTextEmbedder, JinaDocumentEmbedder, {"model": "minilm", "base_url": f"{url}/v1/embeddings"}),
        "Ollama": (OllamaTextEmbedder, OllamaDocumentEmbedder, {"model": "minilm", "url": url})}
    for name, (of_text, of_documents, arguments) in embedders.items():
        checks.close(f"{name}: text = native", [of_text(**arguments).run(text)["embedding"] for text in texts], whole, 1e-6)
        made = of_documents(**arguments).run([Document(content=text) for text in texts])["documents"]
        checks.close(f"{name}: documents = native", [one.embedding for one in made], whole, 1e-6)

    order, documents = np.argsort(-scores).tolist(), [Document(content=text, meta={"at": at}) for at, text in enumerate(texts[1:])]
    for name, ranker in (("TEI", HuggingFaceTEIRanker(url=f"{url}/models/reranker")),
                         ("Cohere", CohereRanker(model="reranker", api_base_url=url)),
                         ("Jina", JinaRanker(model="reranker", base_url=f"{url}/v1/rerank"))):
        made = ranker.run(query=texts[0], documents=documents)["documents"]
        checks.that(f"{name}: order = native", [one.meta["at"] for one in made] == order, made)
        checks.close(f"{name}: scores = native", [one.score for one in made], scores[order], 1e-6)
    unknown = JinaTextEmbedder(model="no-such-model", base_url=f"{url}/v1/embeddings")
    checks.refuses("unknown model", lambda: unknown.run("a"), RuntimeError, "no-such-model")


if __name__ == "__main__":
    common.run("haystack-ai", check)
