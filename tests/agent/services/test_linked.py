"""Linked accounts are one person in private: found, listed, forgotten, corrected and exported from any."""

from typing import Any

import pytest

from agent.errors import BadInput
from hachi import Companion
from hachi.testing import AnsweringModel, tool_call
from memory.errors import NotFound
from memory.people.links import NotLinked
from tests.agent.conftest import OpenPet

DISCORD, SLACK, GENERAL = "discord:1", "slack:T:U", "acme/general"
BOAT, KITE = "Ana's boat is called Gull", "Ana's kite is red"


@pytest.fixture
def model() -> AnsweringModel:
    return AnsweringModel()


@pytest.fixture
async def pet(open_pet: OpenPet, model: AnsweringModel) -> Companion:
    """Ana has told one thing on each account."""
    pet = await open_pet(given=model)
    for user, fact in ((DISCORD, BOAT), (SLACK, KITE)):
        model.answers = [{"message": "I see.", "memories": [{"content": fact}]}]
        await pet.respond(f"Note that {fact}", user=user, author="Ana", settle=True)
    return pet


async def link(pet: Companion) -> None:
    await pet.people.link(await pet.people.link_code(user=DISCORD), user=SLACK)


async def known(pet: Companion, user: str, **given: Any) -> set[str]:
    return {memory.content for memory in await pet.memories.list(user=user, **given)}


async def test_each_finds_and_lists_what_the_other_told_until_they_are_parted(
    pet: Companion, model: AnsweringModel
) -> None:
    assert await known(pet, SLACK) == {KITE}
    await link(pet)
    for user in (DISCORD, SLACK):
        assert await known(pet, user) == {BOAT, KITE}
        found = {hit.content for hit in await pet.search_memories("boat kite", user=user)}
        assert {BOAT, KITE} <= found
        said = str(await pet.conversations.messages(user=user))
        assert BOAT in said
        assert KITE in said
        assert {fact.content for fact in (await pet.people.context(user=user)).long_term_facts} == {
            BOAT,
            KITE,
        }
    assert await known(pet, SLACK, place=GENERAL) == set(), "never in a place"
    model.answers = [tool_call("search_memories", query="what did I say of my boat?"), "It is called Gull."]
    await pet.respond("How is my boat called?", user=SLACK, settle=True)
    assert f"Ana (in Discord): Note that {BOAT}" in model.shown()
    read = str(await pet.memories.excerpts("what did I say of my boat?", user=SLACK))
    assert ("in Discord" in read, "discord 1" in read) == (True, False), "nor does another agent read an id"
    await pet.people.unlink(user=DISCORD)
    assert (await known(pet, DISCORD), await known(pet, SLACK)) == ({BOAT}, {KITE})
    model.answers = [tool_call("search_memories", query="what did I say of my boat?"), "I do not know."]
    await pet.respond("And my boat?", user=SLACK, settle=True)
    assert "Note that" not in str([hit.content for hit in await pet.search_memories("Gull", user=SLACK)])


async def test_each_forgets_corrects_and_brings_back_what_the_other_told(pet: Companion) -> None:
    await link(pet)
    boat, kite = [
        next(m for m in await pet.memories.list(user=SLACK) if m.content == one) for one in (BOAT, KITE)
    ]
    preview = await pet.memories.preview_forget(boat.id, user=SLACK)
    assert preview.messages
    receipt = await pet.memories.forget(boat.id, user=SLACK)
    assert (receipt.messages, receipt.replies) == (1, 1)
    assert await known(pet, DISCORD) == {KITE}
    assert (await pet.memories.undo_forget(str(receipt.undo_id), user=SLACK)).content == BOAT
    [candidate] = await pet.memories.find_to_forget("the boat called Gull", user=SLACK)
    assert candidate.content == BOAT
    await pet.memories.update(kite.id, "Ana's kite is blue", user=DISCORD)
    assert await known(pet, SLACK) == {BOAT, "Ana's kite is blue"}
    await pet.people.unlink(user=SLACK)
    assert await known(pet, SLACK) == {"Ana's kite is blue"}, "it is still said on that account"
    with pytest.raises(NotFound):
        await pet.memories.forget(boat.id, user=SLACK)


async def test_an_export_has_each_account_and_an_erasure_takes_one_or_all(pet: Companion) -> None:
    await link(pet)
    whole = await pet.conversations.export(user=SLACK)
    assert [memory["content"] for memory in whole["memories"]] == [KITE]
    [other] = whole["linked"]
    assert (other["user"], [memory["content"] for memory in other["memories"]]) == (DISCORD, [BOAT])
    assert (await pet.people.erase(user=SLACK)).verified
    assert await known(pet, DISCORD) == {BOAT}
    assert await pet.people.accounts(user=DISCORD) == []
    await link(pet)
    assert (await pet.people.preview_erase(user=SLACK, linked=True))["memories"] == 1
    receipt = await pet.people.erase(user=SLACK, linked=True)
    assert (receipt.verified, receipt.removed["memories"]) == (True, 1)
    assert await known(pet, DISCORD) == set()


async def test_an_account_that_is_erased_is_linked_by_no_code_of_before(pet: Companion) -> None:
    code = await pet.people.link_code(user=DISCORD)
    await pet.people.erase(user=DISCORD)
    with pytest.raises(NotLinked, match="wrong, used or older"):
        await pet.people.link(code, user=SLACK)


async def test_who_wants_nothing_kept_is_not_linked(pet: Companion) -> None:
    code = await pet.people.link_code(user=DISCORD)
    await pet.people.keep(False, user=SLACK)
    with pytest.raises(BadInput, match="nothing kept"):
        await pet.people.link(code, user=SLACK)
    with pytest.raises(BadInput, match="nothing kept"):
        await pet.people.link_code(user=SLACK)


async def test_a_reply_of_another_account_goes_with_what_it_tells(
    pet: Companion, model: AnsweringModel
) -> None:
    await link(pet)
    model.answers = [tool_call("search_memories", query="boat"), f"{BOAT}."]
    await pet.respond("How is my boat called?", user=SLACK, settle=True)
    await pet.people.unlink(user=SLACK)
    assert f"{BOAT}." in str(await pet.conversations.messages(user=SLACK)), "it was told there"
    [boat] = await pet.memories.list(user=DISCORD)
    await pet.memories.forget(boat.id, user=DISCORD)
    assert f"{BOAT}." not in str(await pet.conversations.messages(user=SLACK))


async def test_a_trace_of_what_another_account_told_opens_while_they_are_linked(
    pet: Companion, model: AnsweringModel
) -> None:
    await link(pet)
    model.answers = [tool_call("search_memories", query="boat"), f"{BOAT}."]
    await pet.respond("How is my boat called?", user=SLACK, settle=True)
    await pet.settle()
    [trace, *_] = [one for one in await pet.traces.list() if one.user == SLACK]
    assert not await pet.traces.shows_others(trace, await pet.people.accounts(user=SLACK))
    await pet.people.unlink(user=SLACK)
    assert await pet.traces.shows_others(trace, await pet.people.accounts(user=SLACK))
