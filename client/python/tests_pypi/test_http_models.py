"""Which model a request goes to, and when it is asked for again."""
import asyncio
import collections

import pytest
from attendant_client import NotFound, messages
from attendant_client.http.models import CLASSIFY, EMBED, FRESH_SECONDS, RERANK, Models
from attendant_client.http.refusals import Refusal


class Server:
    """An AsyncClient of a server whose models are {name: (pooled width, classes)}, and which counts calls."""

    def __init__(self, **models):
        self.served, self.version, self.calls = models, 1, collections.Counter()

    async def models(self):
        self.calls["models"] += 1
        return sorted(self.served)

    async def model(self, name):
        self.calls["model"] += 1
        await asyncio.sleep(0)
        if name not in self.served:
            raise NotFound(f'model: no model is named "{name}"')
        width, classes = self.served[name]
        return messages.GetModelResponse(name=name, pooled_width=width, classes=classes, model_version=self.version)

    async def tokenizer(self, name):
        self.calls["tokenizer"] += 1
        await asyncio.sleep(0)
        if name.startswith("images"):
            raise NotFound(f"model {name} has no tokenizer")
        return messages.GetTokenizerResponse()


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def run(server, offered, calls):
    """Runs calls(models, clock) on an event loop."""
    async def main():
        clock = Clock()
        return await calls(Models(server, offered, clock), clock)
    return asyncio.run(main())


def test_a_model_is_asked_for_again_after_a_while_and_its_tokenizer_with_a_new_version():
    server = Server(m=(4, 0))

    async def calls(models, clock):
        first = (await asyncio.gather(*(models.find("m") for _ in range(10))))[0]
        assert server.calls == {"model": 1, "tokenizer": 1}
        clock.now += FRESH_SECONDS
        assert await models.find("m") is first and server.calls == {"model": 2, "tokenizer": 1}
        server.version = 2
        assert await models.find("m") is first
        clock.now += FRESH_SECONDS
        assert (await models.find("m")).description.model_version == 2 and server.calls == {"model": 3, "tokenizer": 2}
        assert await models.find("m") is not first

    run(server, {}, calls)


def test_the_only_one_that_fits():
    server = Server(embedder=(4, 0), classifier=(4, 3), reranker=(4, 1), images=(4, 0))

    async def calls(models, clock):
        assert [served.name for served in await models.all()] == ["classifier", "embedder", "reranker"]
        assert (await models.choose("", EMBED)).name == "embedder"
        assert (await models.choose("", RERANK)).name == "reranker"
        with pytest.raises(Refusal, match="model: expected one of classifier, reranker, in the body or as /models/NAME/…; got none"):
            await models.choose("", CLASSIFY)
        made = dict(server.calls)
        await models.choose("", EMBED)
        assert server.calls == made
        server.served["other"] = (4, 0)
        clock.now += FRESH_SECONDS
        with pytest.raises(Refusal, match="expected one of embedder, other"):
            await models.choose("", EMBED)

    run(server, {}, calls)


def test_none_that_fits():
    async def calls(models, clock):
        with pytest.raises(Refusal, match="model: expected one that is a reranker.*; none that is served does"):
            await models.choose("", RERANK)
        with pytest.raises(Refusal, match='model: expected one that is a reranker.*; "m" does not'):
            await models.choose("m", RERANK)

    run(Server(m=(4, 0)), {}, calls)


def test_names_that_are_offered():
    async def calls(models, clock):
        assert [served.name for served in await models.all()] == ["shown"]
        assert (await models.find("shown")).description.name == "m"
        with pytest.raises(NotFound):
            await models.find("lost")
        with pytest.raises(Refusal, match='model: expected one of shown, lost; got "m"'):
            await models.find("m")

    run(Server(m=(4, 0), hidden=(4, 0)), {"shown": "m", "lost": "gone"}, calls)
