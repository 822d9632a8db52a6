"""Each kind of answer and refusal that trackers report gives the right reply: whole, streamed and where a
conversation is consolidated."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Raw, answer
from wire_corpus import FOLDER, Case, cases, forget_what_was_learned

from agent.errors import ModelError
from hachi import Companion

ANSWER = json.dumps({"message": "Green tea.", "memories": []})
FINDINGS = {"text": "Ana keeps bees", "messages": [1], "importance": "high", "tags": ["ana"], "ttl": None}


async def _fault(case: Case, pet: Companion, server: Any, streamed: bool) -> str:
    """Return what is wrong with the turn; empty if nothing is."""
    await forget_what_was_learned(pet)
    user = f"{case.name} {streamed}"
    server.aside, server.refuses = lambda _: answer("Hm."), lambda _: None
    for text in case.input.get("said_before", ()):
        server.refuses = lambda _: _refused()
        with pytest.raises(ModelError):
            await pet.respond(text, user=user)
        server.refuses = lambda _: None
    taken = case.script(server, ANSWER)
    stream, reply, error = pet.stream("which tea?", user=user), None, ""
    try:
        if streamed:
            shown = "".join([piece async for piece in stream])
            reply = stream.reply
            if shown != reply.message:
                return f"shown: {shown!r}, not {reply.message!r}"
        else:
            reply = await pet.respond("which tea?", user=user)
    except ModelError as raised:
        error = str(raised)
    if words := case.input.get("error"):
        few = len(taken) <= case.input["requests"]
        told = all(word in error for word in words) and "\n" not in error
        return "" if told and few else f"{len(taken)} requests: {error or reply!r}"
    if reply is None:
        return error
    wanted = {
        "reply": case.reply in reply.message,
        "calls": [[call.name, call.arguments] for call in reply.tools] == case.input.get("calls", []),
        "results": all(call.ok for call in reply.tools),
        "cut": reply.cut == case.input.get("cut", False),
        "usage": _used(reply) == case.input.get("usage", _used(reply)),
        "back": not reply.tools or _came_back(case, taken[-1].json),
    }
    return "" if all(wanted.values()) else f"{wanted}: {reply.message!r} {reply.tools}"


def _refused() -> Raw:
    return Raw(b'{"error": "out of memory"}', "application/json", 500)


def _used(reply: Any) -> list[int]:
    return [reply.usage.input, reply.usage.output, reply.usage.cached]


def _came_back(case: Case, body: dict[str, Any]) -> bool:
    if wanted := case.input.get("back_item"):
        return wanted in body["input"]
    if case.api == "responses":
        return True
    [message] = [one for one in body["messages"] if one.get("tool_calls")]
    back, back_call = case.input.get("back", {}), case.input.get("back_call", {})
    ids = [call["id"] for call in message["tool_calls"]]
    results = [one["tool_call_id"] for one in body["messages"] if one["role"] == "tool"]
    return (
        back.items() <= message.items()
        and back_call.items() <= message["tool_calls"][0].items()
        and ids == results
        and len(set(ids)) == len(ids)
    )


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_each_kind_ends_in_the_right_reply(open_pet, server, api, streamed, tmp_path):
    wrong = dict[str, str]()
    mine = sorted((case for case in cases() if case.api == api), key=lambda case: str(case.settings))
    for _, group in groupby(mine, key=lambda case: str(case.settings)):
        several = list(group)
        given = {"openai_base_url": server.url, "openai_api_key": "sk-1", "model": "tiny", "api": api}
        pet = await open_pet(**{"model_retries": 0, "consolidate": "off"} | given | several[0].settings)
        for case in several:
            if fault := await _fault(case, pet, server, streamed):
                wrong[case.name] = fault
    assert wrong == {}


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_each_kind_of_text_is_read_where_a_conversation_is_consolidated(open_pet, server, api):
    given = {"openai_base_url": server.url, "openai_api_key": "sk-1", "model": "tiny", "api": api}
    pet = await open_pet(**given, model_retries=0, consolidate="model", max_turns=1)
    wrong = dict[str, list[str]]()
    for case in (one for one in cases() if one.api == api and one.only_text and not one.settings):
        await forget_what_was_learned(pet)
        server.aside, server.refuses = lambda _: answer("Hm."), lambda _: None
        await pet.respond("I keep bees", user=case.name)
        case.script(server, ANSWER)
        found = json.dumps({"summary": "Bees.", "new_facts": [FINDINGS | {"replaces": None}]})
        server.script_consolidations(*[case.raw(False, found)] * 2)
        await pet.settle()
        server.clear_findings()
        if [one.content for one in await pet.memories.list(user=case.name)] != ["Ana keeps bees"]:
            wrong[case.name] = [one.content for one in await pet.memories.list(user=case.name)]
    assert wrong == {}


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.json")), ids=lambda file: file.stem)
def test_each_kind_has_its_thread_and_two_inputs(file: Path):
    data = json.loads(file.read_text())
    assert data["thread"].startswith("https://github.com/")
    assert len(data["inputs"]) >= 2
