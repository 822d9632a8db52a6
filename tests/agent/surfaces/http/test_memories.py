"""The memories of a session over REST."""

from collections.abc import Awaitable, Callable
from typing import Any

Serve = Callable[..., Awaitable[Any]]

BOAT = {"content": "Ana owns a red boat", "type": "fact", "importance": 0.7}


async def test_a_memory_is_added_read_listed_and_deleted(serve: Serve, clock: Any) -> None:
    site = await serve()
    headers = await site.headers("ana")
    at = "/api/sessions/ana/memories"
    added = await site.client.post(at, json=BOAT, headers=headers)
    assert added.status_code == 201
    memory = added.json()
    one = f"{at}/{memory['id']}"
    assert memory == {
        "id": memory["id"],
        "sessionId": "ana",
        "memoryContent": "Ana owns a red boat",
        "memoryType": "fact",
        "importance": 0.7,
        "createdAt": "2026-11-21T09:30:00Z",
        "lastAccessedAt": None,
    }
    known = await site.client.post(at, json=BOAT, headers=headers)
    assert (known.status_code, known.json()["id"]) == (200, memory["id"])
    for id in (memory["id"], memory["id"][:8]):
        assert (await site.client.get(f"{at}/{id}", headers=headers)).json() == memory
    clock.advance(seconds=1)
    await site.pet.remember("Ana keeps two ferrets", user="ana")
    newest = await site.client.get(f"{at}?limit=1", headers=headers)
    assert [m["memoryContent"] for m in newest.json()] == ["Ana keeps two ferrets"]

    gone = await site.client.delete(one, headers=headers)
    assert (gone.status_code, gone.content) == (204, b"")
    for method in ("GET", "DELETE"):
        assert (await site.client.request(method, one, headers=headers)).status_code == 404
    assert len((await site.client.get(at, headers=headers)).json()) == 1


async def test_a_statement_that_is_not_kept_or_not_valid_is_refused(site: Any) -> None:
    headers = await site.headers("dan")
    wrong: list[Any] = [
        {},
        {"content": ""},
        {"content": "  "},
        {"content": "x" * 2001},
        {"content": 5},
        {"content": "x", "type": "rumour"},
        {"content": "x", "importance": 2},
        {"content": "x", "importance": "NaN"},
        [],
        None,
    ]
    refused = [(body, 400, "invalid_request_error") for body in wrong]
    for body, status, kind in [
        *refused,
        ({"content": "Dan blinked", "importance": 0.1}, 422, "invalid_request_error"),
    ]:
        answer = await site.client.post("/api/sessions/dan/memories", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind), body
    assert answer.json()["error"]["code"] == "not_kept"
    for id in ("nothing", "0" * 8, "%00" * 8, "%25" * 8, "../dan", "0" * 37, "a%2F..%2Fb"):
        answer = await site.client.get(f"/api/sessions/dan/memories/{id}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error"), id
    assert (await site.client.get("/api/sessions/dan/memories?limit=0", headers=headers)).status_code == 400


async def test_a_session_is_a_conversation_of_the_caller_and_of_nobody_else(site: Any) -> None:
    ana, ben = await site.headers("ana"), await site.headers("ben")
    await site.say("I own a red boat", ana | {"x-openwebui-chat-id": "chat-1"})
    await site.pet.respond("hello", user="ana", conversation="of a program")
    [memory] = await site.pet.memories(user="ana")
    for session in ("chat-1", "of a program", "ana"):
        found = await site.client.get(f"/api/sessions/{session}/memories", headers=ana)
        assert [(m["id"], m["sessionId"]) for m in found.json()] == [(memory.id, session)]

    unknown = ["nowhere", "%00", "x" * 500, "..", "%2e%2e"]
    for session in ("chat-1", "ana", "chat:chat-1:ana", "dm:ana", *unknown):
        at = f"/api/sessions/{session}/memories"
        answers = [
            await site.client.get(at, headers=ben),
            await site.client.post(at, json=BOAT, headers=ben),
            await site.client.get(f"{at}/{memory.id}", headers=ben),
            await site.client.delete(f"{at}/{memory.id}", headers=ben),
        ]
        assert {(answer.status_code, answer.json()["error"]["type"]) for answer in answers} == {
            (404, "not_found_error")
        }
    for method in ("GET", "DELETE"):  # in his own session
        answer = await site.client.request(method, f"/api/sessions/ben/memories/{memory.id}", headers=ben)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "memory_not_found")
    assert await site.pet.memories(user="ben") == []
    assert len(await site.pet.memories(user="ana")) == 1


async def test_a_service_that_names_nobody_gets_the_only_user_of_a_session(site: Any) -> None:
    headers = await site.headers()
    for user in ("eve", "fay"):
        about = {"x-openwebui-user-id": user, "x-openwebui-chat-id": f"chat-of-{user}"}
        await site.say(f"I own the boat of {user}", headers | about)
        await site.say("hello", headers | about | {"x-openwebui-chat-id": "both"})
    await site.pet.remember("Cleo rows", user="cleo")

    async def listed(session: str) -> list[str] | int:
        answer = await site.client.get(f"/api/sessions/{session}/memories", headers=headers)
        if answer.status_code != 200:
            return int(answer.status_code)
        return [memory["memoryContent"].lower() for memory in answer.json()]

    assert "eve" in str(await listed("chat-of-eve"))
    assert "fay" in str(await listed("fay"))
    assert await listed("cleo") == ["cleo rows"]
    for session in ("dm:nobody", "both", "chat-of", "Chat-Of-Eve"):
        assert await listed(session) == 404, session
