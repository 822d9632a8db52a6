"""What calls of the API leave in traces."""

from typing import Any

import pytest

from agent.companion import Companion
from agent.errors import BadInput
from agent.tracing.store.filters import TraceFilter
from agent.tracing.trace import CALL


@pytest.fixture
async def pet(open_pet: Any) -> Any:
    return await open_pet()


async def calls(pet: Companion, user: str = "ana") -> list[Any]:
    """The traces of this person's calls, oldest first."""
    await pet.components.recorder.flush()
    wanted = TraceFilter(user=user, kinds=frozenset({CALL}))
    found = await pet.traces.list(wanted, pet.clock())
    return [await pet.traces.get(one.id, pet.clock()) for one in reversed(found)]


async def test_a_call_that_searches_or_writes_leaves_a_trace(pet: Companion) -> None:
    told = await pet.remember("Ana rows", user="ana", place="acme/general", ttl="7d")
    await pet.search_memories("rowing", user="ana", place="acme/general", limit=3)
    await pet.memories.list(user="ana")
    kept, searched = await calls(pet)
    assert (kept.summary.said, kept.summary.place, kept.summary.surface, kept.summary.status) == (
        "remember",
        "place:acme/general",
        "python",
        "ok",
    )
    [call] = kept.spans("tool")
    assert call.data["arguments"] == {"content": "Ana rows", "ttl": "7d"}
    assert next(kept.spans("decision")).data["decisions"][0]["id"] == told.id
    assert next(searched.spans("tool")).data["arguments"] == {"query": "rowing", "limit": 3}


async def test_a_refused_call_says_why_without_what_was_told(pet: Companion) -> None:
    await pet.remember("Ana skis", user="ana")  # of people of whom nothing is kept no trace is
    with pytest.raises(BadInput):
        await pet.remember("Ana rows", user="ana", ttl="bananas", importance=0.3)
    _, refused = await calls(pet)
    [call] = refused.spans("tool")
    assert call.data["arguments"] == {"content": "(a text)", "ttl": "(a text)", "importance": 0.3}
    assert refused.summary.status == "error"
    assert "ttl: 'bananas' is not a duration" in call.error


async def test_what_was_told_is_in_no_trace_once_it_is_forgotten(pet: Companion) -> None:
    told = await pet.remember("Ana rows", user="ana")
    await pet.people.set_context("goals", "to row the Atlantic", user="ana")
    bought = (await pet.tasks.update("buy oars", user="ana")).task
    texts = repr([one.root for one in await calls(pet)])
    assert ("Ana rows" in texts, "buy oars" in texts, "Atlantic" in texts) == (True, True, False)
    await pet.memories.forget(told.id, user="ana")
    await pet.components.recorder.flush()
    wanted = TraceFilter(user="ana", kinds=frozenset({CALL}))
    listed = await pet.traces.list(wanted, pet.clock())
    assert [one.content for one in listed] == ["forgotten", "kept", "kept", "hidden"]
    gone = await pet.tasks.forget(bought.id[:4], user="ana")
    assert (gone.content, gone.tasks, await pet.tasks.list(user="ana")) == ("buy oars", 1, [])
    await pet.components.recorder.flush()
    listed = await pet.traces.list(wanted, pet.clock())
    assert [one.content for one in listed] == ["forgotten", "forgotten", "hidden", "kept", "hidden"]
    await pet.memories.undo_forget(str(gone.undo_id), user="ana")
    assert await pet.tasks.list(user="ana") == [bought]
