"""Who is let in, and for whom they may ask."""

import asyncio
from typing import Any

import jwt
import pytest

from agent.services.statistics import NAMED, NAMELESS

WRONG_KEY = {"authorization": "Bearer hachi-nothing"}
USER = "x-openwebui-user-id"
SECRET = "Ben owns a red boat"


async def contents(site: Any, user: str) -> list[str]:
    return [memory.content for memory in await site.pet.memories.list(user=user)]


async def test_only_a_whole_active_key_in_its_own_header_is_accepted(site: Any) -> None:
    key, secret = await site.key("ana")
    right = {"authorization": f"Bearer {secret}"}
    values = (secret, f"Basic {secret}", "Bearer", f"Bearer {secret[:-1]}", f"Bearer {secret.upper()}")
    wrong: list[Any] = [{"x-api-key": secret}, [(b"authorization", "Bearer é".encode())]]
    for headers in [*wrong, *({"authorization": value} for value in values)]:
        answer = await site.client.get("/v1/models", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key"), headers
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (await site.client.get("/v1/models", params={"api_key": secret})).status_code == 401
    assert (await site.client.get("/v1/models", headers=right)).status_code == 200
    await site.pet.admin.keys.revoke(key.id, site.pet.clock())
    assert (await site.client.get("/v1/models", headers=right)).status_code == 401


async def test_a_users_key_acts_for_its_user_whoever_else_is_named(site: Any) -> None:
    ana = await site.headers("ana")
    told = await site.say("I collect maps", ana | {USER: "ana"}, user="ana")
    assert told.status_code == 200
    assert any("maps" in content for content in await contents(site, "ana"))

    await site.pet.remember(SECRET, user="ben")
    for more in ({"user": "ben"}, {"user": " ben "}):
        refused = await site.say("what do I own?", ana, **more)
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
    ignored = {
        "user_id": "ben",
        "metadata": {"user_id": "ben"},
        "safety_identifier": "ben",
        "conversation": "dm:ben",
    }
    told = await site.say("what do I own?", ana, **ignored)
    assert (told.status_code, SECRET in told.text) == (200, False)


async def test_a_service_acts_for_the_user_it_names_and_otherwise_for_nobody(site: Any) -> None:
    service = await site.headers()
    for user in ("dan", "eve"):
        await site.say(f"I own the boat of {user}", service | {USER: user})
        assert f"boat of {user}" in str(await contents(site, user)).lower()
        assert len(await contents(site, user)) == 1

    anonymous = await site.say("I own a red boat", service)
    assert (anonymous.status_code, anonymous.json()["memories"]) == (200, [])
    assert len(await contents(site, "dan")) == 1
    assert (await site.say("I own a red kite", service | {USER: "dan"}, user="eve")).status_code == 403
    assert "kite" not in str([await contents(site, user) for user in ("dan", "eve")])
    for user, status in (("eve", 403), ("dan", 200)):
        answer = await site.client.get(f"/api/users/{user}/context", headers=service | {USER: "dan"})
        assert answer.status_code == status


async def test_identity_headers_hold_one_readable_value(site: Any) -> None:
    service = await site.headers()
    key = service["authorization"]
    twice = [("authorization", key), (USER, "ana"), (USER, "ben")]
    answer = await site.client.get("/v1/models", headers=twice)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_header")
    for name in (USER, "x-openwebui-chat-id"):
        answer = await site.client.get("/v1/models", headers=service | {name: "x" * 500})
        assert answer.status_code == 400
        assert name in answer.json()["error"]["message"]

    written = [(b"authorization", key.encode()), (USER.encode(), "אנה".encode())]
    await site.say("I own a kayak", [*written, (b"x-openwebui-user-name", b"Zo%C3%AB")])
    assert "kayak" in str(await contents(site, "אנה"))


async def test_on_loopback_no_key_is_needed_until_one_was_made(serve: Any) -> None:
    site = await serve(loopback=True)

    async def status(path: str = "/v1/models", **headers: str) -> int:
        return int((await site.client.get(path, headers=headers)).status_code)

    for path in ("/v1/models", "/metrics"):
        assert await status(path) == 200
    assert await status(**WRONG_KEY) == 200  # clients always send one
    for host in ("localhost:8000", "[::1]:8000"):
        assert await status(host=host) == 200
    assert await status(host="127.0.0.1.evil.example") == 403
    form = {"content-type": "text/plain"}  # what a page elsewhere may make a browser send
    body = '{"name": "travel.md", "text": "The office pays."}'
    assert (await site.client.post("/api/knowledge", content=body, headers=form)).status_code == 400

    key, _ = await site.key("ana")
    assert (await status(), await status("/metrics")) == (401, 401)
    await site.pet.admin.keys.revoke(key.id, site.pet.clock())
    assert await status() == 401


async def test_each_person_has_their_own_requests_per_minute(serve: Any) -> None:
    site = await serve(http_rate=3)
    service = await site.headers()
    for user, status in (("dan", 200), ("dan", 200), ("dan", 200), ("dan", 429), ("eve", 200)):
        answer = await site.client.get("/v1/models", headers=service | {USER: user})
        assert answer.status_code == status
    ana, ben = await site.headers("ana"), await site.headers("ben")
    for _ in range(3):
        assert (await site.client.get("/v1/models", headers=WRONG_KEY)).status_code == 401
    answers = [await site.client.get("/v1/models", headers=ana) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 20
    assert answers[-1].json()["error"]["type"] == "rate_limit_error"
    assert (await site.client.get("/v1/models", headers=ben)).status_code == 200


async def test_wrong_keys_are_logged_without_the_key(site: Any, caplog: Any) -> None:
    assert (await site.client.get("/v1/models", headers=WRONG_KEY)).status_code == 401
    assert "a request from 127.0.0.1 showed a wrong key" in caplog.text
    assert "hachi-nothing" not in caplog.text


@pytest.mark.parametrize("proof", ["", "authorization: Bearer hachi-nothing\r\n"])
async def test_a_body_is_not_awaited_without_a_right_key(site: Any, proof: str) -> None:
    head = "content-length: 900" if proof else "transfer-encoding: chunked"
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    request = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{proof}{head}\r\n\r\n"
    writer.write(request.encode())
    async with asyncio.timeout(60):
        answer = await reader.readuntil(b"invalid_api_key")
    writer.close()
    assert answer.startswith(b"HTTP/1.1 401")


ODD_PATHS = """
    /api/users/ana/../carl/memories /api/users/ana%2F..%2Fcarl/memories //api/users/carl/memories
    /api/users/%63arl/memories /api/users/carl%00/memories /api/users/carl;ana/memories
    /api/users/carl/memories?user=ana /api/users/carl/memories/
    /api/sessions/ana%2F..%2Fcarl/memories /api/sessions/dm:carl/memories /healthz/%2e%2e/metrics //metrics
    http://127.0.0.1/api/users/carl/memories *
""".split()


async def test_no_odd_path_leads_around_authentication(site: Any) -> None:
    """On raw connections: no client would write such requests."""
    await site.pet.remember(SECRET, user="carl")
    proof = f"authorization: {(await site.headers('ana'))['authorization']}\r\n"

    async def ask(method: str, path: str, key: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(f"{method} {path} HTTP/1.1\r\nhost: x\r\n{key}connection: close\r\n\r\n".encode())
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        assert 400 <= int(answer.split()[1]) < 500, (path, answer)
        assert b"boat" not in answer
        assert b"memory_total" not in answer

    for method in ("GET", "PROPFIND"):
        await asyncio.gather(*(ask(method, path, key) for path in ODD_PATHS for key in ("", proof)))


async def test_without_keys_no_page_of_another_site_changes_anything(serve: Any) -> None:
    """A POST without a body needs no leave of ours to be sent."""
    site = await serve(loopback=True)
    sent: dict[str, str]
    for sent in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "same-site"}):
        answer = await site.client.post("/api/users/ana/memories/12345678/forget", headers=sent)
        assert answer.status_code == 403
        assert "another site" in answer.json()["error"]["message"]
    assert (await site.client.get("/api/users/ana/memories", headers=sent)).status_code == 200
    own = {"origin": f"http://{site.client.base_url.netloc.decode()}", "sec-fetch-site": "same-origin"}
    renamed = {
        "origin": "https://pet.example",
        "sec-fetch-site": "same-origin",
    }  # a proxy names itself as host
    for headers in (own, renamed):
        assert (await site.client.post("/v1/chat/completions", headers=headers)).status_code == 400


SECRET_OF_WEBUI = "a secret of both servers, 32 bytes at least"


def token(**claims: Any) -> dict[str, str]:
    said = {"sub": "u-1", "name": "Zoë", "exp": 4_000_000_000, **claims}
    return {"x-openwebui-user-jwt": jwt.encode(said, SECRET_OF_WEBUI, "HS256")}


async def test_a_signed_token_says_who_speaks(serve: Any) -> None:
    site = await serve(forward_user_info_header_jwt_secret=SECRET_OF_WEBUI)
    service = await site.headers()
    assert (await site.say("I have a zebu", service | token())).status_code == 200
    assert [(row["user_id"], row["author"]) for row in site.messages("u-1")][:1] == [("u-1", "Zoë")]
    for wrong, status in (
        (token(exp=1), 401),
        (token(sub=None), 401),
        ({"x-openwebui-user-jwt": "no.token.at all"}, 401),
        (token() | {USER: "ben"}, 403),
    ):
        assert (await site.say("what do I have?", service | wrong)).status_code == status
    assert (await site.say("hello", service, user="ben")).status_code == 403
    assert (await site.say("hello", await site.headers("ana") | token())).status_code == 403


async def test_that_nobody_is_named_is_said_once(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    site = await serve()
    service = await site.headers()
    refused = await site.say("hello", service | token())  # which cannot be verified here
    assert (refused.status_code, "FORWARD_USER_INFO_HEADER_JWT_SECRET" in refused.text) == (401, True)
    for _ in range(2):
        await site.say("hello", service)
    assert len([one for one in caplog.messages if "names nobody" in one]) == 1
    counts = await site.pet.admin.statistics.figures.totals("")
    assert (counts[NAMELESS], counts[NAMED]) == (2, 0)
