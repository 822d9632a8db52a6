"""The companion as a program sees it: talking, streaming, memories, faults, and what is loaded when."""

import asyncio
import gc
import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from qdrant_server import QdrantServer
from scripted_server import Call, Fail, Hang, answer, divided

from agent.errors import BadInput, ModelUnavailable, SettingsError
from hachi import Companion, Place, Settings
from hachi.testing import AnsweringModel
from memory.errors import EmbedderUnavailable, NotFound, StoreUnavailable
from memory.index.embedders.openai import OpenAIEmbedder


def says(*messages: str) -> ScriptedModel:
    return ScriptedModel([[assistant_message(answer(message).text)] for message in messages])


# Streaming.


async def test_a_stream_brings_the_message_in_pieces_and_the_reply_afterwards(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed)
    message = 'A "quoted" line,\nthen {braces}, and 日本 😀 to the end.'
    server.script(Call("get_recent_memories", {"limit": 1}), answer(message, {"content": "Ana likes quotes"}))

    stream = pet.stream("say something long", user="ana", settle=True)
    pieces = [piece async for piece in stream]

    assert len(pieces) > 4
    assert "".join(pieces) == stream.reply.message == message
    assert [kept.content for kept in stream.reply.memories] == ["Ana likes quotes"]
    assert [call.name for call in stream.reply.tools] == ["get_recent_memories"]


async def test_a_stream_is_read_once_and_has_its_reply_afterwards(open_pet, rows):
    pet = await open_pet(given=says("Hello.", "Hello stranger."))
    async with pet.stream("nobody reads this", user="ana"):
        pass
    assert rows("SELECT * FROM messages") == [], "an unread stream takes no turn"

    stream = pet.stream("hi", user="ana")
    with pytest.raises(BadInput, match="read to the end"):
        _ = stream.reply
    async for _ in stream:
        with pytest.raises(BadInput, match="read to the end"):
            _ = stream.reply
    assert stream.reply.message == "Hello."
    with pytest.raises(BadInput, match="read once"):
        _ = [piece async for piece in stream]
    assert len(rows("SELECT * FROM messages")) == 2

    anonymous = pet.stream("hi", user=None)
    assert "".join([piece async for piece in anonymous]) == anonymous.reply.message == "Hello stranger."
    assert len(rows("SELECT * FROM messages")) == 2, "nothing of an anonymous turn is stored"


async def test_closing_a_stream_early_stops_the_turn_and_leaves_the_companion_usable(
    pet_at, streamed, server, rows
):
    pet = await pet_at(streamed)
    server.script(Hang(answer("Hello there, Ana, how are you today").text, 3), answer("Here."))

    async with pet.stream("hi", user="ana") as stream:
        async for piece in stream:
            assert piece
            break

    await asyncio.wait_for(server.left.wait(), 60)
    with pytest.raises(BadInput, match="read to the end"):
        _ = stream.reply
    assert [row["role"] for row in rows("SELECT role FROM messages")] == ["user"]
    reply = await pet.respond("still there?", user="ana")
    assert reply.message == "Here."


async def test_a_stream_closed_while_a_tool_runs_stores_nothing_by_halves(open_pet, rows, monkeypatch):
    remembering = function_call("remember", {"content": "Ana skis"}, call_id="c1")
    pet = await open_pet(given=ScriptedModel([[remembering], *[[assistant_message("Yes.")]] * 2]))
    begun, over = asyncio.Event(), asyncio.Event()
    embed = pet.components.embedder.embed

    async def stuck(texts: Any) -> Any:
        begun.set()
        await over.wait()
        return await embed(texts)

    with monkeypatch.context() as patch:
        patch.setattr(pet.components.embedder, "embed", stuck)
        stream = pet.stream("I ski", user="ana")
        reading = asyncio.create_task(anext(aiter(stream)))
        await asyncio.wait_for(begun.wait(), 60)
        await stream.aclose()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert rows("SELECT * FROM memories") == []
        over.set()

    assert (await pet.respond("hi", user="ana")).message == "Yes."


async def test_a_fault_reaches_the_reader_of_a_stream(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed, model_retries=0)
    server.script(Fail(500))
    stream = pet.stream("hi", user="ana")

    with pytest.raises(ModelUnavailable):
        _ = [piece async for piece in stream]

    with pytest.raises(ModelUnavailable):
        _ = stream.reply


async def test_a_fault_after_the_reader_has_left_is_not_cried_out(open_pet, caplog, monkeypatch):
    pet = await open_pet(given=says("A first sentence."))

    async def broken(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("no room left")

    reading = aiter(pet.stream("hi", user="ana"))
    assert await anext(reading)
    monkeypatch.setattr(pet.components.transcript, "append", broken)
    await asyncio.sleep(0.1)
    await reading.aclose()
    del reading
    gc.collect()

    assert "never retrieved" not in caplog.text


# Talking to several.


async def test_turns_at_the_same_time_keep_their_own(open_pet, rows):
    def echo(call: Any) -> Any:
        return [assistant_message(answer(f"To {divided(call.input[-1]['content'])[1]}").text)]

    pet = await open_pet(given=ScriptedModel([ModelStep.respond(echo)] * 8))

    replies = await asyncio.gather(*[pet.respond(f"number {n}", user=f"user {n}") for n in range(8)])

    assert [reply.message for reply in replies] == [f"To number {n}" for n in range(8)]
    assert len(rows("SELECT * FROM messages")) == 16
    assert len({reply.trace_id for reply in replies}) == 8


async def test_parallel_turns_that_learn_the_same_store_it_once(open_pet):
    same = answer("Oh!", {"content": "Ana moves to Oslo"}).text
    pet = await open_pet(given=ScriptedModel([[assistant_message(same)]] * 5))

    replies = await asyncio.gather(
        *[pet.respond("I move to Oslo", user="ana", settle=True) for _ in range(5)]
    )
    await pet.settle()

    actions = [kept.action for reply in replies for kept in reply.memories]
    assert actions.count("add") <= 1
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana moves to Oslo"]


async def test_conversations_have_histories_of_their_own(pet_at, first_way, server):
    pet = await pet_at(first_way)
    server.script(*[answer("Hm.")] * 6)

    await pet.respond("hi all", user="u1", author="Ana", place="acme/general")
    await pet.respond("hi Ana", user="u2", author="Bob", place=Place(("acme", "general")))
    await pet.respond("alone", user="u2", author="Bob")
    await pet.respond("one", user="ana", conversation="c1")
    await pet.respond("two", user="ana", conversation="c2")
    await pet.respond("three", user="bob", conversation="c1")

    in_the_place = [("user", "Ana: hi all"), ("assistant", "Hm."), ("user", "Bob: hi Ana")]
    assert [asked.conversation for asked in server.asked[1:]] == [
        in_the_place,
        [("user", "alone")],
        [("user", "one")],
        [("user", "two")],
        [("user", "three")],
    ]


# Memories.


async def test_memories_are_remembered_found_changed_and_deleted(open_pet, clock):
    pet = await open_pet(max_memories=1)
    then = clock() - timedelta(days=365)
    added = await pet.remember("Ana skis in Verbier", user="ana", subjects=[" Ana ", "SKI", "ski"], ttl="30d")
    memory = await pet.memories.get(str(added.id)[:8], user="ana")
    assert (memory.content, memory.subjects) == ("Ana skis in Verbier", ("ana", "ski"))
    assert (memory.source, memory.expires_at) == ("note", clock() + timedelta(days=30))
    [hit] = await pet.search_memories("skiing in Verbier", user="ana", limit=1)
    assert (hit.id, hit.kind) == (added.id, "memory")
    assert await pet.search_memories("skiing", user="ana", subjects=["cooking"]) == []
    for text in ("half \ud83d of a pair", "\x00", "", "tea \x00 \u202e", "x" * 50_000):
        assert isinstance(await pet.search_memories(text, user="ana"), list)

    changed = await pet.memories.update(str(added.id), "Ana skis in Zermatt", user="ana", importance=0.9)
    assert (changed.action, changed.target_id) == ("replace", added.id)
    now = await pet.memories.get(str(changed.id), user="ana")
    assert (now.subjects, now.importance) == (("ana", "ski"), 0.9)
    [step] = await pet.memories.history(str(changed.id), user="ana")
    assert (step.old_content, step.new_content) == ("Ana skis in Verbier", "Ana skis in Zermatt")
    for act in (
        pet.memories.get(str(changed.id), user="bob"),
        pet.memories.forget(str(changed.id), user="bob"),
        pet.memories.update(str(changed.id), "Bob skis", user="bob"),
        pet.memories.undo(str(changed.id), user="bob"),
        pet.memories.get(str(changed.id), user="ana", place="acme/general"),
    ):
        with pytest.raises(NotFound):
            await act
    await pet.memories.undo(str(changed.id), user="ana")
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana skis in Verbier"]
    assert (await pet.memories.forget(str(added.id), user="ana")).content == "Ana skis in Verbier"

    old = await pet.remember("Ana moved to Oslo", user="ana", said_at=then)
    over = await pet.remember("Ana has the flu", user="ana", said_at=then, ttl="7d")
    assert (await pet.memories.get(str(old.id), user="ana")).created_at == then
    assert (over.action, over.id, over.reason) == ("ignore", None, "it had already expired")
    await pet.remember("Ana saw a heron", user="ana", importance=0.4)
    [leaving] = await pet.admin.preview_purge()
    assert leaving.memory.content == "Ana saw a heron"
    assert [gone.memory.content for gone in await pet.admin.tidy()] == ["Ana saw a heron"]
    await pet.remember("Ana is in Rome", user="ana", ttl="1h")
    assert await pet.admin.purge() == []
    clock.advance(hours=1)
    assert [memory.content for memory in await pet.admin.purge()] == ["Ana is in Rome"]


# Faults.


async def test_an_index_server_that_is_down_is_named_and_searches_go_on(open_pet, rows, caplog):
    pet = await open_pet(given=says("Hello."), qdrant_url="http://127.0.0.1:9")

    kept = await pet.remember("Ana likes tea", user="ana")
    [hit] = await pet.search_memories("tea", user="ana")
    reply = await pet.respond("hi", user="ana")

    assert (kept.action, hit.content, reply.message) == ("add", "Ana likes tea", "Hello.")
    assert len(rows("SELECT * FROM messages")) == 2
    assert "the memory index at http://127.0.0.1:9 does not answer" in caplog.text


@pytest.fixture
async def qdrant() -> AsyncIterator[QdrantServer]:
    async with QdrantServer.running() as running:
        yield running


async def test_two_installations_on_one_server_leave_each_other_alone(open_pet, qdrant, tmp_path, home):
    """Also where one began as a copy of the other."""
    first = await open_pet(qdrant_url=qdrant.url)
    await first.remember("Ana likes tea", user="ana")
    second = await open_pet(home=shutil.copytree(home, tmp_path / "copy"), qdrant_url=qdrant.url)
    await second.remember("Ben likes coffee", user="ben")
    await second.admin.reindex()
    for pet, count in ((first, 1), (second, 2)):
        await pet.admin.catch_up()
        assert await pet.admin.health.indexed() == count


async def test_a_fact_does_not_wait_for_a_server_that_hangs(open_pet, qdrant):
    pet = await open_pet(qdrant_url=qdrant.url)
    await pet.remember("Ana likes tea", user="ana")
    qdrant.hang()
    began = time.monotonic()
    assert (await pet.remember("The office is in Lyon", user="ben")).action == "add"
    assert time.monotonic() - began < 2.5
    qdrant.go_on()
    assert (await pet.search_memories("office", user="ben"))[0].content == "The office is in Lyon"


async def test_no_lower_error_escapes_where_the_database_is_broken(open_pet, home, rows):
    pet = await open_pet(given=says("Hello."))
    kept = await pet.remember("Ana likes tea", user="ana")
    for table in ("messages", "memories", "memory_owners", "work", "tasks", "conversations"):
        rows(f"ALTER TABLE {table} RENAME TO {table}_away")

    acts: dict[str, Callable[[], Awaitable[Any]]] = {
        "respond": lambda: pet.respond("hi", user="ana"),
        "stream": lambda: anext(aiter(pet.stream("hi", user="ana"))),
        "search_memories": lambda: pet.search_memories("tea", user="ana"),
        "remember": lambda: pet.remember("Ana skis", user="ana"),
        "memories": lambda: pet.memories.list(user="ana"),
        "memory": lambda: pet.memories.get(kept.id, user="ana"),
        "update_memory": lambda: pet.memories.update(kept.id, "Ana skis", user="ana"),
        "delete_memory": lambda: pet.memories.forget(kept.id, user="ana"),
        "history": lambda: pet.memories.history(kept.id, user="ana"),
        "import_messages": lambda: pet.conversations.import_messages([MESSAGE], user="ana"),
        "purge": pet.admin.purge,
    }
    for name, act in acts.items():
        with pytest.raises(StoreUnavailable) as raised:
            await act()
        assert "\n" not in str(raised.value), name
        assert str(home) in str(raised.value), name
    await pet.settle()  # waits for nothing that cannot be had


MESSAGE = {"author": "Ana", "text": "hi", "sent_at": "2025-05-01T10:00:00+00:00"}


async def test_opening_says_what_is_wrong(home, tmp_path):
    (tmp_path / "file").write_text("in the way")

    for fault, hint, settings in (
        (StoreUnavailable, "HACHI_HOME", {"home": tmp_path / "file" / "home"}),
        (EmbedderUnavailable, "HACHI_EMBEDDER", {"home": home, "embedder": "telepathy"}),
    ):
        with pytest.raises(fault, match=hint):
            async with Companion.open(Settings.load(**{"embedder": "bundled"} | settings)):
                pass
    (home / "hachi.db").write_bytes(b"this is no database, it is a text of some length" * 50)
    with pytest.raises(StoreUnavailable, match="no database, or a damaged one"):
        async with Companion.open(Settings(home=home, embedder="bundled")):
            pass


async def test_a_model_that_is_not_named_is_said_at_the_first_turn(open_pet):
    pet = await open_pet(openai_base_url="http://127.0.0.1:9/v1")

    for _ in range(2):
        with pytest.raises(SettingsError, match="HACHI_MODEL"):
            await pet.respond("hi", user="ana")
    assert await pet.memories.list(user="ana") == []


# Opening.


async def test_a_database_url_may_name_another_file(home, tmp_path, light_embedder):
    settings = Settings(home=home, embedder="bundled", database_url=f"sqlite:///{tmp_path / 'other.db'}")

    async with Companion.open(settings, periodic_jobs=False) as pet:
        await pet.remember("Ana likes tea", user="ana")

    with sqlite3.connect(tmp_path / "other.db") as connection:
        assert connection.execute("SELECT content FROM memories").fetchall() == [("Ana likes tea",)]
    connection.close()


def test_opening_a_companion_loads_neither_the_agents_sdk_nor_openai(home):
    script = """
import asyncio, json, pathlib, sys
import agent
from hachi import Companion, Place, Reply, Settings
from agent.types import TurnRequest
first = sorted(sys.modules)
async def main():
    async with Companion.open(Settings(home=pathlib.Path(sys.argv[1]), embedder="bundled")) as pet:
        await pet.remember("Ana likes tea", user="ana")
        return [memory.content for memory in await pet.memories.list(user="ana")]
print(json.dumps([asyncio.run(main()), first, sorted(sys.modules)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(home)], capture_output=True, text=True, check=True, timeout=60
    )

    contents, at_import, after = json.loads(done.stdout)
    assert contents == ["Ana likes tea"]
    assert not {"agents", "openai", "opentelemetry.sdk"} & set(after)
    assert not {"wordllama", "qdrant_client", "Stemmer", "alembic", "apscheduler"} & set(at_import)
    assert done.stderr == ""


async def test_a_dead_embedder_stops_nothing_but_searching_by_meaning(open_pet, monkeypatch):
    monkeypatch.setattr("memory.index.embedders.openai.RETRIES", 0)
    asked = []
    embed = OpenAIEmbedder._request

    async def counted(self: OpenAIEmbedder, texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return await embed(self, texts)

    monkeypatch.setattr(OpenAIEmbedder, "_request", counted)
    pet = await open_pet(
        given=AnsweringModel(),
        embedder="openai:mine",
        openai_api_key="k",
        openai_base_url="http://127.0.0.1:9/v1",
    )
    await pet.remember("Ana keeps ferrets", user="ana")
    await pet.components.tasks.update("ana", "buy hay", "open", place=Place(), now=pet.clock())
    for text in ("hello", "what do I keep?", "bye"):
        assert (await pet.respond(text, user="ana")).message == "I see."
    await pet.settle()
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana keeps ferrets"]
    assert len(asked) == 1, "it is left alone after its first failure"
    assert pet.admin.health.unavailable == ["embedder"]
