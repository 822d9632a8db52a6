"""Who gets in, and for whom they may ask."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent.surfaces.http.application import app

Serve = Callable[..., Awaitable[Any]]

WITHOUT_A_KEY = {"/healthz", "/readyz"}
NOBODYS = {"authorization": "Bearer hachi-nothing"}


def fill(path: str) -> str:
    for name, value in (("{user}", "ana"), ("{sessionId}", "ana"), ("{field}", "name"), ("{model}", "hachi")):
        path = path.replace(name, value)
    return path.replace("{memoryId}", "0" * 36).replace("{id}", "0" * 36)


async def test_every_address_but_the_two_of_health_needs_a_key(serve: Serve) -> None:
    site = await serve()
    paths = app(site.pet, site.pet.settings).openapi()["paths"]
    assert len(paths) > 15
    for path, methods in paths.items():
        for method in methods:
            for headers in (NOBODYS, {"x-openwebui-user-id": "ana"}):
                answer = await site.client.request(method, fill(path), headers=headers)
                if path in WITHOUT_A_KEY:
                    assert answer.status_code == 200, path
                else:
                    assert answer.status_code == 401, (method, path)
                    assert answer.json()["error"]["code"] == "invalid_api_key"
                    assert answer.headers["www-authenticate"] == "Bearer"


async def test_what_is_no_key_does_not_get_in(serve: Serve) -> None:
    site = await serve()
    for given in ["Basic YTpi", "Bearer", "bearer sk-1", "hachi-nothing", "Bearer é"]:
        answer = await site.client.get("/v1/models", headers=[(b"authorization", given.encode())])
        assert answer.status_code == 401, given


async def test_a_revoked_key_no_longer_gets_in(serve: Serve) -> None:
    site = await serve()
    key, secret = await site.key("ana")
    headers = {"authorization": f"Bearer {secret}"}
    assert (await site.client.get("/v1/models", headers=headers)).status_code == 200

    await site.keys.revoke(key.id, site.pet.clock())

    assert (await site.client.get("/v1/models", headers=headers)).status_code == 401


async def test_a_users_key_speaks_for_its_user_without_being_told(serve: Serve) -> None:
    site = await serve()
    await site.say("my name is Anastasia and I collect maps", await site.headers("ana"))
    assert await site.pet.memories(user="ana")


@pytest.mark.parametrize("how", ["header", "body", "address"])
async def test_a_users_key_never_acts_for_another(serve: Serve, how: str) -> None:
    site = await serve()
    await site.pet.remember("Ben owns a red boat", user="ben")
    headers = await site.headers("ana", admin=True)
    if how == "header":
        answer = await site.say("what do I own?", headers | {"x-openwebui-user-id": "ben"})
    elif how == "body":
        answer = await site.say("what do I own?", headers, user="ben")
    else:
        answer = await site.client.get("/api/users/ben/memories", headers=headers)
    assert answer.status_code == 403
    assert "boat" not in answer.text
    assert answer.json()["error"]["type"] == "permission_error"
    assert [memory.content for memory in await site.pet.memories(user="ben")] == ["Ben owns a red boat"]


async def test_a_users_key_may_name_its_own_user(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers("ana")
    said = await site.say("hello", headers | {"x-openwebui-user-id": "ana"}, user="ana")
    assert said.status_code == 200


async def test_a_service_names_who_speaks(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers()
    for user in ("ana", "ben"):
        await site.say(f"I own the boat of {user}", headers | {"x-openwebui-user-id": user})
    known = {user: [m.content for m in await site.pet.memories(user=user)] for user in ("ana", "ben")}
    assert all(user in " ".join(known[user]).lower() for user in known)
    assert "ben" not in " ".join(known["ana"]).lower()


async def test_a_service_that_names_nobody_is_anonymous(serve: Serve, rows: Any) -> None:
    site = await serve()
    answer = await site.say("I own a red boat", await site.headers(), user="ana")
    assert answer.status_code == 200
    assert answer.json()["memories"] == []
    assert rows("SELECT * FROM messages") == rows("SELECT * FROM memories") == []


async def test_a_service_cannot_name_one_person_and_reach_for_another(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers(x_openwebui_user_id="ana")
    assert (await site.client.get("/api/users/ben/context", headers=headers)).status_code == 403
    assert (await site.client.get("/api/users/ana/context", headers=headers)).status_code == 200


async def test_a_header_given_twice_is_not_chosen_from(serve: Serve) -> None:
    site = await serve()
    key = (await site.headers())["authorization"]
    twice = [("authorization", key), ("x-openwebui-user-id", "ana"), ("x-openwebui-user-id", "ben")]
    answer = await site.client.get("/v1/models", headers=twice)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_header")


async def test_a_name_of_any_script_is_read(serve: Serve, rows: Any) -> None:
    site = await serve()
    headers: list[tuple[bytes, bytes]] = [
        (b"authorization", (await site.headers())["authorization"].encode()),
        (b"x-openwebui-user-id", "אנה".encode()),
        (b"x-openwebui-user-name", b"Zo%C3%AB"),
    ]
    await site.say("hello", headers)  # type: ignore[arg-type]
    [said] = rows("SELECT user_id, author FROM messages WHERE role = 'user'")
    assert said == {"user_id": "אנה", "author": "Zoë"}


@pytest.mark.parametrize("name", ["x-openwebui-user-id", "x-openwebui-chat-id"])
async def test_a_name_that_is_a_page_long_is_refused(serve: Serve, name: str) -> None:
    site = await serve()
    answer = await site.say("hello", await site.headers() | {name: "x" * 500})
    assert answer.status_code == 400
    assert name in answer.json()["error"]["message"]


async def test_on_this_machine_nobody_needs_a_key_until_there_is_one(serve: Serve) -> None:
    site = await serve(loopback=True)
    assert (await site.client.get("/v1/models")).status_code == 200
    assert (await site.client.get("/metrics")).status_code == 200
    assert (
        await site.client.get("/v1/models", headers=NOBODYS)
    ).status_code == 200  # clients always send one

    key, _ = await site.key("ana")
    assert (await site.client.get("/v1/models")).status_code == 401
    assert (await site.client.get("/metrics")).status_code == 401

    await site.keys.revoke(key.id, site.pet.clock())
    assert (await site.client.get("/v1/models")).status_code == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 403), ("localhost:8000", 200), ("[::1]:8000", 200), ("127.0.0.1.evil.example", 403)],
)
async def test_without_keys_a_page_elsewhere_cannot_reach_in_under_its_own_name(
    serve: Serve, host: str, status: int
) -> None:
    site = await serve(loopback=True)
    assert (await site.client.get("/v1/models", headers={"host": host})).status_code == status


async def test_a_form_that_a_page_elsewhere_may_send_is_not_read(serve: Serve) -> None:
    site = await serve(loopback=True)
    body = '{"messages": [{"role": "user", "content": "I own a boat"}]}'
    answer = await site.client.post(
        "/v1/chat/completions", content=body, headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 400


async def test_figures_are_for_admins(serve: Serve) -> None:
    site = await serve()
    for user in ("ana", None):
        refused = await site.client.get("/metrics", headers=await site.headers(user))
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        shown = await site.client.get("/metrics", headers=await site.headers(user, admin=True))
        assert shown.status_code == 200


async def test_each_key_has_its_own_number_of_requests(serve: Serve) -> None:
    site = await serve(http_rate=3)
    ana, ben = await site.headers("ana"), await site.headers("ben")
    answers = [(await site.client.get("/v1/models", headers=ana)) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 20
    assert answers[-1].json()["error"]["type"] == "rate_limit_error"
    assert (await site.client.get("/v1/models", headers=ben)).status_code == 200


async def test_a_wrong_key_spends_nothing_of_anybodys(serve: Serve) -> None:
    site = await serve(http_rate=1)
    ana = await site.headers("ana")
    for _ in range(3):
        assert (await site.client.get("/v1/models", headers=NOBODYS)).status_code == 401
    assert (await site.client.get("/v1/models", headers=ana)).status_code == 200
