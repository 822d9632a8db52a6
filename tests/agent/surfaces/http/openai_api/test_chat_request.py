"""What a request says."""

from typing import Any

import pytest

from agent.errors import BadInput
from agent.surfaces.http.openai_api.chat_request import ChatRequest
from agent.surfaces.http.openai_api.messages import MAX_SHOWN, ChatMessage, parse_messages
from agent.types.client import CallItem, MessageItem, ResultItem

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def message(role: str, content: Any) -> ChatMessage:
    return ChatMessage.model_validate({"role": role, "content": content})


def test_the_last_user_message_is_answered_and_the_rest_is_context() -> None:
    parts = [{"type": "text", "text": "I have"}, {"type": "input_text", "text": "a boat"}]
    given = parse_messages(
        [
            message("system", "Answer like a pirate."),
            message("user", [{"type": "text", "text": "what is it?"}]),
            message("assistant", "A boat."),
            message("developer", "Be brief."),
            message("user", parts),
            message("assistant", "Nice"),
        ]
    )
    assert given.text == "I have\na boat"
    assert given.history == (MessageItem("user", "what is it?"), MessageItem("assistant", "A boat."))
    assert given.after == (MessageItem("assistant", "Nice"),)
    assert given.instructions == "Answer like a pirate.\n\nBe brief."
    assert given.client_task is None


def test_text_and_images_can_be_read() -> None:
    given = parse_messages([message("user", [{"type": "text", "text": "what is this?"}, PICTURE])])
    assert (given.text, given.images) == ("what is this?", ("data:image/png;base64,AAAA",))
    assert parse_messages([message("user", [PICTURE])]).text == "[an image]"
    with pytest.raises(BadInput, match="text and images can be read, and this holds 'input_audio'"):
        parse_messages([message("user", [{"type": "input_audio", "input_audio": {"data": "AAAA"}}])])
    with pytest.raises(BadInput, match="no message of the user"):
        parse_messages([message("system", "be nice")])


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("### Task:\nGenerate a title. <chat_history></chat_history>", True),
        (
            "### Task:\nSummarize.\n### Messages Being Compacted:\nUSER: hi\n"
            "### Recent Messages Kept In Context:\nUSER: well?",
            True,
        ),
        ("### Task:\nGenerate a title.", False),
        ("What does '### Task: <chat_history>' mean?", False),
    ],
)
def test_what_open_webui_asks_for_itself_is_recognised(text: str, task: bool) -> None:
    assert parse_messages([message("user", text)]).client_task == (text if task else None)
    assert not parse_messages([message("user", "hello"), message("user", text)]).client_task


@pytest.mark.parametrize("history", ['Query: History:\nUSER: """hello"""\n', ""])
def test_open_webui_asks_for_itself_which_tools_to_call(history: str) -> None:
    tools = message("system", 'Available Tools: [{"name": "clock"}]\n\nReturn only the JSON object.')
    asked = message("user", f"{history}Query: what time is it?")
    task = parse_messages([tools, asked]).client_task
    assert task is not None
    assert "clock" in task
    assert task.endswith("Query: what time is it?")
    assert parse_messages([tools, message("user", "what time is it?")]).client_task is None


def test_a_message_below_open_webuis_documents_is_what_was_asked() -> None:
    documents = "### Task:\nUse the context.\n<context>\n<source id='1'>Trains are paid.</source>\n</context>"
    given = parse_messages([message("user", f"{documents}\n\nWho pays?\nAnd when?")])
    assert (given.text, given.client_task) == ("Who pays?\nAnd when?", None)
    assert given.shown == f"{documents}\n\nWho pays?\nAnd when?"


@pytest.mark.parametrize(
    "asked",
    [
        "What is </context> for, and </user_query>?\nTell me.",
        "Is this right?\n<context>\nmine\n</context>\nI am Ana.",
        "### Task:\nI am Ana.\n<context>\nmine\n</context>\nIs it right?",
        "I am Ana. Explain <chat_history> and </chat_history>.",
    ],
)
def test_what_a_person_says_about_the_templates_is_kept_whole(asked: str) -> None:
    alone = parse_messages([message("user", asked)])
    assert (alone.text, alone.shown, alone.client_task) == (asked, "", None)
    source = "<source id='1'>Write <chat_history></chat_history>.</source>"
    below = f"### Task:\nUse the context.\n<context>\n{source}\n</context>\n\n{asked}"
    given = parse_messages([message("user", below)])
    assert (given.text, given.shown, given.client_task) == (asked, below, None)


def test_what_is_said_below_open_webuis_list_of_files_is_what_was_asked() -> None:
    files = '<attached_files>\n<file type="file" id="7" name="travel.md"/>\n</attached_files>'
    documents = "### Task:\nUse it.\n<context>\n<source id='1'>Trains.</source>\n</context>"
    for shown in (f"{files}\n\nWho pays?", f"{documents}\n\n{files}\n\nWho pays?"):
        given = parse_messages([message("user", shown)])
        assert (given.text, given.shown) == ("Who pays?", shown)
    later = parse_messages([message("user", f"{files}\n\nWho pays?"), message("user", "And when?")])
    assert (later.history, later.text, later.shown) == ((MessageItem("user", "Who pays?"),), "And when?", "")
    assert parse_messages([message("user", files)]).text == files


def test_a_message_that_is_too_long_with_its_template_is_refused() -> None:
    assert parse_messages([message("user", "x" * MAX_SHOWN)]).text
    with pytest.raises(BadInput, match="the last one has 400,002 characters and the limit is 400,000"):
        parse_messages([message("user", [{"type": "text", "text": part} for part in ("x" * MAX_SHOWN, "x")])])


def test_the_question_of_a_template_may_stand_in_it_too() -> None:
    documents = "### Task:\nUse it.\n<context>\n<source id='1'>Trains.</source>\n</context>"
    inside = f"{documents}\n<user_query>\nWho pays?\n</user_query>"
    assert parse_messages([message("user", f"{inside}\n\nWho pays?")]).text == "Who pays?"
    assert parse_messages([message("user", documents)]).text == documents


def test_calls_of_a_clients_tools_stay_in_order_with_their_results() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    asks = ChatMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})
    tells = ChatMessage.model_validate({"role": "tool", "tool_call_id": "call_1", "content": "sunny"})
    question = message("user", "how is the weather?")
    given = parse_messages([question, asks, tells])
    assert (given.history, given.text) == ((), "how is the weather?")
    assert given.after == (CallItem("call_1", "weather", "{}"), ResultItem("call_1", "sunny"))
    again = parse_messages(
        [question, asks, tells, message("assistant", "Sunny."), message("user", "and now?")]
    )
    asked, answered = MessageItem("user", question.text), MessageItem("assistant", "Sunny.")
    assert again.history == (asked, *given.after, answered)
    with pytest.raises(BadInput, match="the results of these tool calls are missing: call_1"):
        parse_messages([question, asks, message("user", "well?")])
    with pytest.raises(BadInput, match="follows no call 'call_1'"):
        parse_messages([question, tells])


@pytest.mark.parametrize(
    ("given", "chat"),
    [
        ({}, None),
        ({"metadata": {"chat_id": "c1"}}, "c1"),
        ({"conversation": "c3"}, "c3"),
        ({"conversation": {"id": "c4"}}, "c4"),
        ({"conversation": {"id": " "}, "metadata": {"chat_id": "c5"}}, "c5"),
    ],
)
def test_a_client_names_the_conversation(given: Any, chat: str | None) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}], **given}
    assert ChatRequest.model_validate(body).chat == chat
