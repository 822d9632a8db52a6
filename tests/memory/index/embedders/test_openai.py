"""Embeddings over the wire, against a stand-in for the server."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import numpy as np
import pytest
from openai import AsyncOpenAI

from memory.errors import EmbedderUnavailable
from memory.index.embedders import CAUTIOUS, open_embedder, openai
from memory.index.embedders.openai import OpenAIEmbedder

KEY = "sk-very-secret"
URL = "http://127.0.0.1:9/v1"


class Server:
    """Answers with vectors that tell the length of the text, last first, and keeps what was asked."""

    def __init__(self, *failures: httpx2.Response | Exception, length: int = 4) -> None:
        self.asked: list[dict[str, Any]] = []
        self.attempts = 0
        self._failures = list(failures)
        self._length = length

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.attempts += 1
        if self._failures:
            failure = self._failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return failure
        asked = json.loads(request.content)
        self.asked.append(asked)
        zeros = [0.0] * (self._length - 2)
        data = [
            {"object": "embedding", "index": at, "embedding": [float(len(text)), 1.0, *zeros]}
            for at, text in enumerate(asked["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return httpx2.Response(200, json={"object": "list", "data": data[::-1], "model": "m", "usage": usage})


def client_of(answer: Callable[[httpx2.Request], httpx2.Response], retries: int = 2) -> AsyncOpenAI:
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return AsyncOpenAI(api_key=KEY, base_url=URL, http_client=http, max_retries=retries)


async def opened(server: Server, model: str = "mine", retries: int = 2) -> OpenAIEmbedder:
    return await OpenAIEmbedder.open(model, client=client_of(server, retries))


def refusal(status: int, message: str = "no") -> httpx2.Response:
    return httpx2.Response(status, json={"error": {"message": message}}, headers={"retry-after-ms": "1"})


async def test_an_unknown_model_is_asked_for_its_dimension_and_a_known_one_is_not() -> None:
    server = Server(length=7)
    assert (await opened(server)).dimension == 7
    assert len(server.asked) == 1
    assert (await opened(server)).thresholds == CAUTIOUS
    known = await opened(server, "text-embedding-3-small")
    assert (known.dimension, known.thresholds.dedupe, len(server.asked)) == (1536, 0.85, 2)


async def test_each_text_gets_its_own_vector_of_length_one_and_blank_ones_zeros_without_being_sent() -> None:
    server = Server()
    embedder = await opened(server)
    blank, one, three, other = await embedder.embed(["", "a", "abc", " \n"])
    assert not blank.any()
    assert not other.any()
    assert np.allclose(one, np.array([1, 1, 0, 0]) / 2**0.5)
    assert np.allclose(three, np.array([3, 1, 0, 0]) / 10**0.5)
    assert one.dtype == np.float32
    assert server.asked[-1]["input"] == ["a", "abc"]
    assert await embedder.embed([]) == []
    assert len(server.asked) == 2
    await embedder.close()


async def test_requests_are_cut_to_what_the_server_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "MAX_TEXTS", 3)
    monkeypatch.setattr(openai, "MAX_REQUEST_BYTES", 10)
    monkeypatch.setattr(openai, "MAX_TEXT_BYTES", 8)
    server = Server()
    embedder = await opened(server)
    texts = ["a", "b", "c", "d", "12345678X", "999", "\ud800"]
    vectors = await embedder.embed(texts)
    assert [asked["input"] for asked in server.asked[1:]] == [
        ["a", "b", "c"],
        ["d", "12345678"],
        ["999", "\ufffd"],
    ]
    assert [round(float(v[0] / v[1])) for v in vectors] == [1, 1, 1, 1, 8, 3, 1]


async def test_what_may_pass_is_tried_again() -> None:
    server = Server(refusal(429), httpx2.ConnectError("down"))
    assert (await opened(server)).dimension == 4
    assert server.attempts == 3


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (refusal(401, f"Incorrect API key provided: {KEY}"), "rejects the key; set OPENAI_API_KEY"),
        (refusal(404), "does not exist; choose another model in HACHI_EMBEDDER"),
        (refusal(429), "too busy or out of quota"),
        (refusal(400, f"bad {KEY}\nsecond line"), r"rejects the request \(.*bad \*\*\*"),
        (httpx2.ConnectError("down"), "does not answer"),
    ],
)
async def test_a_failure_is_a_line_without_the_key(failure: httpx2.Response | Exception, words: str) -> None:
    server = Server(failure)
    with pytest.raises(EmbedderUnavailable, match=words) as told:
        await opened(server, retries=0)
    assert server.attempts == 1
    assert KEY not in str(told.value)
    assert "\n" not in str(told.value)
    assert URL in str(told.value)


async def test_a_request_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "DEADLINE", 0.05)
    slow = httpx2.Response(503, headers={"retry-after": "30"})
    with pytest.raises(EmbedderUnavailable, match="does not answer"):
        await opened(Server(slow))


class SlowServer(Server):
    """Too slow for more than three texts at a time."""

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if len(json.loads(request.content)["input"]) > 3:
            self.attempts += 1
            raise httpx2.ReadTimeout("slow")
        return super().__call__(request)


async def test_a_slow_server_is_asked_for_fewer_texts_at_a_time() -> None:
    server = SlowServer()
    embedder = await opened(server, retries=0)
    texts = [str(10**length) for length in range(20)]
    for attempts in (3 + 10, 10):  # in vain with twenty, ten and five at a time, which is known afterwards
        before = server.attempts
        vectors = await embedder.embed(texts)
        assert [round(float(v[0] / v[1])) for v in vectors] == [len(text) for text in texts]
        assert server.attempts - before == attempts


async def test_a_server_that_was_slow_once_is_asked_for_more_at_a_time_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(openai, "TRUSTED", 2)
    server = SlowServer()
    embedder = await opened(server, retries=0)
    await embedder.embed(["a", "b", "c", "d"])
    monkeypatch.setattr(SlowServer, "__call__", Server.__call__)  # it is quick again
    for most in (2, 2, 4, 4, 8):
        await embedder.embed([f"{most} {n}" for n in range(most)])
        assert len(server.asked[-1]["input"]) == most
    await embedder.embed([str(n) for n in range(16)])
    assert len(server.asked[-1]["input"]) == 8, "twice as many each time, and not all at once"


async def test_an_answer_of_another_shape_and_a_lack_of_key_and_address_are_told() -> None:
    server = Server(length=4)
    with pytest.raises(EmbedderUnavailable, match="lengths \\[4\\] instead of 1 vectors of 1536 length"):
        await (await opened(server, "text-embedding-3-small")).embed(["dog"])
    empty = {"object": "list", "data": [], "model": "m", "usage": {"prompt_tokens": 0, "total_tokens": 0}}
    with pytest.raises(EmbedderUnavailable, match="needs OPENAI_API_KEY, or OPENAI_BASE_URL"):
        open_embedder("openai:text-embedding-3-small")
    with pytest.raises(EmbedderUnavailable, match="answered with 0 vectors"):
        await opened(Server(httpx2.Response(200, json=empty)))
