"""Tools of the MCP servers that a file names, in turns, traces and replays."""

import json

import mcp_weather
import pytest

from agent.replay.replay import replay
from agent.replay.testing import make_test, take_again
from agent.turn.mcp_servers import transport
from hachi.testing import AnsweringModel, tool_call

RAIN = {"message": "It rains.", "memories": []}


@pytest.fixture
def opened(hachi_companion, tmp_path, monkeypatch):
    """`opened(model, **more)`: a companion with a server that Ana, an admin, is offered in private."""
    monkeypatch.setattr(transport, "ENDS_WITHIN", 0.1)
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"admins": ["ana"], "mcpServers": {"badly": mcp_weather.BADLY}}))

    def companion(model, **more):
        return hachi_companion(model=model, settings={"mcp": file, **more})

    return companion


async def test_a_call_is_in_the_trace_and_a_replay_answers_it_without_the_server(
    opened, tmp_path, monkeypatch
):
    model = AnsweringModel(tool_call("badly_fine"), then=RAIN)
    async with opened(model) as pet:
        reply = await pet.respond("does it rain?", user="ana")
        await pet.settle()
        whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
        held = [*pet.components.extensions.connections[0]._holding]
        remembered = await pet.memories.list(user="ana")
    assert [task.done() for task in held] == [True]  # ended with the companion
    [called] = reply.tools
    assert (called.name, called.ok) == ("badly_fine", True)
    assert called.result.endswith("instructions:\n> fine")
    [span] = whole.trace.spans("tool")
    assert span.data["result"] == called.result
    assert not remembered
    async with opened(AnsweringModel(then=RAIN)) as pet:
        [server] = pet.components.extensions.connections
        again = await replay(pet, whole)
        assert (again.differences, server._session) == ((), None)
    files = await make_test(whole)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    [kept] = [name for name in files if name.endswith(".json")]
    from asyncio import to_thread

    assert (await to_thread(take_again, tmp_path / kept)).differences == []


async def test_nobody_else_is_offered_the_tools_and_no_process_is_started_for_them(opened):
    async with opened(AnsweringModel(tool_call("badly_fine"), then=RAIN)) as pet:
        ben = await pet.respond("does it rain?", user="ben")
        for who in ({"user": "ana", "place": "acme/general"}, {"user": None}):
            await pet.respond("hello", **who)
        [server] = pet.components.extensions.connections
        assert not server._holding
    [called] = ben.tools
    assert "no tool 'badly_fine'" in called.result
