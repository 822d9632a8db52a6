"""Open WebUI's requests, as its documentation and its source have them, replayed."""

from typing import Any

from scripted_server import Call, ScriptedServer, answer

CHAT = "8c1c0f0a-6a43-4a7d-9a3e-0a5f0c2c7b11"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_current_time",
        "description": "The time",
        "parameters": {"type": "object", "properties": {}},
    },
}


async def test_a_chat_is_edited_and_regenerated_and_calls_its_tools(
    scripted: Any, model: ScriptedServer
) -> None:
    headers = await scripted.headers() | {
        "x-openwebui-user-id": "webui-ana",
        "x-openwebui-user-name": "Ana%20B%C3%A9",
        "x-openwebui-user-email": "ana@example.org",
        "x-openwebui-user-role": "user",
        "x-openwebui-chat-id": CHAT,
        "x-openwebui-message-id": "1d1f",
    }

    async def ask(*messages: tuple[str, str], **more: Any) -> str:
        said = [{"role": role, "content": content} for role, content in messages]
        body = {"model": "hachi", "messages": [*said, *more.pop("after", ())], "stream": True, **more}
        body |= {"stream_options": {"include_usage": True}}
        answered = await scripted.client.post("/v1/chat/completions", json=body, headers=headers)
        assert answered.status_code == 200, answered.text
        return str(answered.text)

    system, first = ("system", "Answer in one word."), ("user", "Name a country")
    model.script(*map(answer, ("Peru", "Chile", "Santiago", "Valparaiso")))
    await ask(system, first)
    await ask(system, first)  # "Regenerate"
    chile = ("assistant", "Chile")
    await ask(system, first, chile, ("user", "Its capital?"))
    await ask(system, first, chile, ("user", "Its biggest port?"))  # the question was edited
    assert [text for _, text in model.asked[-1].conversation] == [
        "Name a country",
        "Chile",
        "Its biggest port?",
    ]
    told = scripted.messages("webui-ana")
    kept = [row["text"] for row in told if row["replaced_at"] is None]
    assert kept == ["Name a country", "Chile", "Its biggest port?", "Valparaiso"]
    assert [row["text"] for row in told if row["replaced_at"]] == ["Peru", "Its capital?", "Santiago"]
    assert {row["author"] for row in told if row["role"] == "user"} == {"Ana Bé"}

    model.script(Call("get_current_time", {}, id="call_time"), answer("Noon."))
    assert "call_time" in await ask(system, ("user", "What time is it?"), tools=[TOOL])  # "native" tools
    call = {
        "id": "call_time",
        "type": "function",
        "function": {"name": "get_current_time", "arguments": "{}"},
    }
    after = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_time", "content": "12:00"},
    ]
    assert "Noon." in await ask(system, ("user", "What time is it?"), after=after, tools=[TOOL])
    assert model.asked[-1].results == ["12:00"]
