"""The memories of a session over REST."""

from typing import Any

BOAT = {"content": "Ana owns a red boat", "type": "fact", "importance": 0.7}


async def test_a_memory_is_added_read_listed_and_deleted(serve: Any, clock: Any) -> None:
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
        "lastAccessedAt": "2026-11-21T09:30:00Z",
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


async def test_a_statement_that_is_not_kept_or_not_valid_is_refused(site) -> None:
    headers = await site.headers("dan")
    for body, status in (({}, 400), ({"content": "Dan blinked", "importance": 0.1}, 422)):
        answer = await site.client.post("/api/sessions/dan/memories", json=body, headers=headers)
        error = answer.json()["error"]
        assert (answer.status_code, error["type"]) == (status, "invalid_request_error")
        assert (error["code"] == "not_kept") == (status == 422)
    for id in ("nothing", "%00" * 8, "a%2F..%2Fb"):
        answer = await site.client.get(f"/api/sessions/dan/memories/{id}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")


async def test_a_session_is_a_conversation_of_the_caller_and_of_nobody_else(site: Any) -> None:
    ana, ben = await site.headers("ana"), await site.headers("ben")
    await site.say("I own a red boat", ana | {"x-openwebui-chat-id": "chat-1"})
    [memory] = await site.pet.memories.list(user="ana")
    for session in ("chat-1", "ana"):
        found = await site.client.get(f"/api/sessions/{session}/memories", headers=ana)
        assert [(m["id"], m["sessionId"]) for m in found.json()] == [(memory.id, session)]
    for session in ("chat-1", "ana", "dm:ana", "%00", "x" * 500):
        at = f"/api/sessions/{session}/memories"
        for method, path in (("GET", at), ("POST", at), ("DELETE", f"{at}/{memory.id}")):
            answer = await site.client.request(method, path, json=BOAT, headers=ben)
            assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
    answer = await site.client.get(f"/api/sessions/ben/memories/{memory.id}", headers=ben)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "memory_not_found")
    assert await site.pet.memories.list(user="ben") == []


async def test_a_service_that_names_nobody_gets_the_only_user_of_a_session(site: Any) -> None:
    service, owner = await site.headers(), {"x-openwebui-user-id": "eve", "x-openwebui-chat-id": "of-eve"}
    await site.say("I own the boat of Eve", service | owner)
    for session, status in (("of-eve", 200), ("eve", 200), ("dm:nobody", 404), ("Of-Eve", 404)):
        answer = await site.client.get(f"/api/sessions/{session}/memories", headers=service)
        assert (answer.status_code, "Eve" in answer.text) == (status, status == 200)
