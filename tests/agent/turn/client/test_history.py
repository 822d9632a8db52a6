"""A conversation whose history the client keeps and sends whole."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from effort import steps_of
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import Asked, Call, Fail, Say, ScriptedServer, answer

from agent.errors import ModelError
from agent.turn.client.history import Key, compared, pairs_of
from agent.types.budget import Budget
from agent.types.client import Called, ClientTool, ClientTurn, Item, Returned, Said
from hachi import Companion
from memory.records import Message

Rows = Callable[..., list[dict[str, Any]]]

PERU = [Said("user", "Name a country"), Said("assistant", "Peru")]
EVER = datetime(2026, 1, 1, tzinfo=UTC)
REPLACED = "its message was replaced"


@pytest.fixture
async def pet(open_pet: Callable[..., Awaitable[Companion]], server: ScriptedServer) -> Companion:
    return await open_pet(openai_base_url=server.url, model="tiny", api="chat", look_back="off")


async def say(pet: Companion, text: str, *history: Item, user: str | None = "ana", **more: Any) -> Any:
    client = ClientTurn(tuple(history), tuple(more.pop("after", ())))
    return await pet.respond(text, user=user, client=client, settle=True, **more)


def kept(rows: Rows, *, replaced: bool = False) -> list[str]:
    told = "IN" if replaced else "NOT IN"
    hidden = "SELECT row_id FROM hidden WHERE kind = 'message'"
    return [row["text"] for row in rows(f"SELECT text FROM messages WHERE id {told} ({hidden}) ORDER BY seq")]


def seen(asked: Asked) -> list[str]:
    return [text for _, text in asked.conversation]


async def test_a_chat_goes_on_in_the_conversation_that_it_began(pet, server, rows):
    server.script(*map(answer, ("Peru", "Lima", "Hm.", "Quito")))
    await say(pet, "Name a country")
    await say(pet, "And its capital?", *PERU)
    await say(pet, "Something else")
    await say(pet, "And another?", *PERU, Said("user", "And its capital?"), Said("assistant", "Lima"))
    told = rows("SELECT conversation_id, text FROM messages ORDER BY seq")
    first, other = (
        {row["conversation_id"] for row in told if row["text"] in texts} for texts in (("Peru",), ("Hm.",))
    )
    assert [row["text"] for row in told if row["conversation_id"] in first] == [
        *("Name a country", "Peru", "And its capital?", "Lima", "And another?", "Quito")
    ]
    assert len(first | other) == 2


async def test_an_answer_made_again_replaces_the_one_before(pet, server, rows):
    server.script(*map(answer, ("Peru", "Chile", "Santiago", "Lima")))
    for _ in range(2):
        await say(pet, "Name a country", conversation="atlas")
    assert seen(server.asked[1]) == ["Name a country"]
    chile = (Said("user", "Name a country"), Said("assistant", "Chile"))
    await say(pet, "And its capital?", *chile, conversation="atlas")
    assert kept(rows) == ["Name a country", "Chile", "And its capital?", "Santiago"]
    assert kept(rows, replaced=True) == ["Peru"]
    await say(pet, "And its capital?", *PERU, conversation="atlas")  # the first answer again
    assert kept(rows) == ["Name a country", "Peru", "And its capital?", "Lima"]


async def test_two_chats_that_begin_with_the_same_words_end_nothing_of_each_other(pet, server, rows):
    server.script(*map(answer, ("Hello.", "Hello.", "Baa.", "Noted.", "Moo.", "Two.")))
    hello = [Said("user", "hi"), Said("assistant", "Hello.")]
    for _ in range(2):
        await say(pet, "hi")
    await say(pet, "I have a yak", *hello)
    await say(pet, "and a goat", *hello, Said("user", "I have a yak"), Said("assistant", "Baa."))
    await say(pet, "I have a zebu", *hello)
    await say(pet, "how many?", *hello, Said("user", "I have a zebu"), Said("assistant", "Moo."))
    assert kept(rows, replaced=True) == []
    told = rows("SELECT conversation_id, text FROM messages WHERE text != 'hi' ORDER BY seq")
    yak, zebu = (
        next(r["conversation_id"] for r in told if animal in r["text"]) for animal in ("yak", "zebu")
    )
    assert [row["text"] for row in told if row["conversation_id"] == zebu] == [
        *("Hello.", "I have a zebu", "Moo.", "how many?", "Two.")
    ]
    assert yak != zebu


async def test_an_edit_in_the_only_unnamed_chat_with_these_messages_replaces_what_followed(pet, server, rows):
    hello = [Said("user", "hi"), Said("assistant", "Hello.")]
    server.script(answer("Hello."), answer("Baa.", {"content": "Ana has a yak"}), answer("Moo."))
    await say(pet, "hi")
    await say(pet, "I have a yak", *hello)
    await say(pet, "I have a zebu", *hello)
    assert kept(rows) == ["hi", "Hello.", "I have a zebu", "Moo."]
    assert await pet.memories.list(user="ana") == []


async def test_a_chat_that_came_from_elsewhere_ends_nothing_of_one_with_the_same_answer(pet, server, rows):
    server.script(*map(answer, ("Hello.", "Baa.", "Sure.")))
    await say(pet, "hi there")
    await say(pet, "I have a yak", Said("user", "hi there"), Said("assistant", "Hello."))
    await say(pet, "tell me more", Said("user", "good evening"), Said("assistant", "Hello."))
    assert kept(rows, replaced=True) == []
    assert len({row["conversation_id"] for row in rows("SELECT conversation_id FROM messages")}) == 2


async def test_a_question_that_failed_is_not_stored_twice(pet, server, rows, clock):
    server.then = Fail(400)
    with pytest.raises(ModelError):
        await say(pet, "I am ill today")
    server.script(answer("Get well."), answer("Again?"))
    await say(pet, "I am ill today")
    assert kept(rows) == ["I am ill today", "Get well."]
    await say(pet, "I am ill today")
    assert len(kept(rows)) == 4


async def test_an_edit_replaces_what_followed_and_what_was_learned_from_it(pet, server, rows):
    fact = {
        "content": "Ana sails on Sundays",
        "subjects": ["ana"],
        "ttl": None,
        "type": "fact",
        "importance": 0.7,
    }
    server.script(answer("Hello."), answer("Fair winds!", fact), answer("Aye."), answer("I see."))
    start = [Said("user", "hi there"), Said("assistant", "Hello.")]
    branch = [*start, Said("user", "I sail on Sundays"), Said("assistant", "Fair winds!")]
    await say(pet, "hi there", conversation="boat")
    await say(pet, "I sail on Sundays", *start, conversation="boat")
    await say(pet, "with Ben", *branch, conversation="boat")
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana sails on Sundays"]

    await say(pet, "I row on Mondays", *start, conversation="boat")

    assert seen(server.asked[-1]) == ["hi there", "Hello.", "I row on Mondays"]
    assert kept(rows) == ["hi there", "Hello.", "I row on Mondays", "I see."]
    assert await pet.memories.list(user="ana") == []
    await pet.settle()
    assert not [
        hit for hit in await pet.search_memories("sail Sundays", user="ana") if "Sunday" in hit.content
    ]
    assert "I sail on Sundays" not in {one.text for one in await pet.conversations.messages(user="ana")}

    server.script(answer("Welcome back."))
    await say(
        pet, "and with Eve", *branch, Said("user", "with Ben"), Said("assistant", "Aye."), conversation="boat"
    )
    assert kept(rows, replaced=True) == ["I row on Mondays", "I see."]
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana sails on Sundays"]
    await pet.settle()
    assert "Sunday" in str(await pet.search_memories("sail Sundays", user="ana"))


async def test_an_edit_of_the_first_message_replaces_the_whole_chat_and_may_be_taken_back(pet, server, rows):
    yak = {"content": "Ana has a yak"}
    server.script(answer("Baa.", yak), answer("Moo."), answer("Baa again."))
    await say(pet, "I have a yak", conversation="pets")
    await say(pet, "I have a zebu", conversation="pets")
    assert seen(server.asked[-1]) == ["I have a zebu"]
    assert kept(rows) == ["I have a zebu", "Moo."]
    assert await pet.memories.list(user="ana") == []
    first = [Said("user", "I have a yak"), Said("assistant", "Baa.")]
    await say(pet, "what do I have?", *first, conversation="pets")
    assert kept(rows) == ["I have a yak", "Baa.", "what do I have?", "Baa again."]
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana has a yak"]


@pytest.mark.parametrize("name", ["trains", None])
async def test_a_question_that_had_a_template_around_it_when_it_was_asked_stays_said(pet, server, rows, name):
    server.script(*map(answer, ("The office.", "Nobody.", "You.")))
    first = [Said("user", "who pays trains?"), Said("assistant", "The office.")]
    second = [*first, Said("user", "and buses?"), Said("assistant", "Nobody.")]
    await say(pet, "Use this:\nTrains are paid.\nwho pays trains?\n", conversation=name)
    await say(pet, "and buses?\n\nTool `pay` Output: none", *first, conversation=name)
    await say(pet, "and taxis?", *second, conversation=name)
    assert kept(rows, replaced=True) == []
    assert len({row["conversation_id"] for row in rows("SELECT conversation_id FROM messages")}) == 1
    assert seen(server.asked[-1])[:3] == ["who pays trains?", "The office.", "and buses?"]


async def test_a_message_in_a_template_is_shown_in_it_and_stored_without(pet, server, rows):
    server.script(answer("The office."))
    client = ClientTurn((), shown="Trains are paid.\nwho pays?")
    await pet.respond("who pays?", user="ana", client=client)
    assert seen(server.asked[0]) == ["Trains are paid.\nwho pays?"]
    assert kept(rows) == ["who pays?", "The office."]


async def test_examples_and_results_are_shown_in_order_and_not_stored(pet, server, rows):
    server.script(answer("Sunny."))
    examples = (Said("user", "2+2"), Said("assistant", "4"))
    used = (Called("c1", "weather", '{"town": "Lyon"}'), Returned("c1", "sunny"))
    await say(pet, "how is it in Lyon?", *examples, after=used)
    *_, question, call, result = server.asked[0].json["messages"]
    assert seen(server.asked[0]) == ["2+2", "4", "how is it in Lyon?"]
    assert question["content"] == "how is it in Lyon?"
    assert call["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"town": "Lyon"}'}
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c1", "sunny")
    assert kept(rows) == ["how is it in Lyon?", "Sunny."]


async def test_a_long_history_is_cut_by_its_budget_alone(open_pet, server):
    settings = {
        "openai_base_url": server.url,
        "model": "tiny",
        "api": "chat",
        "history_budget": Budget(2_000),
    }
    pet = await open_pet(**settings)
    history = [Said("user" if at % 2 == 0 else "assistant", f"{at:03} {'x' * 36}") for at in range(200)]
    for user in ("ana", None):
        server.script(answer("Hm."))
        await say(pet, "well?", *history, user=user)
        shown = seen(server.asked[-1])
        assert 40 < len(shown) <= 50
        assert shown[-2].startswith("199")


async def test_a_conversation_of_one_person_never_reads_anothers(pet, server, rows):
    server.script(*map(answer, ("Peru", "Lima", "Hm.")))
    await say(pet, "Name a country", user="ben", conversation="same")
    await say(pet, "Name a country", user="ben")
    await say(pet, "And its capital?", *PERU, conversation="same")
    assert "Peru" in seen(server.asked[-1])
    assert [row["user_id"] for row in rows("SELECT user_id FROM messages ORDER BY seq")] == ["ben"] * 4 + [
        "ana"
    ] * 2
    assert kept(rows, replaced=True) == []


async def test_a_recorded_call_of_a_clients_tool_with_a_name_of_ours_replays_the_same(pet, server):
    from agent.replay.replay import replay

    server.script(Call("client_remember", {"text": "tea"}, id="c1"))
    theirs = ClientTool("remember", "Keeps a text", {"type": "object", "properties": {}})
    reply = await pet.respond("keep tea", user="ana", client=ClientTurn((), tools=(theirs,)))
    assert [call.name for call in reply.client_calls] == ["remember"]
    await pet.components.recorder.flush()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert (await replay(pet, whole)).differences == ()


async def test_a_question_goes_on_where_the_model_spoke_beside_its_call(pet, server, rows):
    server.script(Say("Let me look.", (Call("clock", {}, id="c1"),)), answer("Noon."))
    clock = ClientTool("clock", "The time", {"type": "object", "properties": {}})
    await pet.respond("what time is it?", user="ana", client=ClientTurn((), tools=(clock,)))
    used = (Said("assistant", "Let me look."), Called("c1", "clock", "{}"), Returned("c1", "12:00"))
    await say(pet, "what time is it?", after=used)
    assert kept(rows) == ["what time is it?", "Noon."]


def transcript(*told: str, clock: Any) -> list[Message]:
    """Messages: an answer begins with a capital letter, `x@` is hidden, `x<A1` follows A1, `x<` nothing."""
    found: list[Message] = []
    ids: dict[str, str] = {"": ""}
    for at, one in enumerate(told):
        text, *follows = one.rstrip("@").split("<")
        hidden = one.endswith("@")
        role, before = role_of(text), ids[follows[0]] if follows else None
        message = Message(str(at), "c", role, "ana", text, clock(), gone=hidden, follows=before)  # type: ignore[arg-type]
        found.append(message)
        ids[text] = message.id
    return found


def role_of(text: str) -> str:
    return "assistant" if text[0].isupper() else "user"


def list_of(*told: str) -> list[Key]:
    return [(role_of(text), text) for text in told]


@pytest.mark.parametrize(
    ("stored", "sent", "pairs"),
    [
        ("q1 A1 q2 A2", "q1 A1 q2 A2 q3", "0 1 2 3 -"),
        ("q1 A1 q2 A2", "q1 A1 x", "0 1 -"),
        ("q1 A1 ok Sure q2 A2 ok Great", "ok Great q3", "6 7 -"),  # trimmed
        ("ok Sure q1 A1", "q1 A1 ok", "2 3 -"),  # trimmed, and the question was said before
        ("ok Sure q1 A1 ok Sure", "ok Sure q2", "4 5 -"),
        ("ok Sure q1 A1 ok Sure q2 A2", "ok Sure x", "0 1 -"),  # nothing else tells where
        ("wrapped A1 q2 A2", "q1 A1 q2 A2 q3", "0 1 2 3 -"),  # a template
        ("q1 A1 wrapped A2", "q1 A1 q2 A2 q3", "0 1 2 3 -"),
        ("q1 A1 wrapped A2", "q2 A2 q3", "2 3 -"),
        ("q1 A1 q2 A2 q3 A3", "q1 A1 q3 A3 q4", "0 1 4 5 -"),  # one was deleted
        ("q1 A1 q2 A2 q3 A3", "q1 A1 q3", "0 1 -"),  # an edit, whatever was asked later
        ("q1 A1 q2 A2", "q1 Edited q2 A2 q3", "0 - 2 3 -"),
        ("q1 A1 q2 A2", "x X q1 A1 q2 A2 q3", "- - 0 1 2 3 -"),  # an example
        ("q1 A1 q2 A2", "q1 A1 forgotten Gone q2 A2 q3", "0 1 - - 2 3 -"),
        ("q1 A1 q2@ A2@ x<A1 X", "q1 A1 q2 A2 q3", "0 1 2 3 -"),  # an older branch
        ("q1 A1 q2@ A2@ x<A1@ X@ y<A1 Y", "q1 A1 x X q3", "0 1 4 5 -"),
        ("q1 A1 q2 A2 x<A1@ X@ q3<A2 A3", "q1 A1 x X q4", "0 1 4 5 -"),  # left twice
        ("q1 A1 wrapped@ A2@ x<A1 X", "q1 A1 q2 A2 q3", "0 1 2 3 -"),
        ("q1@ A1@ x< X", "q1 A1 q2", "0 1 -"),
        ("q1 A1 q2 A2 x<A1@ X@ ok@ Sure@", "q1 A1 q2 A2 ok", "0 1 2 3 -"),  # the `ok` to X
        ("q1 A1 q2 A2 x<A1@ X@ ok@ Sure@", "q1 A1 q2 A2 ok Sure q3", "0 1 2 3 - - -"),
        ("q1 A1 ok Sure x<A1@ X@ ok@ Sure@", "q1 A1 x X ok Sure q2", "0 1 4 5 6 7 -"),
        ("q1 A1@ A2<q1", "q1 A1 q2", "0 1 -"),
        ("q1 A1@ q2@ A3@ A2<q1", "q1 A2 q2", "0 4 -"),
        ("q1 A1 q2 A2 q3 A3@ A4<q3", "q1 A1 q3 A3 q4", "0 1 4 5 -"),  # an older answer, and one was deleted
        ("q1 A1", "x X y", "- - -"),
    ],
)
def test_a_clients_list_is_laid_beside_the_transcript_by_position(clock, stored, sent, pairs):
    found = pairs_of(transcript(*stored.split(), clock=clock), list_of(*sent.split()))
    assert " ".join(str(found.get(at, "-")) for at in range(len(sent.split()))) == pairs


@pytest.mark.parametrize("size", [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sent", [["ok"], ["ok", "Sure"], ["ok", "Sure", "x"], ["x"]])
@pytest.mark.parametrize("stored", [["ok"], ["ok@", "Sure@", "ok", "Sure"]])
def test_long_lists_of_the_same_words_are_compared_in_linear_time(clock, stored, sent, size):
    ours = transcript(*(stored * 300)[:300], clock=clock)
    short, long = (list_of(*(sent * length)[:length]) for length in (size, 4 * size))
    assert steps_of(pairs_of, ours, long) < 6 * steps_of(pairs_of, ours, short)


class Chat:
    """A client with a tree of messages, of which it sends one path, and the transcript that follows it."""

    def __init__(self) -> None:
        self.stored: list[Message] = []
        self.path: list[str] = []
        self.paths: list[list[str]] = [[]]

    def ask(self, question: str, reply: str, *, wrapped: str = "", trimmed: int = 0) -> None:
        """Ask after the path; the client has the question without its template from then on."""
        sent = list_of(*self.path[trimmed:], wrapped + question)
        found = compared(self.stored, pairs_of(self.stored, sent), len(sent) - 1)
        hide = {one.id for one in self.stored if one.id in found.hidden}
        self.stored = [self._with(one, one.id in hide, one.id in found.back) for one in self.stored]
        asked = found.question or self._store(wrapped + question, found.follows)
        self._store(reply, asked)
        self.path = [*self.path, question, reply]
        self.paths.append(self.path)

    @staticmethod
    def _with(one: Message, hide: bool, back: bool) -> Message:
        return replace(one, gone=hide or (one.gone and not back))

    def _store(self, text: str, follows: str | None) -> str:
        id = str(len(self.stored))
        self.stored.append(Message(id, "c", role_of(text), "ana", text, EVER, follows=follows))  # type: ignore[arg-type]
        return id

    def current(self) -> list[str]:
        return [one.text.removeprefix("t:") for one in self.stored if not one.gone]


steps = st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 9)), min_size=1, max_size=12)


@given(steps)
def test_what_holds_is_the_path_that_the_client_is_on(told):
    chat = Chat()
    for at, (branch, wrapped, trimmed) in enumerate(told):
        chat.path = chat.paths[branch % len(chat.paths)]
        goes_on = chat.path == chat.current()
        cut = 2 * (trimmed % max(1, len(chat.path) // 2)) if goes_on else 0
        chat.ask(f"q{at}", f"A{at}", wrapped="t:" * wrapped, trimmed=cut)
        assert chat.current() == chat.path


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["ok", "no"]), st.sampled_from(["Sure", "Hm"]))))
def test_a_path_of_repeated_words_is_followed_too(told):
    chat = Chat()
    chat.ask("hello", "Hello")
    for branch, question, reply in told:
        chat.path = chat.paths[1 + branch % (len(chat.paths) - 1)]
        if [*chat.path, question, reply] in chat.paths:
            continue  # by its words alone nobody can tell it from the one before
        chat.ask(question, reply)
        assert chat.current() == chat.path
