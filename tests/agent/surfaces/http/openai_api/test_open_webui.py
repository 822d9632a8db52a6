"""Open WebUI's requests, as its documentation and its source have them, replayed."""

import json
import re
from typing import Any

import pytest
from scripted_server import Call, Say, ScriptedServer, answer

from agent.surfaces.http.openai_api.completion import HOW_TO_BE_REMEMBERED
from agent.surfaces.links import read_link
from agent.tracing.render.trace import trace_lines
from agent.tracing.store.filters import TraceFilter
from memory.audience import Place

CHAT = "8c1c0f0a-6a43-4a7d-9a3e-0a5f0c2c7b11"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_current_time",
        "description": "The time",
        "parameters": {"type": "object", "properties": {}},
    },
}


async def test_the_acts_of_a_chat_are_told_by_ids_where_words_do_not_tell_them(scripted, model) -> None:
    headers = await service(scripted, "ida", "chat-ida") | {"x-openwebui-user-name": "Ida%20B%C3%A9"}

    async def ask(question: str, follows: str, *messages: tuple[str, str]) -> Any:
        named = headers | {"x-hachi-question": question, "x-hachi-follows": follows}
        body = {"messages": [{"role": role, "content": content} for role, content in messages]}
        return await scripted.client.post("/v1/chat/completions", json=body, headers=named)

    async def kept() -> list[str]:
        return [one.text for one in await scripted.pet.conversations.messages(user="ida")][::-1]

    pets, yak = ("user", "Name a pet"), ("assistant", "A yak, which is large.")
    model.script(*map(answer, ("A yak, which is large.", "A yak.", "Why?", "It eats grass.", "A cat.")))
    await ask("u1", "", pets)
    await ask("u1", "", pets, yak, ("user", "Make it shorter."))  # "More concise"
    assert ("user", "Make it shorter.") in model.asked[-1].conversation
    assert await kept() == ["Name a pet", "A yak."]
    await ask("u2", "a2", pets, ("assistant", "A yak."), ("user", "Well?"))
    went_on = await ask("u2", "a2", ("assistant", "Why?"))  # "Continue" after a compaction
    assert (went_on.status_code, await kept()) == (
        200,
        ["Name a pet", "A yak.", "Well?", "Why?", "It eats grass."],
    )
    assert [text for _, text in model.asked[-1].conversation][-1] == "Why?"
    await ask("u3", "", ("user", "Name a small pet"))  # the first question was edited
    assert await kept() == ["Name a small pet", "A cat."]
    assert {row["author"] for row in scripted.messages("ida") if row["role"] == "user"} == {"Ida Bé"}


async def test_pictures_of_a_tool_are_no_question(scripted, model) -> None:
    headers = await service(scripted, "pia", "chat-pia")
    call = {"id": "c1", "type": "function", "function": {"name": "get_current_time", "arguments": "{}"}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    told = {"type": "text", "text": "Here are the images from the tool results above. Please analyze them."}
    model.script(Call("get_current_time", {}, id="c1"), answer("Noon."), answer("Bye."))
    await scripted.say("What does the clock show?", headers, tools=[TOOL])
    after: list[Any] = [
        {"role": "user", "content": "What does the clock show?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a picture"},
        {"role": "user", "content": [told, picture]},
    ]
    await scripted.client.post("/v1/chat/completions", json={"messages": after}, headers=headers)
    after += [{"role": "assistant", "content": "Noon."}, {"role": "user", "content": "Thanks."}]
    await scripted.client.post("/v1/chat/completions", json={"messages": after}, headers=headers)
    told = ["What does the clock show?", "Noon.", "Thanks.", "Bye."]
    assert [row["text"] for row in scripted.messages("pia")] == told


async def test_memory_tools_of_a_client_are_told_in_the_trace_and_in_a_receipt(scripted, model) -> None:
    model.script(answer("Hm."))
    tool = {"type": "function", "function": {"name": "add_memory", "parameters": {"type": "object"}}}
    told = await scripted.say("I have a zebu.", await service(scripted, "oda", CHAT), tools=[tool])
    trace = await trace_of(scripted, told.json()["trace_id"])
    assert "the client keeps memories of its own: add_memory" in str(trace_lines(trace, ()))
    for user, copied in (("oda", True), ("pam", False)):
        fact = await scripted.pet.remember(f"{user} rows", user=user)
        receipt = await scripted.pet.memories.forget(fact.id, user=user)
        assert ("forget it there too" in receipt.elsewhere) is copied


async def service(site: Any, user: str, chat: str) -> dict[str, str]:
    named = {"x-openwebui-user-id": user, "x-openwebui-user-name": user.title(), "x-openwebui-chat-id": chat}
    return await site.headers() | named


async def recorded(site: Any) -> Any:
    await site.pet.components.recorder.flush()
    return await site.pet.traces.list(TraceFilter(kinds=frozenset({"turn", "chore"})), site.pet.clock())


async def trace_of(site: Any, id: str) -> Any:
    await site.pet.components.recorder.flush()
    return await site.pet.traces.get(id, site.pet.clock())


@pytest.mark.parametrize(("chat", "stream"), [("temporary:8fQ2", False), ("local:8fQ2", True), (CHAT, True)])
async def test_a_temporary_chat_reads_nothing_and_leaves_nothing(scripted, model, chat, stream) -> None:
    user = f"tem-{chat[:4]}-{stream}"
    await scripted.pet.remember("Tem plays the oboe", user=user)
    model.script(
        Call("remember", {"content": "Tem has a zebu", "subjects": ["tem"]}),
        answer("A zebu!", {"content": "Tem has a zebu"}),
        answer("A zebu."),
    )
    headers = await service(scripted, user, chat)
    headers |= {"x-hachi-browser": ""} if chat == CHAT else {}  # a program writes
    told = await scripted.say("I have a zebu", headers, stream=stream)
    history = [{"role": "user", "content": "I have a zebu"}, {"role": "assistant", "content": "A zebu!"}]
    body = {"messages": [*history, {"role": "user", "content": "what do I have?"}]}
    asked = (await scripted.client.post("/v1/chat/completions", json=body, headers=headers)).json()
    await scripted.pet.settle()
    assert asked["choices"][0]["message"]["content"] == "A zebu."
    assert [text for _, text in model.asked[-1].conversation][:2] == ["I have a zebu", "A zebu!"]
    assert "oboe" not in "".join(one.text for one in model.asked[-3:])
    assert scripted.messages(user) == []
    assert [memory.content for memory in await scripted.pet.memories.list(user=user)] == [
        "Tem plays the oboe"
    ]
    assert HOW_TO_BE_REMEMBERED not in told.text
    assert (asked["memories"], "note" in asked, "conversation" in asked) == ([], False, False)
    trace = await trace_of(scripted, asked["trace_id"])
    assert (trace.summary.status, trace.summary.calls, trace.summary.user) == ("ok", 1, None)
    assert trace.summary.usage.input == 10
    assert trace.summary.took is not None
    assert "zebu" not in json.dumps([trace.summary.said, trace.summary.reply, str(trace.root)])


async def test_what_it_asks_for_itself_leaves_times_and_tokens_alone(scripted, model) -> None:
    task = "### Task:\nGenerate a title.\n<chat_history>\nUSER: I have a zebu\n</chat_history>"
    before = {trace.id for trace in await recorded(scripted)}
    model.script(Say('{"title": "A zebu"}'))
    await scripted.say(task, await service(scripted, "tia", CHAT))
    [summary] = [trace for trace in await recorded(scripted) if trace.id not in before]
    assert (summary.kind, summary.status, summary.calls, summary.user) == ("chore", "ok", 1, None)
    assert (summary.usage.input, summary.said, summary.reply) == (10, "", "")
    assert "zebu" not in str((await trace_of(scripted, summary.id)).root)


async def test_a_header_says_what_it_asks_for_itself(scripted: Any, model: ScriptedServer) -> None:
    headers = await service(scripted, "una", CHAT)
    model.script(Say("A zebu"), answer("Do you?"))
    asks = [("system", "Name the chat."), ("user", "I have a zebu"), ("user", "Three words:")]
    own = {"messages": [{"role": role, "content": text} for role, text in asks], "stream": True}
    task = headers | {"x-hachi-task": "title_generation"}
    named = await scripted.client.post("/v1/chat/completions", json=own, headers=task)
    assert "A zebu" in named.text
    assert model.asked[-1].conversation == [("user", "Name the chat.\n\nI have a zebu\n\nThree words:")]
    assert scripted.messages(headers["x-openwebui-user-id"]) == []

    quoted = "### Task:\n<chat_history>I have a zebu</chat_history>"
    await scripted.say(quoted, headers | {"x-hachi-task": ""})
    assert scripted.messages(headers["x-openwebui-user-id"])[0]["text"] == quoted


def asks_to_forget(text: str) -> Say:
    return Say(json.dumps({"message": "Confirm it.", "memories": [], "forget": [text]}))


@pytest.mark.parametrize("stream", [False, True])
async def test_forgetting_ends_in_a_link_and_so_does_asking_what_is_remembered(
    scripted: Any, model: ScriptedServer, stream: bool
) -> None:
    user = f"lea{stream}"
    told = await scripted.pet.remember("Lea has a zebu", user=user)
    model.script(asks_to_forget("Lea has a zebu"), asks_to_forget("quantum harpsichords"))
    headers = await service(scripted, user, CHAT)
    answered = (await scripted.say("Forget my zebu.", headers, stream=stream)).text
    assert told.id in str(await read_link(scripted.pet, re.findall(r"link=([\w.-]+)", answered)[0]))
    assert f"[Choose what to forget]({scripted.url}/enter?link=hachi-link-" in answered
    [_, reply] = [row["text"] for row in scripted.messages(user)]
    assert "- Lea has a zebu" in reply  # it is in the client's history word for word
    assert "Nothing that you told matches" in (await scripted.say("Forget my harpsichords.", headers)).text

    model.script(Call("get_recent_memories", {}), answer("A zebu."))
    answered = (await scripted.say("What do you remember of me?", headers, stream=stream)).text
    page = await read_link(scripted.pet, re.findall(r"link=([\w.-]+)", answered)[0])
    assert (page.user, page.page) == (user, "/memories")

    model.script(asks_to_forget("Lea has a zebu"), Say('{"town": "Lyon"}'))
    there = await service(scripted, user, "channel:c9")  # others would see and open it
    assert "/enter" not in (await scripted.say("Forget my zebu.", there)).text
    shaped = {"response_format": {"type": "json_object"}}
    assert "/enter" not in (await scripted.say("Forget my zebu.", headers, **shaped)).text


async def test_a_link_is_the_persons_alone(scripted: Any, model: ScriptedServer) -> None:
    """It is not stored or traced, and the client's copy of it reaches no model; nor does a forged host make
    an address."""
    await scripted.pet.remember("Mia has a zebu", user="mia")
    headers = await service(scripted, "mia", CHAT)
    model.script(asks_to_forget("Mia has a zebu"))
    sent = headers | {"host": "evil.example"}
    answered = (await scripted.say("Forget my zebu.", sent)).json()["choices"][0]["message"]["content"]
    assert (f"127.0.0.1:{scripted.port}/enter?link=hachi-link-" in answered, "evil" in answered) == (
        True,
        False,
    )

    model.script(answer("I did nothing."), answer("Zebus"), answer("With tools"))
    history = [("user", "Forget my zebu."), ("assistant", answered)]
    talk = [{"role": role, "content": text} for role, text in (*history, ("user", f"And {answered}?"))]
    talk = [{"role": "system", "content": answered}, *talk]
    body = {"messages": talk}
    await scripted.client.post("/v1/chat/completions", json=body, headers=headers)
    await scripted.client.post("/v1/chat/completions", json=body, headers=headers | {"x-hachi-task": "title"})
    await scripted.pet.components.recorder.flush()
    found = await scripted.pet.traces.list(TraceFilter(user="mia"), scripted.pet.clock(), 10)
    traces = str([(one, (await trace_of(scripted, one.id)).root) for one in found])
    assert ("Mia has a zebu" in traces, "hachi-link-" in traces) == (True, False)

    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": f'"{answered}"'}}]
    results = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": answered},
    ]
    await scripted.client.post(
        "/v1/chat/completions", json=body | {"messages": [*talk, *results]}, headers=headers
    )
    assert [len(asked.text) > 100 for asked in model.asked] == [True] * 4
    assert "hachi-link-" not in str([asked.json for asked in model.asked])
    stored = scripted.messages("mia")
    kept = {message.id for message in await scripted.pet.conversations.messages(user="mia")}
    assert {row["id"] for row in stored[:2]} <= kept, "the client's copy is the stored answer"
    assert "hachi-link-" not in str(stored)


async def test_a_channel_is_a_place_where_each_is_named(scripted: Any, model: ScriptedServer) -> None:
    channel = Place(("open-webui", "c7"))
    await scripted.pet.remember("Cleo is looking for another job", user="cleo")
    model.script(
        Call("remember", {"content": "Cleo brings the cake", "subjects": ["cleo"]}),
        answer("Lovely."),
        Call("search_memories", {"query": "who brings the cake, and job"}),
        answer("Cleo does."),
    )
    addressed = "You are Milo, participating in a threaded conversation. Be concise."
    spoken = [
        {"role": "system", "content": addressed},
        {"role": "user", "content": "Cleo: Milo, I bring the cake"},
    ]
    cleo = await service(scripted, "cleo", "channel:c7")
    told = await scripted.client.post("/v1/chat/completions", json={"messages": spoken}, headers=cleo)
    assert told.json()["conversation"] == {"id": "channel:c7"}
    await scripted.say("Dan: who brings the cake?", await service(scripted, "dan", "channel:c7"))
    asked = model.asked[-1]
    assert ("user", "Cleo: I bring the cake") in asked.conversation
    assert "Dan: who brings the cake?" in asked.text
    assert "Cleo brings the cake" in asked.results[0]
    assert "job" not in asked.results[0].replace("and job", "")
    assert [row["text"] for row in scripted.messages("dan")] == ["who brings the cake?", "Cleo does."]
    found = await scripted.pet.memories.list(user="dan", place=channel)
    assert [memory.content for memory in found] == ["Cleo brings the cake"]
    assert await scripted.pet.memories.list(user="dan") == []

    headers = await scripted.headers("dan") | {"x-openwebui-chat-id": "channel:c7"}
    refused = await scripted.say("what was said?", headers)
    assert (refused.status_code, "only a service's key" in refused.text) == (403, True)
