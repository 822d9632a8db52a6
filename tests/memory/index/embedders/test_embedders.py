"""Opening an embedder by its name."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index.embedders import CAUTIOUS, open_embedder, openai
from memory.index.embedders.breakable import BreakableEmbedder
from memory.index.embedders.bundled import BundledEmbedder
from memory.process.breaker import FIRST_PAUSE, Breaker

Clock = Any


async def test_the_bundled_one_is_free_and_not_cached_and_a_paid_one_is() -> None:
    assert isinstance(open_embedder("bundled"), BundledEmbedder)
    for name, dimension in (("text-embedding-3-small", 1536), ("mistral-embed", 1024)):
        embedder = open_embedder(f"openai:{name}", api_key="k")
        assert isinstance(embedder, BreakableEmbedder)
        assert (embedder.name, embedder.dimension) == (f"openai:{name}", dimension)
        await embedder.close()


@pytest.mark.parametrize("name", ["", "bundle", "openai:", "cohere:x"])
async def test_an_unknown_name_is_reported_with_the_known_ones(name: str) -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        open_embedder(name)
    assert str(raised.value).startswith(
        f"there is no embedder {name!r}; HACHI_EMBEDDER takes bundled, openai:NAME"
    )
    assert "\n" not in str(raised.value)


async def test_an_embedder_that_is_away_is_tried_when_it_is_needed_and_then_left_alone(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    monkeypatch.setattr(openai, "RETRIES", 0)
    embedder = open_embedder("openai:mine", base_url=url, breaker=Breaker("embedder", clock, failures=1))
    with pytest.raises(IndexUnavailable, match="how long its vectors are"):
        _ = embedder.dimension
    for told in ("does not answer", "not tried again before", "not tried again before"):
        with pytest.raises(EmbedderUnavailable, match=told):
            await embedder.embed(["dog"])

    server = ThreadingHTTPServer(("127.0.0.1", int(url.split(":")[2][:-3])), Vectors)
    with server, ThreadPoolExecutor(1) as running:
        running.submit(server.serve_forever, 0.01)
        clock.now += FIRST_PAUSE
        assert await embedder.embed([]) == []
        assert embedder.dimension == 2
        assert len(await embedder.embed(["dog"])) == 1
        server.shutdown()
    assert await embedder.embed([]) == []
    assert len(await embedder.embed(["dog"])) == 1, "it is cached"
    await embedder.close()


async def test_a_text_that_the_server_refuses_does_not_close_it_to_others() -> None:
    class Picky:
        name, dimension, thresholds = "picky", 2, CAUTIOUS

        async def embed(self, texts: Any) -> Any:
            raise EmbedderUnavailable("no") from Refused()

        async def close(self) -> None: ...

    async def picky() -> Any:
        return Picky()

    breaker = Breaker("embedder", failures=1)
    with pytest.raises(EmbedderUnavailable):
        await BreakableEmbedder("picky", CAUTIOUS, picky, breaker).embed(["x"])
    assert breaker.state == "closed"


class Refused(Exception):
    status_code = 400


class Vectors(BaseHTTPRequestHandler):
    """Answers any request with a vector for each text."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        data = [
            {"object": "embedding", "index": at, "embedding": [1, 0]} for at in range(len(asked["input"]))
        ]
        body = json.dumps({"object": "list", "data": data, "model": "m"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...
