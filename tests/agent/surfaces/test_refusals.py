"""A value that cannot be used is refused with the same sentence, whichever way it comes."""

import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from command import Hachi, use_home
from mcp import Client
from sites import companion_in

from agent.errors import BadInput
from agent.surfaces.http.application import app
from agent.surfaces.mcp.server import MemoryServer
from agent.surfaces.mcp.tools import Identity
from hachi import Companion

WRONG: dict[str, tuple[dict[str, Any], list[str] | None]] = {
    "content: it is empty; write the fact as a sentence": ({"content": " \n"}, [" \n"]),
    "content: longer than 2,000 characters; say it as single facts": ({"content": "x" * 2001}, ["x" * 2001]),
    "type: 'foo' is not one of 'fact', 'preference', 'insight'": ({"type": "foo"}, ["--type", "foo"]),
    "importance: 7 is not a number from 0 to 1": ({"importance": 7}, ["--importance", "7"]),
    "importance: nan is not a number from 0 to 1": ({"importance": math.nan}, ["--importance", "nan"]),
    "importance: 'high' is not a number from 0 to 1": ({"importance": "high"}, ["--importance", "high"]),
    "subjects: 'sport' is not a list of texts, such as ['sport']": ({"subjects": "sport"}, None),
    "ttl: 'bananas' is not a duration such as 1h, 7d, 2w or never": (
        {"ttl": "bananas"},
        ["--ttl", "bananas"],
    ),
}
"""By the sentence: the arguments of `remember`, and those of `hachi memories add` where it can be typed."""

LIMIT = "limit: -1 is not a whole number from 1 to 10000"


@pytest.fixture
async def pet(home: Path) -> AsyncIterator[Companion]:
    async with companion_in(home) as opened:
        yield opened


@pytest.fixture
async def http(pet: Companion) -> AsyncIterator[httpx2.AsyncClient]:
    served = httpx2.ASGITransport(app(pet, pet.settings, loopback=True))
    async with httpx2.AsyncClient(transport=served, base_url="http://127.0.0.1") as client:
        yield client


async def in_python(call: Any) -> str:
    with pytest.raises(BadInput) as raised:
        await call
    return str(raised.value)


def over_rest(answer: httpx2.Response) -> str:
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("bad_input", error["message"].partition(":")[0])
    return str(error["message"])


async def over_mcp(pet: Companion, tool: str, arguments: dict[str, Any]) -> str:
    async with Client(MemoryServer(pet, lambda: Identity("ana")), mode="legacy") as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)


async def test_a_fact_that_cannot_be_kept_is_refused_alike(pet: Companion, http: httpx2.AsyncClient) -> None:
    known = await pet.remember("Ana skis", user="ana")
    for told, (given, _) in WRONG.items():
        body: dict[str, Any] = {"content": "Ana swims"} | given
        assert await in_python(pet.remember(user="ana", **body)) == told
        assert await in_python(pet.memories.remember_many([body], user="ana")) == told
        assert await in_python(pet.memories.update(str(known.id), user="ana", **body)) == told
        if "nan" in told:  # no JSON has such a number
            continue
        for path in ("/api/users/ana/memories", "/api/sessions/ana/memories"):
            assert over_rest(await http.post(path, json=body)) == told
        if "subjects" not in given:
            assert over_rest(await http.patch(f"/api/users/ana/memories/{known.id}", json=body)) == told
            assert await over_mcp(pet, "remember", body) == told
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana skis"]


async def test_limits_tags_and_tasks_are_refused_alike(pet: Companion, http: httpx2.AsyncClient) -> None:
    for call in (
        pet.memories.list(user="ana", limit=-1),
        pet.search_memories("ski", user="ana", limit=-1),
        pet.conversations.messages(user="ana", limit=-1),
        pet.documents.search("ski", user="ana", limit=-1),
    ):
        assert await in_python(call) == LIMIT
    for path in ("memories?limit=-1", "memories/search?limit=-1", "messages?limit=-1"):
        assert over_rest(await http.get(f"/api/users/ana/{path}")) == LIMIT
    for tool, given in (
        ("search_memories", {}),
        ("get_recent_memories", {}),
        ("search_knowledge", {"query": "x"}),
    ):
        assert (await over_mcp(pet, tool, {**given, "limit": -1})).startswith(
            "limit: -1 is not a whole number"
        )
    told = "subjects: 'sport' is not a list of texts, such as ['sport']"
    sport: Any = "sport"
    assert await in_python(pet.search_memories("ski", user="ana", subjects=sport)) == told
    told = "status: 'foo' is not one of 'open', 'in_progress', 'done'"
    foo: Any = "foo"
    assert await in_python(pet.tasks.update("wash up", user="ana", status=foo)) == told
    assert (
        over_rest(await http.post("/api/users/ana/tasks", json={"description": "x", "status": "foo"})) == told
    )
    assert await over_mcp(pet, "update_task", {"description": "wash up", "status": "foo"}) == told
    nothing = "description: say what is to be done, or give the id of a task"
    assert await in_python(pet.tasks.update(user="ana")) == nothing
    assert over_rest(await http.post("/api/users/ana/tasks", json={})) == nothing
    assert await over_mcp(pet, "update_task", {}) == nothing


def test_the_command_line_refuses_with_the_same_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_home(monkeypatch, home)
    for told, (_, typed) in WRONG.items():
        if typed:
            args = typed if len(typed) == 1 else ["Ana swims", *typed]
            ran = Hachi(home)("memories", "add", "--user", "ana", *args)
            assert (ran.code, ran.out, ran.complaint) == (1, "", f"hachi: {told}")
    for args in (["memories", "list"], ["messages", "list"]):
        assert Hachi(home)(*args, "--user", "ana", "--limit", "-1").complaint == f"hachi: {LIMIT}"
