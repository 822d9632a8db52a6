"""Pictures and voice messages in a chat: what the model gets, what is kept, and what the person is told."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from scripted_server import Say, ScriptedServer, answer

from agent.models.wire.out import NOT_SHOWN
from agent.surfaces.bots.attachments.attachment import Attachment, Unreadable
from agent.surfaces.bots.attachments.read import AttachmentReader
from agent.surfaces.bots.attachments.transcriber import Transcriber
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.platform import Content, IncomingMessage, NearbyMessage
from hachi import Companion
from memory.audience import PRIVATE

URL = "data:image/jpeg;base64,"
SEEN = "Mitzi, a grey cat, asleep on a sofa"
LEFT = "SELECT text FROM messages WHERE id NOT IN (SELECT row_id FROM hidden) ORDER BY seq"


class Scaling:
    async def scaled(self, data: bytes) -> str:
        if data == b"bomb":
            raise Unreadable("it has too many pixels")
        return URL + data.decode()


class Hearing(Transcriber):
    async def hear(self, data: bytes, name: str) -> tuple[str, float | None]:
        if data == b"away":
            raise Unreadable("the transcriber does not answer; send it again later")
        return data.decode(), None


@pytest.fixture
async def pet(open_pet: Callable[..., Awaitable[Companion]], server: ScriptedServer) -> Companion:
    given = {"openai_base_url": server.url, "openai_api_key": "sk-test", "model": "tiny", "api": "chat"}
    return await open_pet(**given, images=True, consolidate="plain", model_retries=0)


class Chat:
    """What Ana sends, with files that note each time they are fetched."""

    def __init__(self, conversations: Conversations) -> None:
        self.conversations = conversations
        self.fetched: list[str] = []
        conversations._turns.reader.files = self.reader()

    @staticmethod
    def reader() -> AttachmentReader:
        return AttachmentReader(Hearing("m", "http://a.test", "k", 1.0), Scaling())  # type: ignore[arg-type]

    def file(self, name: str, data: bytes, media_type: str = "image/png", **other: Any) -> Attachment:
        async def fetch(_: int) -> bytes:
            self.fetched.append(name)
            return data

        return Attachment(name, media_type, len(data), fetch, **other)

    def voice(self, words: bytes) -> Attachment:
        return self.file("voice-message.ogg", words, "audio/ogg", is_voice=True, seconds=12.0)

    def message(self, text: str, *files: Attachment, origin: str = "chat:1", **other: Any) -> IncomingMessage:
        held = Content("Ana", text, files, replies_to=other.pop("replies_to", None))
        return IncomingMessage("chat:ana", PRIVATE, source=held, origin=origin, **other)

    async def hears(self, text: str, *files: Attachment, **other: Any) -> None:
        await self.conversations.receive(self.message(text, *files, **other), "mentions")
        await self.conversations.settle()

    async def edits(self, text: str, *files: Attachment, **other: Any) -> None:
        await self.conversations.edited(self.message(text, *files, version="2", **other), "mentions")
        await self.conversations.settle()


@pytest.fixture
def chat(conversations: Conversations) -> Chat:
    return Chat(conversations)


def described(message: str) -> Say:
    return Say(json.dumps({"message": message, "memories": [], "seen": SEEN}))


def urls(asked: Any) -> list[str]:
    content = asked.json["messages"][-1]["content"]
    return (
        [part["image_url"]["url"] for part in content if "image_url" in part]
        if isinstance(content, list)
        else []
    )


async def test_a_picture_is_seen_and_described_and_seen_again_after_an_edit(
    chat, server, rows, clock
) -> None:
    cat = chat.file("cat.png", b"cat")
    server.script(described("Lovely!"), described("She is!"))
    await chat.hears("Look!", cat)
    assert urls(server.asked[0]) == [f"{URL}cat"]
    kept = f"[picture cat.png]\n[the picture shows: {SEEN}]"
    assert rows(LEFT)[0]["text"] == f"Look!\n\n{kept}"
    await chat.edits("Is she not sweet?", cat)
    assert urls(server.asked[1]) == [f"{URL}cat"]
    assert rows(LEFT)[0]["text"] == f"Is she not sweet?\n\n{kept}"
    clock.advance(minutes=20)
    await chat.edits("Is she not grey?", cat)
    assert rows(LEFT)[0]["text"] == f"Is she not grey?\n\n{kept}", "what was seen stays with a late edit"


async def test_what_is_delivered_again_is_not_fetched_again(chat, server, rows, platform) -> None:
    """As after a restart: the words that were heard stand, though nothing could be heard any more."""
    server.script(described("Noted."))
    files = [chat.file("cat.png", b"cat"), chat.voice(b"I feed her")]
    await chat.hears("", *files)
    before, fetched = rows(LEFT), sorted(chat.fetched)
    assert before[0]["text"].startswith("[picture cat.png]\n\n(spoken, 0:12) I feed her\n[the picture")
    chat.conversations._turns.reader.files = AttachmentReader(None)
    chat.conversations.show(replace(chat.message("", *files), job="job"))
    await chat.conversations.settle()
    assert (rows(LEFT), sorted(chat.fetched), len(server.asked)) == (before, fetched, 1)
    server.script(answer("She does."))
    await chat.edits("Well?", *files)
    assert "Well?" in server.asked[-1].conversation[-1][1], (
        "an edit counts, and what cannot be heard any more stays"
    )
    assert "(spoken, 0:12) I feed her" in rows(LEFT)[0]["text"]


@pytest.mark.parametrize("late", [False, True])
async def test_an_edit_is_stored_and_what_a_file_held_stays_where_it_cannot_be_read_any_more(
    chat, server, rows, clock, late
) -> None:
    notes = [chat.file("a.txt", text, "text/plain") for text in (b"one\n\ntwo", b"three")]
    server.script(answer("I see."), answer("I see again."))
    await chat.hears("Read this", *notes, chat.voice(b"aloud"), chat.file("b.bin", b"", "x/y"))
    kept = rows(LEFT)[0]["text"].removeprefix("Read this")
    assert ("one\n\ntwo" in kept, "three" in kept, "aloud" in kept, "b.bin; not read" in kept) == (True,) * 4
    gone = [replace(one, fetch=chat.file("", b"bomb", "image/png").fetch, size=10**9) for one in notes]
    chat.conversations._turns.reader.files = AttachmentReader(None)
    clock.advance(minutes=20 * late)
    await chat.edits("Read that", gone[0], notes[1], chat.voice(b"away"), chat.file("b.bin", b"", "x/y"))
    assert rows(LEFT)[0]["text"] == f"Read that{kept}"
    assert len(server.asked) == 1 + (not late)


async def test_spoken_words_are_the_message(chat, server, rows) -> None:
    server.script(answer("I will."))
    await chat.hears("", chat.voice(b"Remind me\nto buy milk."))
    assert server.asked[0].conversation == [("user", "(spoken, 0:12) Remind me to buy milk.")]
    assert rows(LEFT)[0]["text"] == "(spoken, 0:12) Remind me to buy milk."


async def test_the_person_is_told_in_one_line_what_was_not_read_and_nothing_else_is_lost(
    chat, server, rows, platform
) -> None:
    server.script(answer("Three things, then."))
    bomb, doc = chat.file("bomb.png", b"bomb"), chat.file("a.pdf", b"", "application/pdf")
    await chat.hears("Look!", chat.voice(b"away"), bomb, doc)
    [said] = platform.said
    assert said.startswith(
        "Three things, then.\n\n_Your voice message: the transcriber does not answer; send"
    )
    assert ("\n_bomb.png: it has too many pixels._\n_a.pdf: " in said, len(said.splitlines())) == (True, 5)
    [(_, asked)] = server.asked[0].conversation
    assert "(spoken, 0:12; not heard: the transcriber does not answer; send it again later)" in asked
    assert rows(LEFT)[0]["text"] == asked


async def test_the_picture_of_the_message_that_is_replied_to_is_seen_too(chat, server, platform) -> None:
    server.script(described("A cat."))
    line = NearbyMessage("chat:ben", origin="chat:9", source="Ben: (file: cat.png)")
    platform.files["chat:9"] = [chat.file("cat.png", b"cat"), chat.file("plan.txt", b"", "text/plain")]
    six = [chat.file(f"{number}.png", b"x") for number in range(4)]
    await chat.hears("What is that?", *six, replies_to=line)
    assert urls(server.asked[0]) == [f"{URL}x"] * 4 + [f"{URL}cat"]
    assert "Ben: (file: cat.png)" in str(server.asked[0].json)
    assert "plan.txt" not in chat.fetched


async def test_a_turn_has_five_pictures_at_most(chat, server, platform) -> None:
    server.script(described("Many!"))
    for origin in ("chat:1", "chat:2"):
        files = [chat.file(f"{origin}.{number}.png", b"x") for number in range(4)]
        chat.conversations.add(chat.message("Look!", *files, origin=origin))
    await chat.conversations.settle()
    assert (len(urls(server.asked[0])), platform.said[0].count("too many files")) == (5, 3)


async def test_a_model_that_sees_none_is_told_that_there_is_a_picture(
    chat, server, rows, open_pet, platform
) -> None:
    blind = await open_pet(openai_base_url=server.url, openai_api_key="k", model="tiny", api="chat")
    other = Chat(Conversations(blind, platform, burst_seconds=0.002))
    server.script(described("I cannot see it."))
    await other.hears("Look!", other.file("cat.png", b"cat"))
    assert server.asked[0].conversation == [("user", f"Look!\n\n[picture cat.png]\n{NOT_SHOWN}")]
    assert (rows(LEFT)[0]["text"], other.fetched) == ("Look!\n\n[picture cat.png]", [])
    await other.conversations.stop(0)
