"""Forgetting in other languages than English: what goes, what stays and what is offered, by ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hachi.testing import AnsweringModel
from memory.audience import Place
from memory.people.profile_entries import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

CHANNEL = "acme/general"
SAID = [
    (None, "Mein Türcode ist 4711 und ich mag Tee", "Anas Türcode ist 4711", "Ana mag Tee", "4711"),
    (CHANNEL, "İzmir'de yaşıyorum, keman çalıyorum", "Ana İzmir'de yaşıyor", "Ana keman çalıyor", "İzmir"),
    (None, "أسكن في حلب وأعزف على العود", "آنا تسكن في حلب", "آنا تعزف على العود", "حلب"),
    (
        CHANNEL,
        "大阪に住んでいます。猫が二匹います。",
        "アナは大阪に住んでいる",
        "アナは猫を飼っている",
        "大阪",
    ),
]
"""Where it is said; the message; two facts of it; what nobody reads once the first is forgotten."""


@pytest.mark.parametrize(("place", "said", "fact", "other", "secret"), SAID)
async def test_the_fact_goes_with_what_tells_it_and_the_rest_stays(
    open_pet: Callable[..., Any], place: str | None, said: str, fact: str, other: str, secret: str
) -> None:
    learned = [{"content": content, "importance": 0.9} for content in (fact, other)]
    model = AnsweringModel({"message": "…", "memories": learned}, f"{fact}.", "…", "…")
    pet = await open_pet(given=model, consolidate="off")
    at: dict[str, Any] = {"user": "ana", "place": place}
    await pet.respond(said, **at, author="Ana", settle=True)
    [message] = [one for one in await pet.conversations.messages(user="ana", place=place) if one.text == said]
    await rest_on(pet, message.id, other, secret, Place.parse(place))
    await pet.respond("?", user="ben" if place else "ana", place=place, author="Ben", settle=True)
    await pet.respond("!", user="ben", place=CHANNEL, author="Ben", settle=True)
    [memory] = [one for one in await pet.memories.list(**at) if one.content == fact]
    assert (await pet.memories.find_to_forget(fact, **at))[0].id == memory.id

    receipt = await pet.memories.forget(memory.id, **at)

    assert (receipt.messages, receipt.replies) == (1, 2)
    assert {one.content for one in await pet.memories.list(**at)} == {other}
    for user, where in (("ana", None), ("ana", place), ("ben", CHANNEL)):
        read = [m.text for m in await pet.conversations.messages(user=user, place=where)]
        read += [hit.content for hit in await pet.search_memories(fact, user=user, place=where)]
        assert not any(secret in text for text in read)
    assert "!" in {m.text for m in await pet.conversations.messages(user="ben", place=CHANNEL)}
    assert {f"{one.kind} {one.content}" for one in receipt.offered} - {f"memory {other}"} == {
        f"entry location: {secret}",
        f"task {other} ({secret})",
    }
    for one in receipt.offered:
        await pet.memories.forget(one.id, **at, kind=one.kind)
    assert secret not in str(await pet.conversations.export(user="ana"))
    await pet.memories.undo_forget(str(receipt.undo_id), user="ana")
    assert fact in {one.content for one in await pet.memories.list(**at)}


async def rest_on(pet: Any, message: str, other: str, secret: str, place: Place) -> None:
    """Store an entry of the profile and a task that the message alone states."""
    entry = Entry("profile.location", "", secret, pet.clock(), frozenset({message}))
    await pet.components.profiles.merge("ana", place, [entry])
    task = {"now": pet.clock(), "place": place, "message_id": message}
    await pet.components.tasks.update("ana", f"{other} ({secret})", **task)
