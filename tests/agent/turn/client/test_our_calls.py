"""Calls of our tools in a turn that ends in a call of the client's."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_server import Call, Raw, Say, ScriptedServer, answer

from agent.replay.replay import replay
from agent.turn.client.our_calls import with_ours, without_ours
from agent.types.client import CallItem, ClientTool, ClientTurn, Item, MessageItem, ResultItem
from hachi import Companion

CLOCK = ClientTool("clock", "The time", {"type": "object", "properties": {}})
SEARCH = Call("search_memories", {"query": "yak"}, id="s1")
USED = (CallItem("c1", "clock", "{}"), ResultItem("c1", "12:00"))


@pytest.fixture(params=["chat", "responses"])
async def pet(
    open_pet: Callable[..., Awaitable[Companion]], server: ScriptedServer, request: Any
) -> Companion:
    pet = await open_pet(
        openai_base_url=server.url, model="tiny", api=request.param, consolidate="off", context_budget=1
    )
    await pet.remember("Ana has a yak called Bo", user="ana")
    return pet


async def say(pet: Companion, *after: Item, streamed: bool = False, **more: Any) -> Any:
    client = ClientTurn((), after, tools=(CLOCK,))
    given: Any = {"user": "ana", "conversation": "pets", "client": client, **more}
    if not streamed:
        return await pet.respond("is it time to feed it?", **given)
    async with pet.stream("is it time to feed it?", **given) as stream:
        async for _ in stream:
            pass
        return stream.reply


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
async def test_they_are_sent_again_with_the_clients_results(pet, server, rows, parallel, streamed):
    clock, again = Call("clock", {}, id="c1"), Call("clock", {}, id="c2")
    server.script(Say("", (SEARCH, clock))) if parallel else server.script(SEARCH, clock)
    server.script(
        Call("get_recent_memories", {}, id="s2"), again, answer("Bo is fed at noon."), answer("Hm.")
    )
    reply = await say(pet, streamed=streamed)
    assert [call.call_id for call in reply.client_calls] == ["c1"]
    reply = await say(pet, *USED, streamed=streamed)
    assert [call.call_id for call in reply.client_calls] == ["c2"]
    reply = await say(pet, *USED, CallItem("c2", "clock", "{}"), ResultItem("c2", "12:01"), streamed=streamed)
    assert reply.message == "Bo is fed at noon."
    found, noon, newest, later = server.asked[-1].results
    assert ("called Bo" in found, noon, "called Bo" in newest, later) == (True, "12:00", True, "12:01")
    ids = server.asked[-1].call_ids
    assert len(set(ids)) == 4
    assert (ids[1], ids[3]) == ("c1", "c2")
    assert [tool["name"] for tool in tools_of(server) if "search_memories" in tool["name"]] == [
        "search_memories"
    ]
    assert {row["client_items"] for row in rows("SELECT client_items FROM messages")} == {None}
    await pet.components.recorder.flush()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert (await replay(pet, whole)).differences == ()
    [fact] = await pet.memories.list(user="ana")
    rests = rows("SELECT source_id FROM rests_on WHERE derived_id = ? AND how = 'found'", reply.message_id)
    assert fact.id in {row["source_id"] for row in rests}
    assert await pet.components.traces.showing([fact.id], fact.user_id) == 3


def tools_of(server: ScriptedServer) -> list[dict[str, Any]]:
    return [tool.get("function", tool) for tool in server.asked[-1].json["tools"]]


async def test_what_was_forgotten_meanwhile_is_not_sent_again(pet, server):
    server.script(SEARCH, Call("clock", {}, id="c1"), answer("Noon."))
    await say(pet)
    [fact] = await pet.memories.list(user="ana")
    await pet.memories.forget(fact.id, user="ana")
    await say(pet, *USED)
    assert server.asked[-1].results == ["12:00"]


def items(told: str) -> list[Item]:
    """`s` is a call of ours with its result, `c` one of the client's, `t` a text."""
    made: list[Item] = []
    for one in told.split():
        if one == "t":
            made.append(MessageItem("assistant", "Let me look."))
            continue
        made += [CallItem(one, "tool", "{}", ours=one[0] == "s"), ResultItem(one, f"result {one}")]
    return made


@pytest.mark.parametrize(
    ("kept", "sent", "merged"),
    [
        ("s1 c1", "c1", "s1 c1"),
        ("s1 c1 s2 c2", "t c1 c2", "t s1 c1 s2 c2"),
        ("s1 c s2 c", "c c", "s1 c s2 c"),  # calls with the same id
        ("s1 c1 s2 c2", "c2", "s1 s2 c2"),
        ("s1 c1 c2", "c1 c2", "s1 c1 c2"),
        ("s1 c1 s2 c2", "t d1 d2", "t s1 s2 d1 d2"),  # under other ids
        ("c1", "c1", "c1"),
    ],
)
def test_they_stand_before_the_clients_call_that_followed_them(kept, sent, merged):
    assert list(with_ours(items(sent), items(kept)[:-1])) == items(merged)
    assert without_ours(items(merged)) == items(sent)


def test_the_newest_results_are_sent_again_as_far_as_they_fit(monkeypatch):
    monkeypatch.setattr("agent.turn.client.our_calls.MOST_CHARACTERS", 2 * len("result s1"))
    kept = items("s1 c1 s2 c2 s3 c3")[:-1]
    assert list(with_ours(items("c1 c2 c3"), kept)) == items("c1 s2 c2 s3 c3")


async def test_what_a_provider_wants_back_is_sent_with_the_clients_result(pet, server):
    secret = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}
    function = {"name": "clock", "arguments": "{}"}
    if pet.settings.api == "chat":
        call = {"id": "c1", "type": "function", "function": function, **secret}
        message = {"role": "assistant", "reasoning_content": "Thoughts.", "tool_calls": [call]}
        body: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    else:
        thoughts = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2lnbmVk"}
        call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "status": "completed", **function}
        body = {"id": "r", "object": "response", "output": [thoughts, call]}
    server.script(SEARCH, Raw(json.dumps(body).encode(), "application/json"), answer("Noon."))
    await say(pet)
    assert (await say(pet, *USED)).message == "Noon."
    if pet.settings.api == "responses":
        assert (
            thoughts.items()
            <= next(one for one in server.asked[-1].json["input"] if one.get("id") == "rs_1").items()
        )
        return
    calls = [one for one in server.asked[-1].json["messages"] if one.get("tool_calls")]
    assert calls[-1]["reasoning_content"] == "Thoughts."
    assert secret.items() <= calls[-1]["tool_calls"][-1].items()
