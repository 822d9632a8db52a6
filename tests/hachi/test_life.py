"""Opening and closing: without a block, twice, too late, from another event loop, and without asyncio."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

import hachi.sync
from hachi import BadInput, Companion, ModelRejected, ModelUnavailable, NotFound, NotOpen
from hachi.testing import AnsweringModel, IsolatedSettings

Opened = Callable[..., AbstractAsyncContextManager[Companion]]

CALLS: list[Callable[[Companion], Any]] = [
    lambda pet: pet.respond("hello", user="ana"),
    lambda pet: anext(pet.stream("hello", user="ana").events()),
    lambda pet: pet.settle(),
    lambda pet: pet.remember("Ana rows", user="ana"),
    lambda pet: pet.search_memories("rows", user="ana"),
    lambda pet: pet.memories.list(user="ana"),
    lambda pet: pet.tasks.update("row", user="ana"),
    lambda pet: pet.documents.search("rows"),
    lambda pet: pet.people.context(user="ana"),
    lambda pet: pet.conversations.messages(user="ana"),
    lambda pet: pet.admin.purge(),
    lambda pet: pet.traces.get("trace_0123456789"),
]


@pytest.fixture
def settings(home: Path, light_embedder: None) -> IsolatedSettings:
    return IsolatedSettings(home=home, embedder="bundled")


async def test_a_companion_may_be_started_and_closed_without_a_block(settings: IsolatedSettings) -> None:
    pet = await Companion.start(settings, periodic_jobs=False)
    await pet.remember("Ana rows", user="ana")
    await pet.close()
    await pet.close()

    for call in CALLS:
        with pytest.raises(NotOpen, match="the companion is closed; open another one"):
            await call(pet)


async def test_another_event_loop_is_refused_at_once(hachi_companion: Opened) -> None:
    async with hachi_companion() as pet:
        await pet.respond("hello", user="ana")
        for call in [*CALLS, lambda pet: pet.close()]:

            async def elsewhere(call: Callable[[Companion], Any] = call) -> Any:
                return await call(pet)

            with pytest.raises(NotOpen, match=r"another event loop; .* asyncio\.run_coroutine_threadsafe"):
                await asyncio.to_thread(asyncio.run, elsewhere())
        loop = asyncio.get_running_loop()
        back = await asyncio.to_thread(
            lambda: asyncio.run_coroutine_threadsafe(pet.respond("hello", user="ana"), loop).result(30)
        )
    assert back.message == "I see."


def test_a_stream_may_be_asked_for_where_no_loop_runs(settings: IsolatedSettings) -> None:
    with hachi.sync.Companion.open(settings, periodic_jobs=False) as pet:
        assert aiter(pet.inner.stream("hello", user="ana").events())


def test_a_loop_that_ends_before_the_companion_is_closed_ends_quietly_and_loses_nothing(
    settings: IsolatedSettings, caplog: pytest.LogCaptureFixture
) -> None:
    async def leave() -> None:
        pet = await Companion.start(settings)
        await pet.respond("My boat is called Pollux", user="ana", settle=True)

    asyncio.run(leave())
    assert caplog.messages == []
    with hachi.sync.Companion.open(settings, periodic_jobs=False) as pet:
        assert [memory.content for memory in pet.memories.list(user="ana")] != []


# Without asyncio.


@pytest.fixture
def pet(settings: IsolatedSettings) -> Iterator[hachi.sync.Companion]:
    model = AnsweringModel({"message": "Hello.", "memories": []}, then={"message": "I see.", "memories": []})
    with hachi.sync.Companion.open(settings, model=model, periodic_jobs=False) as opened:
        yield opened


def test_each_call_waits_for_its_result(pet: hachi.sync.Companion) -> None:
    assert pet.respond("hello", user="ana").message == "Hello."
    stream = pet.stream("and now?", user="ana")
    assert "".join(stream) == stream.reply.message == "I see."
    kept = pet.remember("Ana rows", user="ana")
    assert [memory.id for memory in pet.memories.list(user="ana")] == [kept.id]
    assert pet.search_memories("rows", user="ana")[0].id == kept.id
    assert pet.run(pet.inner.memories.get(str(kept.id), user="ana")).content == "Ana rows"
    with pytest.raises(NotFound):
        pet.memories.get("deadbeef", user="ana")
    assert pet.settle()


def test_a_stream_that_is_left_early_ends_its_turn(pet: hachi.sync.Companion) -> None:
    for _ in pet.stream("hello", user="ana"):
        break
    assert pet.respond("hello", user="ana").message == "I see."


def test_a_closed_one_refuses_and_one_that_cannot_open_leaves_no_thread(settings: IsolatedSettings) -> None:
    pet = hachi.sync.Companion.start(settings, periodic_jobs=False)
    pet.close()
    pet.close()
    with pytest.raises(NotOpen, match="the companion is closed"):
        pet.memories.list(user="ana")
    with pytest.raises(BadInput):
        hachi.sync.Companion.start(settings, tools=["nothing"])  # type: ignore[list-item]


@pytest.mark.parametrize("group", ["memories", "tasks", "documents"])
def test_a_group_has_every_method_of_the_other_door(pet: hachi.sync.Companion, group: str) -> None:
    theirs, here = type(getattr(pet.inner, group)), type(getattr(pet, group))
    waited = {name for name, _ in inspect.getmembers(theirs, inspect.iscoroutinefunction)}
    assert {name for name in waited if name[0] != "_"} == {name for name in vars(here) if name[0] != "_"}


def test_a_call_on_the_companions_own_loop_is_refused_and_does_not_wait_for_itself(
    settings: IsolatedSettings,
) -> None:
    with hachi.sync.Companion.open(settings, periodic_jobs=False) as opened:

        async def ask() -> None:
            opened.memories.list(user="ana")

        with pytest.raises(NotOpen, match="own event loop"):
            opened.run(ask())


async def test_an_error_of_hachis_that_an_own_model_raises_stays_what_it_is(
    settings: IsolatedSettings,
) -> None:
    model = AnsweringModel(ModelRejected("no key"), RuntimeError("no\nluck"))
    async with Companion.open(settings, model=model, periodic_jobs=False) as pet:
        with pytest.raises(ModelRejected, match="no key"):
            await pet.respond("hello", user="ana")
        with pytest.raises(ModelUnavailable, match=r"^AnsweringModel failed: RuntimeError: no luck$"):
            await pet.respond("hello", user="ana")
