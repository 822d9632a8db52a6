"""The bytes of pictures in requests to a model."""

import json
from typing import Any

import httpx2
import pytest

from agent.models.pictures import MARK, PICTURES, put_pictures, url_of
from memory.process.spans import new_id

PICTURE = rb"data:image\/png;base64,AA\/A" * 100_000


@pytest.mark.parametrize("redirected", [False, True])
async def test_a_mark_is_sent_as_its_picture(redirected: bool) -> None:
    mark, unknown = MARK.format(new_id()), MARK.format(new_id())
    seen: list[bytes] = []

    class Server(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            stream: Any = request.stream
            seen.append(b"".join([piece async for piece in stream]))
            assert int(request.headers["content-length"]) == len(seen[-1])
            if redirected and len(seen) == 1:
                return httpx2.Response(307, headers={"location": "http://b.test/"})
            return httpx2.Response(200)

    hooks: Any = {"request": [put_pictures]}
    transport = Server()
    body = {"urls": [mark, unknown, mark], "text": f"say {mark}"}
    async with httpx2.AsyncClient(transport=transport, event_hooks=hooks, follow_redirects=True) as client:
        await client.post("http://a.test/", json=body)
        assert [json.loads(sent) for sent in seen] == [body] * (1 + redirected)
        seen.clear()
        told = PICTURES.set({mark: memoryview(PICTURE)})
        await client.post("http://a.test/", json=body)
        picture = url_of(mark)
        PICTURES.reset(told)
    assert picture.startswith("data:image/png;base64,AA/A")
    shown = body | {"urls": [picture, unknown, picture]}
    assert [json.loads(sent) for sent in seen] == [shown] * (1 + redirected)
