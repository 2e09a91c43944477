"""LiteLLM, with each of its providers that speaks to a server of one's own."""
import os

import common
import numpy as np

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is downloaded
import litellm  # noqa: E402

EMBED = {"openai": "/v1", "hosted_vllm": "/v1", "infinity": "", "cohere": "/v2/embed", "jina_ai": "/v1", "voyage": "/v1",
         "huggingface": "/models/minilm/embed", "azure": "", "ollama": ""}
RERANK = {"cohere": "", "jina_ai": "/v1", "hosted_vllm": "", "infinity": "", "voyage": "/v1", "huggingface": "/models/reranker/"}


def check(checks, options, expected):
    url = f"http://{options.http}"
    texts, whole = expected["texts"].tolist(), expected["normalized"]
    for provider, path in EMBED.items():
        made = litellm.embedding(model=f"{provider}/minilm", input=texts, api_base=url + path, api_key="unused",
                                 **({"input_type": "feature-extraction"} if provider == "huggingface" else {}))
        checks.close(f"embedding of {provider} = native", [one["embedding"] for one in made.data], whole, 1e-7)
    documents, scores = texts[1:], expected["rank_scores"]
    order = np.argsort(-scores).tolist()
    for provider, path in RERANK.items():
        made = litellm.rerank(model=f"{provider}/reranker", query=texts[0], documents=documents, api_base=url + path, api_key="unused",
                              top_n=len(documents), return_documents=False)
        checks.that(f"rerank of {provider}: order = native", [one["index"] for one in made.results] == order, made.results)
        checks.close(f"rerank of {provider}: scores = native", [one["relevance_score"] for one in made.results], scores[order], 1e-6)


if __name__ == "__main__":
    common.run("litellm", check)
