"""The memories of a session over REST."""

from collections.abc import Awaitable, Callable
from typing import Any

Serve = Callable[..., Awaitable[Any]]

BOAT = {"content": "Ana owns a red boat", "type": "fact", "importance": 0.7}


async def test_a_memory_is_added_read_listed_and_taken_away(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers("ana")
    at = "/api/sessions/ana/memories"

    added = await site.client.post(at, json=BOAT, headers=headers)
    assert added.status_code == 201
    memory = added.json()
    assert {name: memory[name] for name in ("sessionId", "memoryContent", "memoryType", "importance")} == {
        "sessionId": "ana",
        "memoryContent": "Ana owns a red boat",
        "memoryType": "fact",
        "importance": 0.7,
    }
    assert memory["createdAt"] == "2026-11-21T09:30:00Z"
    assert memory["lastAccessedAt"] is None
    assert len(memory) == 7

    one = f"{at}/{memory['id']}"
    assert (await site.client.get(one, headers=headers)).json() == memory
    assert (await site.client.get(f"{at}/{memory['id'][:8]}", headers=headers)).json() == memory
    assert (await site.client.get(at, headers=headers)).json() == [memory]

    gone = await site.client.delete(one, headers=headers)
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await site.client.get(one, headers=headers)).status_code == 404
    assert (await site.client.delete(one, headers=headers)).status_code == 404
    assert (await site.client.get(at, headers=headers)).json() == []


async def test_what_is_known_already_is_answered_by_the_memory_that_says_it(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers("ana")
    first = await site.client.post("/api/sessions/ana/memories", json=BOAT, headers=headers)
    again = await site.client.post("/api/sessions/ana/memories", json=BOAT, headers=headers)
    assert again.status_code == 200
    assert again.json()["id"] == first.json()["id"]


async def test_what_is_not_worth_keeping_is_told_so(serve: Serve) -> None:
    site = await serve()
    body = {"content": "Ana blinked", "importance": 0.1}
    answer = await site.client.post(
        "/api/sessions/ana/memories", json=body, headers=await site.headers("ana")
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "not_kept")


async def test_a_statement_that_is_none_is_refused(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers("ana")
    bodies: list[Any] = [
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
    for body in bodies:
        answer = await site.client.post("/api/sessions/ana/memories", json=body, headers=headers)
        assert answer.status_code == 400, body
        assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_a_session_is_a_conversation_by_the_name_that_the_client_gave_it(serve: Serve) -> None:
    site = await serve()
    ana = await site.headers("ana")
    await site.say("I own a red boat", ana | {"x-openwebui-chat-id": "chat-1"})
    await site.pet.respond("hello", user="ana", conversation="of a program")

    for session in ("chat-1", "of a program", "ana"):
        found = await site.client.get(f"/api/sessions/{session}/memories", headers=ana)
        assert found.status_code == 200
        assert ["boat" in memory["memoryContent"] for memory in found.json()] == [True]
        assert found.json()[0]["sessionId"] == session


async def test_sessions_of_others_are_as_unknown_as_those_that_are_not(serve: Serve) -> None:
    site = await serve()
    ana, ben = await site.headers("ana"), await site.headers("ben")
    await site.say("I own a red boat", ana | {"x-openwebui-chat-id": "chat-1"})
    await site.say("hello", ana)
    [memory] = await site.pet.memories(user="ana")

    for session in (
        "chat-1",
        "ana",
        "chat:chat-1:ana",
        "dm:ana",
        "nowhere",
        "%00",
        "x" * 500,
        "..",
        "%2e%2e",
    ):
        answers = [
            await site.client.get(f"/api/sessions/{session}/memories", headers=ben),
            await site.client.post(f"/api/sessions/{session}/memories", json=BOAT, headers=ben),
            await site.client.get(f"/api/sessions/{session}/memories/{memory.id}", headers=ben),
            await site.client.delete(f"/api/sessions/{session}/memories/{memory.id}", headers=ben),
        ]
        assert {answer.status_code for answer in answers} == {404}
        assert {answer.json()["error"]["type"] for answer in answers} == {"not_found_error"}
    assert await site.pet.memories(user="ben") == []
    assert len(await site.pet.memories(user="ana")) == 1


async def test_a_memory_of_somebody_else_is_not_found_in_ones_own_session(serve: Serve) -> None:
    site = await serve()
    theirs = await site.pet.remember("Ana owns a red boat", user="ana")
    ben = await site.headers("ben")
    for method in ("GET", "DELETE"):
        answer = await site.client.request(method, f"/api/sessions/ben/memories/{theirs.id}", headers=ben)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "memory_not_found")
    assert await site.pet.memories(user="ana")


async def test_a_memory_that_there_is_not_is_not_found(serve: Serve) -> None:
    site = await serve()
    await site.pet.remember("Ana owns a red boat", user="ana")
    headers = await site.headers("ana")
    for id in ["nothing", "0" * 8, "%00" * 8, "%25" * 8, "../ana", "0" * 37, "a%2F..%2Fb"]:
        answer = await site.client.get(f"/api/sessions/ana/memories/{id}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error"), id


async def test_a_service_may_let_the_session_say_whose_it_is(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers()
    for user in ("ana", "ben"):
        about = {"x-openwebui-user-id": user, "x-openwebui-chat-id": f"chat-of-{user}"}
        await site.say(f"I own the boat of {user}", headers | about)
        both = {"x-openwebui-user-id": user, "x-openwebui-chat-id": "both"}
        await site.say("hello", headers | both)
    await site.pet.remember("Cleo rows", user="cleo")

    async def listed(session: str) -> list[str] | int:
        answer = await site.client.get(f"/api/sessions/{session}/memories", headers=headers)
        if answer.status_code != 200:
            return int(answer.status_code)
        return [memory["memoryContent"].lower() for memory in answer.json()]

    assert "ana" in str(await listed("chat-of-ana"))
    assert "ben" in str(await listed("ben"))
    assert await listed("dm:nobody") == 404
    assert await listed("cleo") == ["cleo rows"]
    assert await listed("both") == 404  # whose it is cannot be told
    assert await listed("chat-of") == 404
    assert await listed("Chat-Of-Ana") == 404


async def test_only_so_many_are_listed(serve: Serve, clock: Any) -> None:
    site = await serve()
    for animal in ("ferrets", "tortoises", "parrots"):
        await site.pet.remember(f"Ana keeps {animal}", user="ana")
        clock.advance(seconds=1)
    headers = await site.headers("ana")
    found = await site.client.get("/api/sessions/ana/memories?limit=2", headers=headers)
    assert [m["memoryContent"] for m in found.json()] == ["Ana keeps parrots", "Ana keeps tortoises"]
    assert (await site.client.get("/api/sessions/ana/memories?limit=0", headers=headers)).status_code == 400
