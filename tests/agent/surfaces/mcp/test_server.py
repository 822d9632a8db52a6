"""What an agent is offered and how it is answered, whatever it comes by."""

import json
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from hachi import Companion
from memory.errors import IndexUnavailable

READING = {"search_memories", "get_recent_memories", "search_knowledge", "list_tasks"}


async def test_nine_tools_are_offered_and_say_what_they_do(shared: Companion, agent: Any) -> None:
    async with agent(shared, "ana") as ana:
        offered = {tool.name: tool for tool in (await ana.client.list_tools()).tools}
        result = await ana.ask("remember", content="Ana has a red boat")
    assert offered.keys() == READING | {"remember", "update_task", "forget", "forget_message", "undo_forget"}
    assert {name for name, tool in offered.items() if tool.annotations.read_only_hint} == READING
    deleting = {name for name, tool in offered.items() if tool.annotations.destructive_hint}
    assert deleting == {"forget", "forget_message"}
    repeatable = {name for name, tool in offered.items() if tool.annotations.idempotent_hint}
    assert repeatable == READING | deleting
    for tool in offered.values():
        assert len(tool.description) > 60
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
    assert offered["remember"].input_schema["required"] == ["content"]
    assert offered["remember"].input_schema["properties"]["importance"]["maximum"] == 1
    assert json.loads(result.content[0].text) == result.structured_content


WRONG_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("remember", {}, "content: it is missing"),
    ("remember", {"content": "a", "user": "ben"}, "user: there is no such argument"),
    ("remember", {"content": "a", "replaces": "%"}, "there is no memory '%' here"),
    ("forget", {"id": "every one"}, "there is no memory 'every one' here"),
    ("update_task", {"description": "call Ben", "due": "soon"}, "due: 'soon' is not a time"),
]


async def test_a_wrong_call_is_told_in_one_line(shared: Companion, agent: Any) -> None:
    async with agent(shared, "ana") as ana:
        for tool, arguments, message in WRONG_CALLS:
            assert (await ana.refused(tool, **arguments)).startswith(message)
        with pytest.raises(MCPError, match="there is no tool 'erase_everything'"):
            await ana.ask("erase_everything")


async def test_for_nobody_nothing_is_read_or_kept(shared, agent) -> None:
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("search_memories", {"query": "boat"}),
        ("get_recent_memories", {}),
        ("search_knowledge", {"query": "boat"}),
        ("list_tasks", {}),
        ("remember", {"content": "Ana has a red boat"}),
        ("update_task", {"description": "paint the boat"}),
        ("forget", {"id": "0" * 36}),
    )
    async with agent(shared, None) as anonymous:
        for tool, arguments in calls:
            assert (await anonymous.refused(tool, **arguments)).startswith("nobody is named")


async def test_a_fault_is_told_in_full_only_to_an_operator_and_a_bug_only_in_the_log(
    shared: Companion, agent: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise IndexUnavailable("the index in /srv/secret is held by another process")

    async def slips(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(shared.components.recall, "look", away)
    monkeypatch.setattr(shared.components.tasks, "list", slips)
    async with agent(shared, "ana") as ana, agent(shared, "ana", operator=True) as owner:
        told = await ana.refused("search_memories", query="boat")
        assert told == "the search index does not answer; try again later"
        assert "/srv/secret" in await owner.refused("search_memories", query="boat")
        broken = await owner.refused("list_tasks")
    assert broken.startswith("internal error; the server's log has it as err_")
    assert "a slip" not in broken
    assert caplog.records[-1].exc_info


async def test_what_is_known_of_the_person_is_a_resource(shared: Companion, agent: Any) -> None:
    await shared.people.set_context("timezone", "Europe/Paris", user="ana")
    async with agent(shared, "ana") as ana, agent(shared, "ben") as ben, agent(shared, None) as nobody:
        [offered] = (await ana.client.list_resources()).resources
        assert str(offered.uri) == "hachi://context"
        zones = []
        for one in (ana, ben):
            result = await one.client.read_resource("hachi://context")
            [known] = result.contents
            assert result.cache_scope == "private"
            zones.append(json.loads(known.text)["profile"]["timezone"])
        with pytest.raises(MCPError, match="Unknown resource: hachi://others"):
            await ana.client.read_resource("hachi://others")
        with pytest.raises(MCPError, match="nobody is named"):
            await nobody.client.read_resource("hachi://context")
    assert zones == ["Europe/Paris", None]


async def test_prompts_tell_an_agent_how_to_recall_and_what_to_keep(shared: Companion, agent: Any) -> None:
    async with agent(shared, "ana") as ana:
        offered = {prompt.name for prompt in (await ana.client.list_prompts()).prompts}
        recall = await ana.client.get_prompt("recall", {"about": "the boat"})
        keep = await ana.client.get_prompt("remember_conversation")
        for name, wrong in (("recall", "Missing required arguments"), ("recite", "Unknown prompt: recite")):
            with pytest.raises(MCPError, match=wrong) as raised:
                await ana.client.get_prompt(name, {})
            assert raised.value.error.code == INVALID_PARAMS
    assert offered == {"recall", "remember_conversation"}
    assert "about this: the boat" in recall.messages[0].content.text
    assert "Call `remember` once for each fact" in keep.messages[0].content.text
