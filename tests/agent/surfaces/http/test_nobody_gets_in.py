"""Those who may not get in try, on a real server: other people's names, odd addresses, and odd clients."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent.surfaces.http import server as http_server
from agent.surfaces.http.application import app

Serve = Callable[..., Awaitable[Any]]

SECRET = "Ben owns a red boat"
OPEN = {"/healthz", "/readyz"}
PLACES = {"{user}": "ben", "{sessionId}": "ben", "{field}": "tone", "{name}": "a.md", "{model}": "hachi"}
HOST = b"\r\nhost: 127.0.0.1\r\n"


@pytest.fixture
async def site(serve: Serve) -> Any:
    """Where Ben has told something, and Ana has a key."""
    made = await serve(http_max_body=1_000, http_timeout=2)
    made.memory = await made.pet.remember(SECRET, user="ben")
    made.ana = await made.headers("ana")
    return made


async def raw(site: Any, request: bytes, key: str = "") -> tuple[int, bytes]:
    """The status and the rest, of a request that no client would write."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
    proof = f"authorization: {key}\r\n".encode() if key else b""
    writer.write(request + HOST + proof + b"connection: close\r\n\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return int(answer.split()[1]), answer


def filled(path: str, memory: str) -> str:
    for place, value in PLACES.items():
        path = path.replace(place, value)
    return path.replace("{memoryId}", memory).replace("{id}", memory)


async def test_a_users_key_with_anothers_name_opens_no_address_at_all(site: Any) -> None:
    tried = 0
    for path, methods in app(site.pet, site.pet.settings).openapi()["paths"].items():
        for method in () if path in OPEN else methods:
            answer = await site.client.request(
                method, filled(path, site.memory.id), headers=site.ana | {"X-OpenWebUI-User-Id": "ben"}
            )
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), (method, path)
            tried += 1
    assert tried > 30
    assert [memory.content for memory in await site.pet.memories(user="ben")] == [SECRET]


@pytest.mark.parametrize(
    "name", ["x-openwebui-user-id", "X-OPENWEBUI-USER-ID", "X-OpenWebUI-User-Id", "X-openWebUI-uSER-iD"]
)
async def test_a_header_is_the_same_however_it_is_spelt(site: Any, name: str) -> None:
    answer = await site.client.get("/v1/models", headers=site.ana | {name: "ben"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "name",
    [
        "x_openwebui_user_id",
        "x-openwebui-user",
        "x-openwebui-user-email",
        "x-openwebui-user-name",
        "x-openwebui-message-id",
        "x-hachi-user",
        "x-user-id",
        "x-forwarded-user",
        "x-remote-user",
        "remote-user",
        "from",
        "cookie",
    ],
)
async def test_no_other_header_says_who_speaks(site: Any, name: str) -> None:
    for headers in (site.ana, await site.headers()):
        told = await site.say("I keep two ferrets", headers | {name: "ben"})
        assert told.status_code == 200
        assert SECRET not in told.text
    assert [memory.content for memory in await site.pet.memories(user="ben")] == [SECRET]


async def test_a_body_names_nobody_either(site: Any) -> None:
    for more in ({"user": "ben"}, {"user": " ben "}):
        assert (await site.say("what do I own?", site.ana, **more)).status_code == 403
    for more in (
        {"metadata": {"user_id": "ben"}},
        {"safety_identifier": "ben"},
        {"user_id": "ben"},
        {"conversation": "dm:ben"},
    ):
        told = await site.say("what do I own?", site.ana, **more)
        assert SECRET not in told.text
    service = await site.headers()
    told = await site.say("what do I own?", service | {"x-openwebui-user-id": "ana"}, user="ben")
    assert (told.status_code, told.json()["memories"]) == (200, [])
    assert len(await site.pet.memories(user="ben")) == 1


async def test_a_role_is_not_believed(site: Any) -> None:
    headers = await site.headers() | {"x-openwebui-user-id": "ana", "x-openwebui-user-role": "admin"}
    assert (await site.client.get("/metrics", headers=headers)).status_code == 403


async def test_a_key_counts_in_its_own_header_only(site: Any) -> None:
    bearer = site.ana["authorization"]
    secret = bearer.removeprefix("Bearer ")
    for headers in ({"x-api-key": secret}, {"api-key": secret}, {"cookie": f"authorization={bearer}"}):
        assert (await site.client.get("/v1/models", headers=headers)).status_code == 401
    for query in ({"key": secret}, {"api_key": secret}, {"access_token": secret}):
        assert (await site.client.get("/v1/models", params=query)).status_code == 401
    for wrong in (
        secret,
        f"Basic {secret}",
        f"Bearer {secret[:-1]}",
        f"Bearer {secret}x",
        f"Bearer {secret.upper()}",
    ):
        assert (await site.client.get("/v1/models", headers={"authorization": wrong})).status_code == 401
    [id] = [key.id for key in await site.keys.all()]
    assert (await site.client.get("/v1/models", headers={"authorization": f"Bearer {id}"})).status_code == 401


TRICKS = [
    b"/api/users/ana/../ben/memories",
    b"/api/users/ana/%2e%2e/ben/memories",
    b"/api/users/ana%2F..%2Fben/memories",
    b"/api/users/ana/memories/../../ben/memories",
    b"/api/users/ana/memories/..%2f..%2fben/memories",
    b"//api/users/ben/memories",
    b"/api//users/ben/memories",
    b"/api/users//ben/memories",
    b"/api/users/ben/memories/",
    b"/api/users/ben%2Fmemories",
    b"/api%2Fusers%2Fben%2Fmemories",
    b"/API/users/ben/memories",
    b"/Api/Users/ben/Memories",
    b"/api/users/ben/memories;x=1",
    b"/api/users/ben/memories%00",
    b"/api/users/ben/memories%3f",
    b"/api/users/ben/memories#ana",
    b"/api/users/ben",
    b"/api/users/%62en/memories",
    b"/api/users/%2562en/memories",
    b"/api/users/ben%20/memories",
    b"/api/users/ben%00/memories",
    b"/api/users/ben;ana/memories",
    b"/api/users/ben/memories?user=ana",
    b"/api/users/ben/memories/search?query=boat&user=ana",
    b"/api/users/ana/memories/%2e%2e/%2e%2e/ben/export",
    b"/api/sessions/ben/memories",
    b"/api/sessions/%62en/memories",
    b"/api/sessions/ana%2F..%2Fben/memories",
    b"/api/sessions/dm:ben/memories",
    b"/healthz/../api/users/ben/memories",
    b"/healthz/%2e%2e/metrics",
    b"/healthz/../metrics",
    b"/metrics",
    b"/metrics/",
    b"//metrics",
    b"/Metrics",
    b"/metrics%20",
    b"http://127.0.0.1/api/users/ben/memories",
    b"http://127.0.0.1/metrics",
    b"*",
]


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"PROPFIND"])
async def test_no_odd_address_leads_around_the_door(site: Any, method: bytes) -> None:
    for key in ("", site.ana["authorization"]):
        for path in TRICKS:
            status, answer = await raw(site, method + b" " + path + b" HTTP/1.1", key)
            assert 400 <= status < 500, (path, status)
            assert b"boat" not in answer, path
            assert b"memory_total" not in answer, path


async def test_what_a_method_override_says_is_not_done(site: Any) -> None:
    id = site.memory.id
    for headers in ({"x-http-method-override": "DELETE"}, {"x-method-override": "DELETE"}):
        await site.client.get(f"/api/users/ben/memories/{id}", headers=site.ana | headers)
        await site.client.post(f"/api/users/ben/memories/{id}", headers=site.ana | headers)
    for header in ("x-original-url", "x-rewrite-url", "x-forwarded-prefix"):
        answer = await site.client.get("/healthz", headers={header: "/api/users/ben/memories"})
        assert answer.json() == {"status": "ok"}
    assert len(await site.pet.memories(user="ben")) == 1


async def test_two_requests_in_one_do_not_share_a_key(site: Any) -> None:
    """The second comes on the same connection, behind one that was let in, or as the body of it."""
    behind = b"GET /api/users/ben/memories HTTP/1.1" + HOST + b"connection: close\r\n\r\n"
    first = (
        b"GET /healthz HTTP/1.1" + HOST + b"authorization: " + site.ana["authorization"].encode() + b"\r\n"
    )
    for between in (b"\r\n", b"content-length: %d\r\n\r\n" % len(behind)):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
        writer.write(first + between + behind)
        writer.write_eof()
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"boat" not in answer
    twice = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked"
    assert (await raw(site, twice))[0] in (400, 401, 408)
    assert (await raw(site, b"POST /v1/models HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6"))[0] == 400


@pytest.mark.parametrize(
    "header", [b"x-padding: " + b"x" * 200_000, b"\r\n".join(b"x-%d: 1" % at for at in range(20_000))]
)
async def test_headers_without_end_are_not_read(site: Any, header: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
    writer.write(b"GET /healthz HTTP/1.1" + HOST + header)
    async with asyncio.timeout(10):
        try:
            answer = await reader.read()
        except ConnectionError:
            answer = b""
    writer.close()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert (await site.client.get("/healthz")).status_code == 200


async def dripping(site: Any, begun: bytes, drop: bytes) -> tuple[float, bytes]:
    """A piece every 20 ms; after how many seconds that was over, and what came back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
    loop = asyncio.get_running_loop()
    start = loop.time()
    writer.write(begun)
    reading = asyncio.ensure_future(reader.read())
    try:
        while not reading.done() and loop.time() - start < 5:
            writer.write(drop)
            await asyncio.sleep(0.02)
        took = loop.time() - start
        async with asyncio.timeout(5):
            return took, await reading
    except ConnectionError:
        return loop.time() - start, b""
    finally:
        writer.transport.abort()


async def test_a_head_that_comes_a_byte_at_a_time_is_not_waited_for(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.3)
    took, answer = await dripping(site, b"GET /healthz HTTP/1.1" + HOST + b"x-more: ", b"x")
    assert 0.2 < took < 2
    assert answer == b""


@pytest.mark.parametrize("kind", [b"content-length: 900", b"transfer-encoding: chunked"])
async def test_a_body_that_comes_a_byte_at_a_time_is_not_waited_for(serve: Serve, kind: bytes) -> None:
    site = await serve(http_timeout=0.3)
    head = b"POST /v1/chat/completions HTTP/1.1" + HOST + kind + b"\r\n\r\n"
    took, answer = await dripping(site, head, b"1\r\nx\r\n" if b"chunked" in kind else b"x")
    assert 0.2 < took < 2
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408")  # who still sends then may not see it


async def test_who_asks_and_asks_and_never_reads_is_hung_up_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a connection kept that was closed with an answer still waiting to be read."""
    monkeypatch.setattr(http_server, "WRITE_TIMEOUT", 0.2)
    site = await serve(http_timeout=0.2)
    await site.client.aclose()
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        reader.connect(("127.0.0.1", int(site.url.rpartition(":")[2])))
        reader.setblocking(False)
        loop = asyncio.get_running_loop()
        asking = b"GET /openapi.json HTTP/1.1" + HOST + b"\r\n"
        sending = asyncio.ensure_future(loop.sock_sendall(reader, asking * 2_000))
        async with asyncio.timeout(10):
            await until(lambda: site.server.server_state.connections)
            await until(lambda: not site.server.server_state.connections)
        sending.cancel()


async def test_who_reads_slowly_and_steadily_gets_all_of_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "WRITE_TIMEOUT", 0.4)
    site = await serve()
    text = "I row. " * 600_000
    monkeypatch.setattr(site.pet, "export", lambda **_: _ready({"text": text}))
    key = (await site.headers("ana"))["authorization"]
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        reader.connect(("127.0.0.1", int(site.url.rpartition(":")[2])))
        reader.setblocking(False)
        loop = asyncio.get_running_loop()
        ask = b"GET /api/users/ana/export HTTP/1.1" + HOST + f"authorization: {key}\r\n".encode()
        await loop.sock_sendall(reader, ask + b"connection: close\r\n\r\n")
        read = b""
        async with asyncio.timeout(20):
            while piece := await loop.sock_recv(reader, 131_072):
                read += piece
                await asyncio.sleep(0.02)
    assert len(read) > len(text)


async def until(so: Callable[[], Any]) -> None:
    while not so():  # noqa: ASYNC110 - the server has no event to wait for
        await asyncio.sleep(0.02)


async def _ready(value: Any) -> Any:
    return value
