"""The offline stand-in in a whole companion: what it answers, keeps and leaves alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, FunctionTool, RunConfig, Runner
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.models.offline import OfflineModel, message_kind


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def test_a_mixed_talk_gets_no_wrong_answer_and_keeps_only_what_was_stated(open_pet, clock):
    """Every line: what the answer must and must not say, and the one fact it must leave behind."""
    pet, wrong = await open_pet(), []
    talk = lines_of(Path(__file__).with_name("offline_talk.jsonl"))
    for line in talk:
        clock.advance(minutes=1)
        reply = await pet.respond(line["say"], user=line["who"])
        stored = [decision.content for decision in reply.memories if decision.action == "add"]
        expected = [line["kept"]] if line["kept"] else []
        unwanted = "not" in line and re.search(line["not"], reply.message)
        if not re.search(line["answer"], reply.message) or unwanted or stored != expected:
            wrong.append((line["say"], reply.message, stored))
    assert wrong == []


async def test_an_answer_is_streamed_word_by_word_after_the_tools_were_called(open_pet):
    pet = await open_pet()
    await pet.respond("my sister Ana lives in Rome", user="ben")
    stream = pet.stream("where does my sister live?", user="ben")
    pieces = [piece async for piece in stream]
    assert len(pieces) > 3
    assert (
        "".join(pieces)
        == stream.reply.message
        == "You told me on 21 November 2026: “my sister Ana lives in Rome”"
    )
    assert {tool.name for tool in stream.reply.tools} == {
        "search_memories",
        "search_knowledge",
        "get_recent_memories",
    }
    assert stream.reply.model == "offline"


async def test_in_a_shared_place_a_fact_and_its_quotation_name_who_said_it(open_pet):
    pet = await open_pet()
    place = "acme/general"
    await pet.respond("I have a dog", user="ana", author="Ana", place=place)
    same = await pet.respond("I have a dog", user="bob", author="Bob", place=place)
    assert [decision.action for decision in same.memories] == ["add"]
    reply = await pet.respond("who has a dog?", user="cleo", author="Cleo", place=place)
    assert "Ana told me on 21 November 2026: “I have a dog”" in reply.message
    assert "Bob told me on 21 November 2026: “I have a dog”" in reply.message
    own = await pet.respond("do I have a dog?", user="ana", author="Ana")
    assert own.message == "You told me on 21 November 2026: “I have a dog”"


async def test_a_message_that_no_fact_was_made_of_is_quoted(open_pet):
    pet = await open_pet()
    texts = ["My kayak lies in the boat house by the lake.", *(f"I read page {n} today." for n in range(15))]
    sent = ((f"2025-05-01T10:{n:02}:00Z", text) for n, text in enumerate(texts))
    await pet.conversations.import_messages(
        [{"author": "ana", "text": text, "sent_at": at} for at, text in sent], user="ana"
    )

    reply = await pet.respond("Where is my kayak?", user="ana")

    assert reply.message == f"You told me on 1 May 2025: “{texts[0]}”"

    more = ["My kayak lies dry in the boat house.", *(f"I read book {n} today." for n in range(15))]
    sent = ((f"2025-05-02T10:{n:02}:00Z", text) for n, text in enumerate(more))
    await pet.conversations.import_messages(
        [{"author": "ana", "text": text, "sent_at": at} for at, text in sent], user="ana"
    )
    reply = await pet.respond("Where in the boat house by the lake lies my kayak?", user="ana")
    assert re.findall(r"on (\d) May", reply.message) == ["2", "1"], "the newest first"


async def run(question: str, answer: str, *tools: str) -> tuple[dict[str, Any], list[str]]:
    """The answer of the bare model with tools that all give the same answer; and the tools called."""
    called: list[str] = []

    def tool(name: str) -> FunctionTool:
        async def invoke(_: Any, arguments: str) -> str:
            called.append(name)
            return answer

        schema: dict[str, Any] = {"type": "object", "properties": {}}
        return FunctionTool(name, name, schema, invoke, strict_json_schema=False)

    agent = Agent(name="Hachi", instructions="You are Hachi.", tools=[tool(name) for name in tools])
    config = RunConfig(model=OfflineModel(), tracing_disabled=True)
    result = await Runner.run(agent, input=question, run_config=config, max_turns=3)
    return json.loads(result.final_output), called


@pytest.mark.parametrize("said", ["I broke my arm", "where is my arm?"])
async def test_a_tool_that_fails_is_told_and_not_called_again(said):
    answer, called = await run(said, "it broke", "remember", "search_memories", "update_task")
    assert "it broke" in answer["message"]
    assert len(called) == 1


@settings(max_examples=30)
@given(st.text(max_size=300))
def test_any_text_is_read(text):
    assert message_kind(text)
