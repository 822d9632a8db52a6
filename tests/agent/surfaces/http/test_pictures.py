"""Pictures in a chat: what the model is shown of them, and that none is parsed."""

import base64
import json
from contextvars import copy_context
from typing import Any

import pytest
import pytest_asyncio
from scripted_server import answer, divided

from agent.models.pictures import PICTURES
from agent.surfaces.http import pictures
from agent.surfaces.http.errors import ApiError
from agent.surfaces.http.limits import RequestLimits
from agent.surfaces.http.pictures import take_pictures


def url(letter: str, size: int = 3_400_000) -> str:
    """The URL of a picture of so many bytes."""
    return "data:image/jpeg;base64," + base64.b64encode(letter.encode() * size).decode()


def message(text: str, *urls: str) -> dict[str, Any]:
    parts = [{"type": "image_url", "image_url": {"url": one}} for one in urls]
    return {"role": "user", "content": [{"type": "text", "text": text}, *parts]}


async def test_a_picture_is_taken_out_of_a_body_and_never_copied() -> None:
    quoted = f'He sent "{url("q", 20_000)}" to me'  # in a text
    told = {"messages": [message("look", url("a"), "https://a.example/b.png", url("c", 9)), message(quoted)]}
    body = bytearray(json.dumps(told).encode())
    rest, taken = await take_pictures(body)
    [(mark, picture)] = taken.items()
    assert picture.obj is body
    assert picture == url("a").encode()
    assert json.loads(rest) == json.loads(body.replace(picture, mark.encode()))


async def test_beside_its_pictures_a_body_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_WITHOUT", 1_000)
    long = url("a", 20_000)
    for text, picture in (("x" * 800, long), ("", long)):
        await take_pictures(bytearray(json.dumps([text, picture]).encode()))
    for body in (["x" * 1_000, long], [long, "x" * 1_000], [long, "x" * 600, long, "x" * 600], ["x" * 1_001]):
        with pytest.raises(ApiError, match="without its pictures") as refused:
            await take_pictures(bytearray(json.dumps(body).encode()))
        assert refused.value.status == 413
    monkeypatch.setattr(pictures, "MOST_WITHOUT", 1_000_000)
    with pytest.raises(ApiError, match="more than 1,000 pictures"):
        await take_pictures(bytearray(json.dumps([url("b", 1)] * 1_001).encode()))


@pytest_asyncio.fixture(loop_scope="session")
async def seeing(serve: Any, server: Any) -> Any:
    given = {"openai_base_url": server.url, "openai_api_key": "sk-1", "model": "tiny", "images": True}
    return await serve(**given, api="chat")


def shown(asked: Any) -> list[Any]:
    """What the people said in a call, as text or as the parts of a message, without what stands before it."""
    return [
        [
            part["image_url"]["url"] if "image_url" in part else divided(part["text"])[1]
            for part in one["content"]
        ]
        if isinstance(one["content"], list)
        else divided(one["content"])[1]
        for one in asked.json["messages"]
        if one["role"] == "user"
    ]


async def test_only_the_pictures_of_the_last_message_that_has_some_reach_the_model(
    seeing: Any, server: Any
) -> None:
    """A client sends all of them with each request; three of these were too many."""
    headers = await seeing.headers("ana")
    one, two, three = map(url, "abc")
    talk: list[dict[str, Any]] = []

    async def say(text: str, *urls: str, stream: bool = False) -> None:
        talk.append(message(text, *urls))
        server.script(answer(f"To {text}."))
        body = json.dumps({"messages": talk, "stream": stream}).replace("/", r"\/")  # as PHP writes it
        sent = headers | {"content-type": "application/json"}
        told = await seeing.client.post("/v1/chat/completions", content=body, headers=sent)
        assert (told.status_code, f"To {text}." in told.text) == (200, True)
        talk.append({"role": "assistant", "content": f"To {text}."})

    await say("one", one)
    assert shown(server.asked[-1]) == [["one", one]]
    await say("two", two, "https://a.example/pictures/boat.png", stream=True)
    assert shown(server.asked[-1]) == [
        "one\n[an image]",
        ["two", two, "https://a.example/pictures/boat.png"],
    ]
    await say("and its colour?")
    assert shown(server.asked[-1])[1:] == [
        ["two", two, "https://a.example/pictures/boat.png"],
        "and its colour?",
    ]
    await say("three", three)
    assert shown(server.asked[-1])[1:3] == ["two\n[an image]\n[an image: boat.png]", "and its colour?"]
    assert shown(server.asked[-1])[3] == ["three", three]
    assert [row["text"] for row in seeing.messages("ana")][::2] == ["one", "two", "and its colour?", "three"]


async def test_what_goes_on_after_an_answer_keeps_no_picture() -> None:
    """A task keeps the context of the request in which it was begun."""
    begun = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert len(PICTURES.get()) == 1
        begun.append(copy_context())

    async def anybody(_: Any) -> str:
        return "ana"

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps([url("a", 200_000)]).encode()}

    limited = RequestLimits(app, max_body=1_000_000, authorize=anybody)
    headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    await limited({"type": "http", "headers": headers}, receive, app)
    assert begun[0][PICTURES] == {}


async def test_a_picture_that_is_too_large_does_not_end_the_chat(
    seeing: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MAX_PICTURE", 1_000_000)
    headers = await seeing.headers("ana")
    talk = [message("look", url("a", 1_200_000))]
    refused = await seeing.client.post("/v1/chat/completions", json={"messages": talk}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "image_too_large")
    assert (
        refused.json()["error"]["message"] == "an image has 1.2 MB, and the limit is 1 MB; send a smaller one"
    )
    server.script(answer("Hello."))
    talk.append(message("hello?"))
    told = await seeing.client.post("/v1/chat/completions", json={"messages": talk}, headers=headers)
    assert told.status_code == 200
    asked = server.asked[-1].text
    assert ("look\n[an image]" in asked, "hello?" in asked, "data:" in asked) == (True, True, False)


async def test_the_responses_api_is_shown_pictures_too(seeing: Any, server: Any) -> None:
    picture = url("r", 400_000)
    server.script(answer("A boat."))
    content = [{"type": "input_text", "text": "what is it?"}, {"type": "input_image", "image_url": picture}]
    told = await seeing.client.post(
        "/v1/responses",
        json={"input": [{"role": "user", "content": content}]},
        headers=await seeing.headers("ana"),
    )
    assert told.status_code == 200
    assert len(told.content) < 10_000
    assert shown(server.asked[-1]) == [["what is it?", picture]]
