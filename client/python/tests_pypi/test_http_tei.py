"""text-embeddings-inference's API, called by Hugging Face's client and by hand."""
import numpy as np
import pytest
from huggingface_hub import InferenceClient
from text_models import WORDS, ids_of, letters_tokenizer
from tokenizers import Tokenizer

TEXTS = ["a cat sat", "the dog", "c"]
LONG = "a" * 40  # 42 tokens; the models take 24


def native(client, *ids, **options):
    return client.encode("embedder", input_ids=list(ids), pooling="model", **options).pooled


def vectors(answer):
    assert answer.status == 200, answer.body
    return np.array(answer.json, np.float32)


@pytest.mark.parametrize("given", [TEXTS, "a cat sat"])
def test_feature_extraction(front, client, given):
    for path in ("/embed", "/models/embedder", "/models/embedder/embed"):
        made = InferenceClient(model=front.url + path).feature_extraction(given)
        texts = [given] if isinstance(given, str) else given
        np.testing.assert_array_equal(made, native(client, *map(ids_of, texts), normalize=True))


def test_options_of_feature_extraction(front, client):
    hub = InferenceClient(model=f"{front.url}/embed")
    np.testing.assert_array_equal(hub.feature_extraction("cat", prompt_name="query"), native(client, ids_of("ask cat"), normalize=True))
    short = hub.feature_extraction("cat", dimensions=7)
    whole = native(client, ids_of("cat"))[:, :7]
    np.testing.assert_allclose(short, whole / np.linalg.norm(whole), rtol=1e-6)
    np.testing.assert_array_equal(hub.feature_extraction(LONG, truncate=True), native(client, ids_of(LONG), normalize=True))
    cut_left = Tokenizer.from_str(letters_tokenizer())
    cut_left.enable_truncation(24, direction="left")
    text = "b" + LONG + "cd"
    np.testing.assert_array_equal(hub.feature_extraction(text, truncate=True, truncation_direction="left"),
                                  native(client, cut_left.encode(text).ids, normalize=True))


def test_texts_beside_ids(front, client):
    made = vectors(front.post("/embed", {"inputs": ["a cat", [2, 9, 3], "the dog"], "normalize": False}))
    np.testing.assert_array_equal(made, native(client, ids_of("a cat"), [2, 9, 3], ids_of("the dog")))


def test_sentence_similarity(front, client):
    made = InferenceClient(model=f"{front.url}/similarity").sentence_similarity("a cat", other_sentences=TEXTS)
    rows = native(client, ids_of("a cat"), *map(ids_of, TEXTS), normalize=True)
    np.testing.assert_allclose(made, rows[1:] @ rows[0], rtol=1e-5)


def test_embed_all(front, client):
    answer = front.post("/models/embedder/embed_all", {"inputs": ["a cat", [2, 9, 3]]})
    expected = client.encode("embedder", input_ids=[ids_of("a cat"), [2, 9, 3]]).hidden_states
    for made, rows in zip(answer.json, expected):
        np.testing.assert_array_equal(np.array(made, np.float32), rows)


def scores(client, name, *texts):
    encoded = Tokenizer.from_str(letters_tokenizer()).encode_batch(list(texts))
    return client.encode(name, input_ids=[one.ids for one in encoded], token_type_ids=[one.type_ids for one in encoded],
                         pooling="classifier").pooled.astype(np.float64)


def softmax(rows):
    powers = np.exp(rows - rows.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def check_labels(made, row):
    """made: [{"label", "score"}], best first. row: the score of each class."""
    best_first = np.argsort(-row)
    assert [one["label"] for one in made] == [f"class {index}" for index in best_first]
    np.testing.assert_allclose([one["score"] for one in made], row[best_first], rtol=1e-5)


def test_text_classification(front, client):
    for path in ("/models/classifier", "/models/classifier/predict"):
        hub = InferenceClient(model=front.url + path)
        made = hub.text_classification("a cat")
        check_labels([{"label": one.label, "score": one.score} for one in made], softmax(scores(client, "classifier", "a cat"))[0])
        assert [one.label for one in hub.text_classification("a cat", top_k=1)] == [made[0].label]


@pytest.mark.parametrize("given, texts, batch", [
    ("a cat", ["a cat"], False), (["a cat"], ["a cat"], False), (["a cat", "dog"], [("a cat", "dog")], False),
    ([["a cat"], ["a cat", "dog"]], ["a cat", ("a cat", "dog")], True)])
@pytest.mark.parametrize("raw", [False, True])
def test_predict(front, client, given, texts, batch, raw):
    made = front.post("/models/classifier/predict", {"inputs": given, "raw_scores": raw}).json
    expected = scores(client, "classifier", *texts)
    for one, row in zip(made if batch else [made], expected if raw else softmax(expected)):
        check_labels(one, row)


@pytest.mark.parametrize("raw", [False, True])
def test_rerank(front, client, raw):
    made = front.post("/rerank", {"query": "a cat", "texts": TEXTS, "raw_scores": raw, "return_text": raw}).json
    logits = scores(client, "reranker", *(("a cat", text) for text in TEXTS))[:, 0]
    expected = logits if raw else 1 / (1 + np.exp(-logits))
    order = list(np.argsort(-expected))
    assert [one["index"] for one in made] == order
    np.testing.assert_allclose([one["score"] for one in made], expected[order], rtol=1e-5)
    assert [one.get("text") for one in made] == ([TEXTS[index] for index in order] if raw else [None] * len(order))


def test_tokenize(front):
    made = front.post("/models/embedder/tokenize", {"inputs": ["a Cat", "b"]}).json
    assert [token["id"] for token in made[0]] == ids_of("a cat")
    assert made[0][2] == {"id": WORDS.index("c"), "text": "C", "special": False, "start": 2, "stop": 3}
    assert made[0][0] == {"id": WORDS.index("[CLS]"), "text": "[CLS]", "special": True, "start": None, "stop": None}
    bare = front.post("/models/embedder/tokenize", {"inputs": "a cat", "add_special_tokens": False}).json
    assert [token["id"] for token in bare[0]] == ids_of("a cat")[1:-1]


def test_info(front):
    embedder = front.get("/models/embedder/info").json
    assert embedder["model_id"] == "embedder" and embedder["model_type"] == {"embedding": {"pooling": "mean"}}
    assert embedder["max_input_length"] == 24 and embedder["model_dtype"] == "f32" and embedder["max_client_batch_size"] == 2048
    labels = {str(index): f"class {index}" for index in range(3)}
    assert front.get("/models/classifier/info").json["model_type"] == {"classifier": {
        "id2label": labels, "label2id": {label: int(index) for index, label in labels.items()}}}
    assert list(front.get("/models/reranker/info").json["model_type"]) == ["reranker"]
    assert "classifier, embedder, reranker" in front.get("/info").json["error"]


@pytest.mark.parametrize("path", ["/health", "/ping", "/"])
def test_health(front, path):
    assert front.get(path).status == 200


@pytest.mark.parametrize("path, body, status, kind, message", [
    ("/embed", {}, 422, "Validation", "inputs: expected a value; got none"),
    ("/embed", {"inputs": []}, 400, "Empty", "inputs: expected a text, a list of texts, or token ids; got an empty list"),
    ("/embed", {"inputs": ["a", 7]}, 422, "Validation", "inputs[1]: expected a text; got 7"),
    ("/embed", {"inputs": ["a", []]}, 400, "Empty", "inputs[1]: expected at least one token id; got an empty list"),
    ("/embed", {"inputs": [1, True]}, 422, "Validation", "inputs[1]: expected a token id, which is an integer from 0; got true"),
    ("/embed", {"inputs": [2, 60]}, 422, "Tokenizer", "inputs[1]: expected a token id of 0..59; got 60"),
    ("/embed", {"inputs": ["a", [2, 60]]}, 422, "Tokenizer", "inputs[1][1]: expected a token id of 0..59; got 60"),
    ("/embed", {"inputs": "a", "normalize": 1}, 422, "Validation", "normalize: expected true or false; got 1"),
    ("/embed", {"inputs": "a", "prompt_name": "nothing"}, 422, "Validation", "prompt_name: expected"),
    ("/embed", {"inputs": "a", "truncation_direction": "up"}, 422, "Validation", 'truncation_direction: expected "right" or "left"'),
    ("/embed", {"inputs": ["a", LONG], "truncate": False}, 422, "Validation", "inputs[1]: expected at most 24 tokens; got 42"),
    ("/embed", {"inputs": [[2] * 25], "truncate": False}, 422, "Validation", "inputs: expected at most 24 tokens; got 25"),
    ("/models/classifier/embed", {"inputs": "a"}, 424, "Backend", "model: expected one that makes one vector of a text"),
    ("/models/embedder/predict", {"inputs": "a"}, 424, "Backend", "model: expected one that has a head that scores classes"),
    ("/models/classifier/rerank", {"query": "a", "texts": ["b"]}, 424, "Backend", "model: expected one that is a reranker"),
    ("/models/tiny/tokenize", {"inputs": "a"}, 424, "Backend", "model tiny has no tokenizer"),
    ("/models/nobody/embed", {"inputs": "a"}, 404, "Validation", 'model: no model is named "nobody"'),
    ("/models/tiny/embed", {"inputs": "a"}, 424, "Backend", "model tiny has no tokenizer"),
    ("/embed_sparse", {"inputs": "a"}, 424, "Backend", "model: expected one with SPLADE's head"),
    ("/predict", {"inputs": ["a", "b", "c"]}, 422, "Validation", "inputs: expected a list of one or two texts; got a list of 3"),
    ("/predict", {"inputs": [["a"], "b"]}, 422, "Validation", "inputs[1]: expected a list of one or two texts; got \"b\""),
    ("/rerank", {"query": "a", "texts": []}, 400, "Empty", "texts: expected a list of texts; got an empty list"),
    ("/similarity", {"inputs": "a"}, 422, "Validation", 'inputs: expected an object; got "a"'),
    ("/embed", {"inputs": "\ud800"}, 422, "Tokenizer", "inputs: expected a text of Unicode characters; got half a surrogate pair"),
])
def test_refusals(front, path, body, status, kind, message):
    answer = front.post(path, body)
    assert (answer.status, answer.json["error_type"]) == (status, kind), answer.json
    assert answer.json["error"].startswith(message), answer.json
