"""text-embeddings-inference's API, at the root and, for one of several models, below /models/NAME."""
from __future__ import annotations

import asyncio
from importlib import metadata
from typing import Any, Dict, Iterator, List, Optional

from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from ..text import Tokens
from . import numbers, scores, vectors
from .exchange import Call, Handler, endpoint
from .members import Members
from .models import ANY, CLASSIFY, EMBED, RERANK, Purpose, Served
from .refusals import UNFIT, Refusal


async def _choose(call: Call, purpose: Purpose) -> Served:
    return await call.front.models.choose(call.model, purpose)


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def _truncation(call: Call) -> Optional[str]:
    return call.members.truncation(call.front.settings.truncate)


def _wish(call: Call, **more: Any) -> vectors.Wish:
    """Returns what the members say that routes share."""
    members = call.members
    return vectors.Wish("inputs", members.inputs("inputs"), prompt_name=members.name("prompt_name") or None,
                        truncation=_truncation(call), **more)


async def embed(call: Call) -> Response:
    """[[…]]: one vector for each input."""
    wish = _wish(call, normalize=call.members.flag("normalize", True), dimensions=call.members.count("dimensions"))
    rows, _ = await vectors.embed(call, await _choose(call, EMBED), wish)
    return _json(numbers.rows_json(rows))


async def embed_all(call: Call) -> Response:
    """[[[…]]]: for each input, the output of the last layer for each token."""
    rows = await vectors.embed_all(call, await _choose(call, ANY), _wish(call))
    return _json(numbers.list_json(map(numbers.rows_json, rows)))


async def embed_sparse(call: Call) -> Response:
    raise Refusal(UNFIT, "model: expected one with SPLADE's head, which scores the words of its vocabulary; none has one")


async def similarity(call: Call) -> Response:
    """[…]: the cosine of the vector of one sentence with those of others."""
    nothing = Members({}, call.members.limits)
    inputs, parameters = call.members.object("inputs") or nothing, call.members.object("parameters") or nothing
    texts = [inputs.text("source_sentence"), *inputs.texts("sentences")]
    wish = vectors.Wish("sentences", texts, prompt_name=parameters.name("prompt_name") or None,
                        truncation=parameters.truncation(call.front.settings.truncate))
    rows, _ = await vectors.embed(call, await _choose(call, EMBED), wish)
    return _json(numbers.row_json(rows[1:] @ rows[0]))


async def predict(call: Call) -> Response:
    """[{"score", "label"}], best first, or a list of these for a batch."""
    members = call.members
    pairs, batch = members.pairs("inputs")
    # Clients of Hugging Face's Inference API send `parameters`, and expect a list for each text, even for a single one.
    parameters = members.object("parameters")
    wish = scores.Wish("inputs", _truncation(call), members.flag("raw_scores", False),
                       parameters.count("top_k") if parameters else None)
    made = await scores.classify(call, await _choose(call, CLASSIFY), pairs, wish)
    found = [[{"score": one.score, "label": one.label} for one in of_text] for of_text in made]
    return JSONResponse(found if batch or parameters else found[0])


async def rerank(call: Call) -> Response:
    """[{"index", "score"}], best first, with "text" if asked for."""
    members = call.members
    query, texts = members.text("query"), members.texts("texts")
    with_text = members.flag("return_text", False)
    wish = scores.Wish("texts", _truncation(call), members.flag("raw_scores", False))
    ranked, _ = await scores.rerank(call, await _choose(call, RERANK), query, texts, wish)
    return JSONResponse([{"index": one.index, "score": one.score, **({"text": one.text} if with_text else {})}
                         for one in ranked])


async def tokenize(call: Call) -> Response:
    """[[{"id", "text", "special", "start", "stop"}]]: the tokens of each text, none of which are cut off."""
    members = call.members
    texts = [members.text("inputs")] if isinstance(members.given("inputs"), str) else members.texts("inputs")
    with_special, prompt_name = members.flag("add_special_tokens", True), members.name("prompt_name") or None
    tokenizer = (await _choose(call, ANY)).tokenizer
    texts = [tokenizer.prompt(None, prompt_name) + text for text in texts]
    made = await asyncio.to_thread(lambda: [Tokens.of(one) for one in tokenizer.tokens(texts, None)])
    return JSONResponse([[token for token in _describe_tokens(text, tokens) if with_special or not token["special"]]
                         for text, tokens in zip(texts, made)])


def _describe_tokens(text: str, tokens: Tokens) -> Iterator[Dict[str, Any]]:
    spaces = len(text) - len(text.lstrip())  # which are not tokenized
    for number, word, (start, stop) in zip(tokens.ids, tokens.text, tokens.offsets):
        if start == stop:  # it stands for no characters: the tokenizer has added it
            yield {"id": number, "text": word, "special": True, "start": None, "stop": None}
        else:
            yield {"id": number, "text": text[start + spaces:stop + spaces], "special": False, "start": start + spaces,
                   "stop": stop + spaces}


async def by_model(call: Call) -> Response:
    """What text-embeddings-inference does at its root: whatever the model is for."""
    if "query" in call.members.values:
        return await rerank(call)
    if isinstance(call.members.values.get("inputs"), dict):
        return await similarity(call)
    served = await _choose(call, ANY)
    return await (embed if served.embeds() else predict)(call)


async def info(call: Call) -> Response:
    """What a model is, and what may be asked for."""
    served = await _choose(call, ANY)
    description, limits = served.description, call.front.settings.limits
    return JSONResponse({
        "model_id": served.name, "model_sha": None, "model_dtype": description.compute_type, "served_model_name": served.name,
        "model_type": _model_type(served), "max_concurrent_requests": limits.requests,
        "max_input_length": description.embeddings.max_sequence_length, "max_batch_tokens": description.limits.max_batch_tokens,
        "max_batch_requests": None, "max_client_batch_size": limits.texts, "auto_truncate": call.front.settings.truncate,
        "tokenization_workers": 1, "version": _version(), "sha": None, "docker_label": None})


def _version() -> str:
    try:
        return metadata.version("attendant-client")
    except metadata.PackageNotFoundError:  # it runs from its sources
        return "unknown"


def _model_type(served: Served) -> Dict[str, Any]:
    description = served.description
    if not served.classifies():
        mean = served.tasks.pooling == "mean"
        return {"embedding": {"pooling": "mean" if mean else "_".join(description.pooling.modes)}}
    labels = served.tasks.labels
    heads = {"id2label": {str(index): label for index, label in enumerate(labels)},
             "label2id": {label: index for index, label in enumerate(labels)}}
    return {"reranker" if served.reranks() else "classifier": heads}


async def health(call: Call) -> Response:
    """Status 200 if the server answers."""
    await call.front.client.models(timeout=min(5.0, call.remaining()))
    return Response()


POSTS: Dict[str, Handler] = {
    "/": by_model, "/embed": embed, "/embed_all": embed_all, "/embed_sparse": embed_sparse, "/similarity": similarity,
    "/predict": predict, "/rerank": rerank, "/tokenize": tokenize}
_OF_MODELS: List[Route] = [
    *(Route(path, endpoint(handler), methods=["POST"]) for path, handler in POSTS.items()),
    Route("/info", endpoint(info), methods=["GET"])]
ROUTES = [
    *(Route(path, endpoint(health, public=True), methods=["GET"]) for path in ("/health", "/ping", "/")),
    Route("/models/{model}", endpoint(by_model), methods=["POST"]),
    Mount("/models/{model}", routes=_OF_MODELS),
    *_OF_MODELS]
