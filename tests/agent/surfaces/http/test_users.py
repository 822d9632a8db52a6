"""What is known of a person, over REST."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from memory.audience import PRIVATE

Serve = Callable[..., Awaitable[Any]]


class Ana:
    """Asks for herself."""

    def __init__(self, site: Any, headers: dict[str, str]) -> None:
        self.pet = site.pet
        self._client = site.client
        self._headers = headers

    async def __call__(
        self, method: str, path: str, json: Any = None, status: int = 200, **query: Any
    ) -> Any:
        at = f"/api/users/ana{path}"
        answer = await self._client.request(method, at, json=json, params=query, headers=self._headers)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None


@pytest.fixture
async def ana(serve: Serve) -> Ana:
    site = await serve()
    return Ana(site, await site.headers("ana"))


async def test_memories_are_made_found_changed_and_taken_back(ana: Ana) -> None:
    made = await ana("POST", "/memories", {"content": "Ana lives in Paris", "subjects": ["ana"]})
    assert (made["action"], made["reason"]) == ("add", "new")
    moved = await ana("PATCH", f"/memories/{made['id']}", {"content": "Ana lives in Lyon", "importance": 0.9})
    assert (moved["content"], moved["importance"], moved["subjects"]) == ("Ana lives in Lyon", 0.9, ["ana"])
    assert [m["content"] for m in await ana("GET", "/memories")] == ["Ana lives in Lyon"]
    [hit] = await ana("GET", "/memories/search", query="where does Ana live?")
    assert (hit["id"], hit["kind"]) == (moved["id"], "memory")
    assert (await ana("GET", f"/memories/{moved['id'][:8]}"))["id"] == moved["id"]

    [step] = await ana("GET", f"/memories/{moved['id']}/history")
    assert (step["old_content"], step["new_content"]) == ("Ana lives in Paris", "Ana lives in Lyon")
    undone = await ana("POST", f"/memories/{moved['id']}/undo")
    assert undone["old_content"] == "Ana lives in Lyon"
    [paris] = await ana("GET", "/memories")
    assert paris["content"] == "Ana lives in Paris"

    await ana("DELETE", f"/memories/{paris['id']}", status=204)
    assert await ana("GET", "/memories") == []


async def test_nothing_to_take_back_is_told(ana: Ana) -> None:
    made = await ana("POST", "/memories", {"content": "Ana lives in Paris"})
    error = await ana("POST", f"/memories/{made['id']}/undo", status=404)
    assert error["error"]["type"] == "not_found_error"


async def test_a_search_may_ask_for_a_subject(ana: Ana) -> None:
    for pet, tag in (("ferrets", "zoo"), ("parrots", "birds")):
        await ana.pet.remember(f"Ana keeps {pet}", user="ana", subjects=[tag])
    found = await ana("GET", "/memories/search", query="what does Ana keep?", subject="birds")
    assert [hit["content"] for hit in found] == ["Ana keeps parrots"]


@pytest.mark.parametrize("query", ["", "x" * 2001])
async def test_a_search_for_nothing_is_refused(ana: Ana, query: str) -> None:
    await ana("GET", "/memories/search", query=query, status=400)


async def test_a_query_may_hold_anything(ana: Ana) -> None:
    assert await ana("GET", "/memories/search", query="\x00'\"%_ 𐍈 {}") == []


async def test_tasks_are_made_changed_and_done(ana: Ana) -> None:
    await ana("PUT", "/context/timezone", {"value": "Europe/Paris"})
    made = await ana("POST", "/tasks", {"description": "Call the dentist", "due": "2026-11-27T09:00"})
    assert (made["action"], made["status"], made["due"]) == ("made", "open", "2026-11-27T08:00:00Z")
    assert (await ana("POST", "/tasks", {"description": "call the dentist"}))["action"] == "unchanged"

    changed = await ana("PATCH", f"/tasks/{made['id'][:4]}", {"due": "never", "status": "in_progress"})
    assert (changed["due"], changed["status"]) == (None, "in_progress")
    assert [task["id"] for task in await ana("GET", "/tasks")] == [made["id"]]

    await ana("PATCH", f"/tasks/{made['id']}", {"status": "done"})
    assert await ana("GET", "/tasks") == []
    assert [task["status"] for task in await ana("GET", "/tasks", all=True)] == ["done"]


async def test_what_cannot_be_done_is_told_in_the_typed_shape(ana: Ana) -> None:
    wrong: list[tuple[str, str, Any, int]] = [
        ("POST", "/tasks", {"description": " "}, 400),
        ("POST", "/tasks", {"description": "Call", "due": "the day after"}, 400),
        ("POST", "/tasks", {"description": "Call", "status": "lost"}, 400),
        ("PATCH", "/tasks/zzzz", {"status": "done"}, 400),
        ("PATCH", "/tasks/0000", {"status": "done"}, 404),
        ("PUT", "/context/timezone", {"value": "Mars"}, 400),
        ("PUT", "/context/timezone", {"value": " "}, 400),
        ("PUT", "/context/shoe size", {"value": "42"}, 400),
        ("DELETE", "/context/shoe size", None, 400),
        ("GET", "/memories/nothing", None, 404),
        ("PATCH", "/memories/00000000", {"content": "x"}, 404),
        ("GET", "/memories/00000000/history", None, 404),
        ("DELETE", "/knowledge/00000000-0000-0000-0000-000000000000", None, 404),
    ]
    for method, path, body, status in wrong:
        error = (await ana(method, path, body, status=status))["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        assert error["message"]


async def test_context_is_seen_set_and_forgotten(ana: Ana) -> None:
    assert (await ana("PUT", "/context/goals", {"value": "row to Brest"}))["profile"]["goals"] == [
        "row to Brest"
    ]
    await ana("PUT", "/context/tone", {"value": "casual"})
    assert (await ana("GET", "/context"))["preferences"]["tone"] == "casual"
    assert (await ana("DELETE", "/context/tone"))["preferences"]["tone"] is None


async def test_everything_is_taken_along_and_then_forgotten(ana: Ana) -> None:
    await ana("POST", "/memories", {"content": "Ana rows on Fridays"})
    await ana.pet.remember("Ben rows on Fridays", user="ben")
    await ana("POST", "/tasks", {"description": "Oil the boat"})

    whole = await ana("GET", "/export")
    assert [memory["content"] for memory in whole["memories"]] == ["Ana rows on Fridays"]
    assert "Ben" not in str(whole)

    receipt = await ana("DELETE", "")
    assert receipt["user"] == "ana"
    assert receipt["verified"] is True
    assert await ana.pet.memories(user="ana") == []
    assert await ana.pet.services.tasks.list("ana", PRIVATE, done=True) == []
    assert len(await ana.pet.memories(user="ben")) == 1


@pytest.mark.parametrize("user", ["%00", "%20", "a%0Ab", "x" * 201])
async def test_a_name_that_is_none_names_nobody(serve: Serve, user: str) -> None:
    site = await serve()
    answer = await site.client.get(f"/api/users/{user}/tasks", headers=await site.headers())
    assert answer.status_code in (400, 404)


async def test_a_service_asks_for_whom_the_address_names(serve: Serve) -> None:
    site = await serve()
    await site.pet.remember("Zoë rows", user="zoë:1")
    answer = await site.client.get("/api/users/zo%C3%AB:1/memories", headers=await site.headers())
    assert [memory["content"] for memory in answer.json()] == ["Zoë rows"]
