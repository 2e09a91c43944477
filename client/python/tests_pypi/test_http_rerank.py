"""/v1/rerank, in the forms of Jina and of Cohere, also called by Cohere's own package."""
import cohere
import numpy as np
import pytest
from text_models import letters_tokenizer
from tokenizers import Tokenizer

QUERY, DOCUMENTS = "a cat", ["the dog", "cats are here", "no", "a cat is a cat"]


@pytest.fixture(scope="module")
def scores(client):
    """The scores of DOCUMENTS by the native API."""
    encoded = Tokenizer.from_str(letters_tokenizer()).encode_batch([(QUERY, document) for document in DOCUMENTS])
    logits = client.encode("reranker", input_ids=[one.ids for one in encoded], token_type_ids=[one.type_ids for one in encoded],
                           pooling="classifier").pooled[:, 0].astype(np.float64)
    return 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
@pytest.mark.parametrize("as_objects", [False, True])
def test_rerank(front, scores, path, as_objects):
    documents = [{"text": text} for text in DOCUMENTS] if as_objects else DOCUMENTS
    answer = front.post(path, {"model": "reranker", "query": QUERY, "documents": documents}).json
    assert [one["index"] for one in answer["results"]] == list(np.argsort(-scores))
    np.testing.assert_allclose([one["relevance_score"] for one in answer["results"]], sorted(scores, reverse=True), rtol=1e-5)
    assert "document" not in answer["results"][0]
    tokens = sum(len(one.ids) for one in Tokenizer.from_str(letters_tokenizer()).encode_batch([(QUERY, document) for document in DOCUMENTS]))
    assert answer["model"] == "reranker" and answer["usage"]["total_tokens"] == tokens
    assert answer["id"] and answer["meta"]["billed_units"] == {"search_units": 1}


def test_the_best_with_their_texts(front, scores):
    answer = front.post("/v1/rerank", {"query": QUERY, "documents": DOCUMENTS, "top_n": 2, "return_documents": True}).json
    best = list(np.argsort(-scores)[:2])
    assert [one["index"] for one in answer["results"]] == best
    assert [one["document"]["text"] for one in answer["results"]] == [DOCUMENTS[index] for index in best]


@pytest.mark.parametrize("caller", [cohere.Client, cohere.ClientV2])
def test_cohere(front, scores, caller):
    made = caller(api_key="unused", base_url=front.url).rerank(model="reranker", query=QUERY, documents=DOCUMENTS, top_n=3)
    assert [one.index for one in made.results] == list(np.argsort(-scores)[:3])
    np.testing.assert_allclose([one.relevance_score for one in made.results], sorted(scores, reverse=True)[:3], rtol=1e-5)
    with pytest.raises(cohere.NotFoundError, match="model_not_found"):
        caller(api_key="unused", base_url=front.url).rerank(model="nobody", query=QUERY, documents=DOCUMENTS)


def test_more_than_there_are(front):
    answer = front.post("/v1/rerank", {"query": QUERY, "documents": DOCUMENTS, "top_n": 100}).json
    assert len(answer["results"]) == len(DOCUMENTS)


@pytest.mark.parametrize("change, status, field, message", [
    ({"query": None}, 400, "query", "query: expected a value; got null"),
    ({"query": 7}, 400, "query", "query: expected a text; got 7"),
    ({"documents": []}, 400, "documents", "documents: expected a list of texts, or of objects with \"text\"; got an empty list"),
    ({"documents": "one"}, 400, "documents", 'documents: expected a list of texts, or of objects with "text"; got "one"'),
    ({"documents": ["a", {"title": "b"}]}, 400, "documents", "documents[1].text: expected a text; got null"),
    ({"documents": ["a", ["b"]]}, 400, "documents", "documents[1]: expected a text; got a list of 1"),
    ({"top_n": 0}, 400, "top_n", "top_n: expected an integer from 1; got 0"),
    ({"top_n": 1.5}, 400, "top_n", "top_n: expected an integer from 1; got 1.5"),
    ({"return_documents": "yes"}, 400, "return_documents", 'return_documents: expected true or false; got "yes"'),
    ({"model": "embedder"}, 400, "model", 'model: expected one that is a reranker, which scores one class; "embedder" does not'),
])
def test_refusals(front, change, status, field, message):
    answer = front.post("/v1/rerank", {"model": "reranker", "query": QUERY, "documents": DOCUMENTS, **change})
    assert (answer.status, answer.json["error"]["param"]) == (status, field)
    assert answer.json["error"]["message"] == message
