"""In private a person may read the places in which they wrote and which they can still read. Nothing goes the
other way, and nothing of it outlives its message."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from sqlalchemy import event

from agent.errors import BadInput
from hachi import Companion, Place
from hachi.testing import AnsweringModel, tool_call
from memory.people import links

OpenPet = Callable[..., Awaitable[Companion]]

GENERAL, BOARD = "acme/general", "acme/board"
SAID, SECRET = "I planted a zagavok behind the shed", "I planted a zonamok in the cellar"
FACT = "Ben planted a zagavok behind the shed"
SEARCH = tool_call("search_memories", query="who planted something?")
TOLD = "Ben planted a zagavok behind the shed, he says."


def said(text: str, *facts: str) -> dict[str, Any]:
    return {"message": text, "memories": [{"content": fact} for fact in facts]}


@pytest.fixture
def model() -> AnsweringModel:
    return AnsweringModel(said("I see.", FACT), "I see.", "I see.")


@pytest.fixture(params=["sqlite", "postgresql"])
async def pet(open_pet: OpenPet, model: AnsweringModel, request: pytest.FixtureRequest) -> Companion:
    """Ben has told of plants where Ana writes too, and where she does not."""
    settings: dict[str, Any] = {"read_places": True}
    if request.param == "postgresql":
        settings["database_url"] = await request.getfixturevalue("postgresql").new()
    pet = await open_pet(given=model, consolidating=AnsweringModel(then=quoting), **settings)
    await pet.respond(SAID, user="ben", author="Ben", place=GENERAL, settle=True)
    await pet.respond(SECRET, user="ben", author="Ben", place=BOARD, settle=True)
    await pet.respond("Good morning!", user="ana", author="Ana", place=GENERAL, settle=True)
    return pet


def quoting(asked: str) -> dict[str, Any]:
    """A consolidation that notes all it was shown of plants, as if Ana had said it."""
    plants = [word for word in ("zagavok", "zonamok") if word in asked]
    facts = [{"content": f"Ben planted a {word}", "messages": [1]} for word in plants]
    return {"summary": f"They spoke of {plants}.", "new_facts": facts}


async def ask(pet: Companion, model: AnsweringModel, answer: Any = "I do not know.", **given: Any) -> str:
    """What the model was shown of a search by Ana in private."""
    model.answers = [SEARCH, answer]
    await pet.respond("Who planted something?", user="ana", author="Ana", settle=True, **given)
    return model.shown()


async def test_each_line_and_fact_of_a_place_names_it(pet: Companion, model: AnsweringModel) -> None:
    shown = await ask(pet, model, reads=[GENERAL])
    assert f"Ben (in {GENERAL}): {SAID}" in shown
    assert FACT in shown
    assert f'"from":"{GENERAL}"' in shown.replace(": ", ":").replace('\\"', '"')


async def test_only_what_the_person_wrote_in_and_can_read_is_read(
    pet: Companion, model: AnsweringModel
) -> None:
    assert "zonamok" not in await ask(pet, model, reads=[GENERAL, BOARD]), "she never wrote there"
    assert "zagavok" not in await ask(pet, model, reads=[BOARD]), "she may not read there any more"
    assert "zagavok" not in (await ask(pet, model, "I do not know.")).replace(TOLD, ""), (
        "nobody says that she may"
    )


async def test_a_platform_is_asked_for_the_places_where_they_wrote(
    pet: Companion, model: AnsweringModel
) -> None:
    asked = []

    async def may_read(places: Sequence[Place]) -> Mapping[Place, str]:
        asked.append([*places])
        return {Place.parse(GENERAL): "#general", Place.parse(BOARD): "#board"}

    async def away(_: Sequence[Place]) -> Mapping[Place, str]:
        raise OSError("the platform is away")

    shown = await ask(pet, model, reads=may_read)
    assert asked == [[Place.parse(GENERAL)]]
    assert f"Ben (in #general): {SAID}" in shown
    assert "zonamok" not in shown, "whatever the platform says of other places"
    assert "zagavok" not in await ask(pet, model, reads=away)


async def test_no_place_is_read_where_the_operator_does_not_allow_it_nor_in_a_place(
    open_pet: OpenPet, pet: Companion
) -> None:
    with pytest.raises(BadInput, match="only in private"):
        await pet.respond("Who?", user="ana", place=BOARD, reads=[GENERAL])
    for wrong in (["dm"], "acme", [7]):
        with pytest.raises(BadInput, match=r"reads|place"):
            await pet.respond("Who?", user="ana", reads=wrong)
    await pet.close()
    closed = await open_pet(database_url=pet.settings.database_url, given=AnsweringModel())
    with pytest.raises(BadInput, match="HACHI_READ_PLACES"):
        await closed.respond("Who?", user="ana", reads=[GENERAL])


async def test_what_was_read_in_private_reaches_no_place_and_nobody_else(
    pet: Companion, model: AnsweringModel
) -> None:
    await ask(pet, model, TOLD, reads=[GENERAL])
    await pet.settle()
    model.answers = [SEARCH, "I do not know."]
    await pet.respond("Who planted something?", user="ana", author="Ana", place=BOARD, settle=True)
    assert "zagavok" not in model.shown()
    assert "Who planted something?" not in str(await pet.conversations.messages(user="ben", place=GENERAL))


async def test_what_was_read_in_a_place_becomes_no_private_fact_or_summary(
    pet: Companion, model: AnsweringModel
) -> None:
    """Neither by the answer, nor by the tool, nor by the consolidation, which cites the question."""
    remember = tool_call("remember", content="Ben has a zagavok behind the shed", subjects=["ben"])
    model.answers = [SEARCH, remember, said(TOLD, "A zagavok grows behind Ben's shed")]
    await pet.respond("Who planted something?", user="ana", author="Ana", settle=True, reads=[GENERAL])
    await pet.settle()
    assert "zagavok" not in str(await pet.memories.list(user="ana"))
    context = await pet.people.context(user="ana")
    assert "zagavok" not in str(context)
    talks = await pet.conversations.list(user="ana")
    assert "zagavok" not in str([talk.summary for talk in talks])
    assert any("They spoke of []" in talk.summary for talk in talks), "it was consolidated"
    model.answers = [SEARCH, said("I see.", "Ana broke her foot")]
    await pet.respond("I broke my foot", user="ana", author="Ana", settle=True, reads=[GENERAL])
    assert "Ana broke her foot" in str(await pet.memories.list(user="ana")), "what she says is kept"


async def test_what_was_told_of_a_message_goes_with_it_and_its_author_hears_of_nothing(
    pet: Companion, model: AnsweringModel
) -> None:
    await ask(pet, model, TOLD, reads=[GENERAL])
    [fact] = await pet.memories.list(user="ben", place=GENERAL)
    preview = await pet.memories.preview_forget(fact.id, user="ben")
    receipt = await pet.memories.forget(fact.id, user="ben")
    assert (preview.replies, receipt.replies) == (1, 1), "his own alone"
    assert not {one.id for one in await pet.conversations.messages(user="ana")} & {*receipt.kept}
    rows = [fact.id, str(fact.message_id)]
    assert await pet.traces.showing(rows, "ana") > receipt.traces, "of her private turn he hears nothing"
    assert TOLD not in str(await pet.conversations.messages(user="ana"))
    assert "zagavok" not in await ask(pet, model, reads=[GENERAL])
    back = await pet.memories.undo_forget(str(receipt.undo_id), user="ben")
    assert back.replies == 1
    assert TOLD in str(await pet.conversations.messages(user="ana"))


async def test_an_erasure_takes_along_what_others_were_told_in_private(
    pet: Companion, model: AnsweringModel
) -> None:
    await ask(pet, model, TOLD, reads=[GENERAL])
    assert (await pet.people.erase(user="ben")).verified
    assert "zagavok" not in str(await pet.conversations.messages(user="ana"))


async def test_what_is_made_private_is_not_read_there_any_more_nor_in_what_was_told_of_it(
    pet: Companion, model: AnsweringModel
) -> None:
    await ask(pet, model, TOLD, reads=[GENERAL])
    [fact] = await pet.memories.list(user="ben", place=GENERAL)
    await pet.memories.make_private(fact.id, user="ben")
    assert "zagavok" not in await ask(pet, model, reads=[GENERAL])
    assert "zagavok" not in str(await pet.conversations.messages(user="ana"))


async def test_it_costs_one_statement_where_it_is_on_and_none_where_it_is_off(
    pet: Companion, model: AnsweringModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "NONE_FRESH", 1_000.0)
    asked = list[str]()

    def note(*told: Any) -> None:
        if "FROM links" in told[2]:
            asked.append("places" if "UNION" in told[2] else "links")

    pet.components.links._none_until = 0.0
    await ask(pet, model)
    event.listen(pet.components.database.engine.sync_engine, "before_cursor_execute", note)
    await ask(pet, model)
    assert asked == []
    await ask(pet, model, reads=[GENERAL])
    assert asked == ["places"]
    await ask(pet, model, place=GENERAL)
    assert asked == ["places"]


async def test_a_reply_is_not_stored_where_what_it_was_shown_is_forgotten_meanwhile(
    pet: Companion, model: AnsweringModel
) -> None:
    [fact] = await pet.memories.list(user="ben", place=GENERAL)
    model._hold = SAID
    asking = asyncio.ensure_future(ask(pet, model, TOLD, reads=[GENERAL]))
    await model.held.wait()
    await pet.memories.forget(fact.id, user="ben")
    model.release.set()
    await asking
    assert TOLD not in str(await pet.conversations.messages(user="ana"))
