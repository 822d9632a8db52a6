"""What a turn makes of the pictures of a message: the model sees them, and the transcript keeps a line."""

import json
from dataclasses import replace
from typing import Any

import pytest
from agents.testing import ScriptedModel, assistant_message
from scripted_server import Fail, Say, ScriptedServer, answer

from agent.errors import BadInput, ModelRejected
from agent.models.wire.out import NOT_SHOWN
from agent.replay.replay import ReplayOptions, replay
from agent.types.client import ClientTurn, MessageItem
from hachi import Companion

CAT = "data:image/jpeg;base64," + "QUJD" * 50
SEEN = "Mitzi, a grey cat, asleep on a red sofa"
LINE = f"[the picture shows: {SEEN}]"
WITH_CAT = ClientTurn(images=(CAT,), pictures_optional=True)


def described(message: str, seen: Any = SEEN) -> Say:
    return Say(json.dumps({"message": message, "memories": [], "seen": seen}))


@pytest.fixture
async def pet(pet_at: Any, some_way: Any) -> Companion:
    seeing: Companion = await pet_at(some_way, images=True, model_retries=0)
    return seeing


def parts(asked: Any) -> list[Any]:
    """What the model was shown in the question's message."""
    content = (asked.json.get("input") or asked.json["messages"])[-1]["content"]
    return content if isinstance(content, list) else [{"text": content}]


def urls(asked: Any) -> list[str]:
    found = [part.get("image_url") for part in parts(asked)]
    return [one["url"] if isinstance(one, dict) else one for one in found if one]


async def texts(pet: Companion) -> list[str]:
    said = await pet.conversations.messages(user="ana")
    return [message.text for message in reversed(said) if message.role == "user"]


async def test_the_message_keeps_a_line_of_what_its_picture_shows(pet, server, some_way) -> None:
    server.script(described("Lovely!"), answer("Grey."))
    await some_way.ask(pet, "Look!", user="ana", client=WITH_CAT)
    assert urls(server.asked[0]) == [CAT]
    assert "one line of what the first 1 show" in parts(server.asked[0])[0]["text"]
    assert await texts(pet) == [f"Look!\n{LINE}"]
    found = await pet.memories.search("sofa", user="ana", kind="message")
    assert [hit.content for hit in found] == [f"Look!\n{LINE}"]
    await some_way.ask(pet, "Which colour was she?", user="ana")
    assert (LINE in server.asked[1].text, "you are shown pictures" in server.asked[1].text) == (True, False)
    [message] = found
    await pet.conversations.forget(message.id, user="ana")
    assert "sofa" not in str(await pet.conversations.export(user="ana"))


async def test_a_described_message_is_found_on_postgresql_too(pet_at, first_way, server, postgresql) -> None:
    pet = await pet_at(first_way, images=True, database_url=await postgresql.new())
    assert not await pet.memories.search("sofa", user="ana")
    server.script(described("Lovely!"))
    await pet.respond("Look!", user="ana", place="acme", client=WITH_CAT)
    found = await pet.memories.search("sofa", user="ana", place="acme", kind="message")
    assert [hit.content for hit in found] == [f"Look!\n{LINE}"]


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        ("two\nlines", "[the picture shows: two lines]"),
        (["a cat", "a dog"], "[the picture shows: a cat; a dog]"),
        ("x" * 5_000, f"[the picture shows: {'x' * 300}]"),
        (None, ""),
        ({"odd": 1}, ""),
    ],
)
async def test_any_description_becomes_one_short_line(pet_at, first_way, server, seen, kept) -> None:
    pet = await pet_at(first_way, images=True)
    server.script(described("Lovely!", seen))
    await pet.respond("Look!", user="ana", client=WITH_CAT)
    assert await texts(pet) == ["\n".join(filter(None, ["Look!", kept]))]


async def test_a_picture_of_somebody_else_is_shown_for_this_answer_alone(pet_at, first_way, server) -> None:
    pet = await pet_at(first_way, images=True)
    theirs = ClientTurn(quoted_images=(CAT,), replies_to="Ben: our cat", pictures_optional=True)
    server.script(described("A cat."), described("Two."))
    await pet.respond("What is that?", user="ana", client=theirs)
    assert (urls(server.asked[0]), "seen" in parts(server.asked[0])[0]["text"]) == ([CAT], False)
    assert await texts(pet) == ["What is that?"]
    await pet.respond("And this?", user="ana", client=replace(theirs, images=(CAT + "QUJD",)))
    assert urls(server.asked[1]) == [CAT + "QUJD", CAT]
    assert "what the first 1 show, which this person sent" in parts(server.asked[1])[0]["text"]


async def test_nothing_is_described_where_no_picture_is_shown(pet_at, first_way, server) -> None:
    pet = await pet_at(first_way, images=False)
    server.script(described("I cannot see."), described("Hello."))
    await pet.respond("Look!", user="ana", client=WITH_CAT)
    await pet.respond("Hi", user="ana")
    assert await texts(pet) == ["Look!", "Hi"]
    assert (urls(server.asked[0]), NOT_SHOWN in str(server.asked[0].json)) == ([], True)


async def test_a_refusal_of_images_is_learned_once(pet, server, some_way) -> None:
    server.script(
        Fail(400, "image_url is only supported by certain models"), answer("I cannot see."), answer("No.")
    )
    reply, _ = await some_way.ask(pet, "Look!", user="ana", client=WITH_CAT)
    assert reply.message == "I cannot see."
    await pet.settle()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert (await replay(pet, whole)).differences == ()
    await some_way.ask(pet, "And now?", user="ana", client=WITH_CAT)
    assert [bool(urls(asked)) for asked in server.asked] == [True, False, False]
    assert NOT_SHOWN in str(server.asked[2].json)


@pytest.mark.parametrize(
    "refusals",
    [
        [Fail(400, "bad things"), Fail(400, "bad things")],
        [Fail(400, "the image violates our content policy")],
    ],
)
async def test_a_refusal_of_something_else_teaches_nothing(pet_at, first_way, server, refusals) -> None:
    pet = await pet_at(first_way, images=True)
    server.script(*refusals, described("Lovely!"))
    with pytest.raises(ModelRejected):
        await pet.respond("Look!", user="ana", client=WITH_CAT)
    await pet.respond("Look!", user="ana", client=WITH_CAT)
    assert urls(server.asked[-1]) == [CAT]


async def test_who_must_have_the_picture_seen_is_told_of_the_refusal(pet_at, first_way, server) -> None:
    pet = await pet_at(first_way, images=True)
    server.script(Fail(400, "unsupported image"))
    needed = replace(WITH_CAT, pictures_optional=False)
    with pytest.raises(ModelRejected, match="unsupported image"):
        await pet.respond("Look!", user="ana", client=needed)
    blind = await pet_at(first_way, images=False)
    with pytest.raises(BadInput, match="HACHI_IMAGES"):
        await blind.respond("Look!", user="ana", client=needed)


async def test_the_second_model_gets_what_it_can_see(pet_at, first_way, server) -> None:
    async with ScriptedServer.running() as second:
        spare = {"fallback_model": f"spare@{second.url}", "fallback_key": "k", "model_retries": 0}
        pet = await pet_at(first_way, images=True, **spare)
        server.script(Fail(503))
        second.script(described("I cannot see."))
        await pet.respond("Look!", user="ana", client=WITH_CAT)
        assert (urls(second.asked[0]), NOT_SHOWN in str(second.asked[0].json)) == ([], True)
        assert await texts(pet) == ["Look!"]


async def test_a_trace_holds_no_picture_and_is_replayed(pet, server, some_way) -> None:
    server.script(described("Lovely!"))
    reply, _ = await some_way.ask(pet, "Look!", user="ana", client=WITH_CAT)
    await pet.settle()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert "base64" not in str(whole)
    assert (await replay(pet, whole)).differences == ()
    live = ScriptedModel([[assistant_message(described("Hm.").text)]])
    replayed = await replay(pet, whole, ReplayOptions(fork=1, live=live))
    assert replayed.differences[0].what == "are not in the trace, so the model is not shown them"


async def test_a_client_that_sends_its_history_meets_its_messages_again(pet_at, first_way, server) -> None:
    """What was noted of a picture is none of the client's words, and stands for the picture later."""
    pet = await pet_at(first_way, images=True)
    server.script(described("Lovely!"), answer("Grey."), described("Yes.", "a boat"), answer("Blue."))
    talk: list[Any] = []
    for text, *images in [("Look!", CAT), ("Colour?",), ("And this?", CAT + "QUJD"), ("Its colour?",)]:
        client = ClientTurn(history=tuple(talk), images=tuple(images))
        reply = await pet.respond(text, user="ana", conversation="c", client=client)
        talk += [MessageItem("user", text, images=tuple(images)), MessageItem("assistant", reply.message)]
    boat = "[the picture shows: a boat]"
    assert await texts(pet) == [f"Look!\n{LINE}", "Colour?", f"And this?\n{boat}", "Its colour?"]
    assert server.asked[3].conversation[0] == ("user", f"Look!\n{LINE}")
