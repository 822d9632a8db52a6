"""People tell facts, a scripted model keeps them, and they are looked for."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any

from agents import Model, ModelResponse, Usage
from agents.testing import assistant_message, function_call
from sqlalchemy import update

from hachi import Companion, Settings
from memory.sql.tables import work
from tests.campaign.trials import Findings, Place, Tell

PEOPLE = ("ana", "ben", "cleo")
SHARED = "acme/boats"
SEARCHED = 12
"""Facts that a check looks for by a search, of those that were told last and first."""


class Keeper(Model):
    """Keeps what it is told after "keep:": by the tool where the number is odd, else in its answer."""

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> Any:
        last = input[-1] if isinstance(input, list) else {"content": input}
        said = str(last.get("content", ""))
        told = said.rpartition("## Their message\n")[2].partition("keep: ")[2].strip()
        fact = {"content": told, "subjects": ["boats"], "ttl": None, "type": "fact", "importance": 0.6}
        if told and told[-1] in "13579":
            return _gives(function_call("remember", {**fact, "replaces": None}, call_id="kept"))
        return _gives(
            assistant_message(json.dumps({"message": "I see.", "memories": [fact] if told else []}))
        )

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def _gives(item: Any) -> ModelResponse:
    return ModelResponse(output=[item], usage=Usage(), response_id=None)


@asynccontextmanager
async def opened(place: Place, **settings: Any) -> AsyncIterator[Companion]:
    given = {"home": place.home, "embedder": "bundled", "database_url": place.url, **settings}
    async with Companion.open(Settings.load(**given), model=Keeper(), periodic_jobs=False) as pet:
        yield pet


def boat(user: str, number: int) -> str:
    return f"{user.title()} owns boat {number}"


async def talk(pet: Companion, tell: Tell, numbers: Any) -> None:
    """Everybody talks, every third time where all are present. Tells (user, place, fact) for each reply."""
    for number in numbers:
        user, where = PEOPLE[number % len(PEOPLE)], SHARED if number % 3 == 1 else None
        await pet.respond(f"keep: {boat(user, number)}", user=user, place=where)
        tell((user, where, boat(user, number)))


async def fill(place: Place, tell: Tell, _: int) -> None:
    """A home in which something was said, kept and indexed."""
    async with opened(place) as pet:
        await talk(pet, tell, range(1, 25))
        await pet.settle()


async def take_turns(place: Place, tell: Tell, round_: int) -> None:
    async with opened(place) as pet:
        await talk(pet, tell, count(1000 * (round_ + 1)))


async def facts_are_there(place: Place, told: Sequence[Any]) -> Findings:
    """Each acknowledged fact is listed once, and found by its words."""
    async with opened(place) as pet:
        return await look_for(pet, told)


async def look_for(pet: Companion, told: Sequence[Any], besides: frozenset[str] = frozenset()) -> Findings:
    """`besides` are people whose facts are not looked for."""
    async with pet.components.database.write() as connection:  # of a killed process, after 30 s otherwise
        claimed = update(work).where(work.c.claimed_by.is_not(None))
        await connection.execute(claimed.values(due_at=datetime(2000, 1, 1, tzinfo=UTC)))
    await pet.settle()
    kept, lost, double = 0, list[str](), list[str]()
    for user in sorted({*PEOPLE, *(one[0] for one in told)}):
        listed = Counter(memory.content for memory in await pet.memories.list(user=user, limit=1000))
        wanted = {fact for who, _, fact in told if who == user and user not in besides}
        kept += len(wanted & listed.keys())
        lost += sorted(wanted - listed.keys())
        double += sorted(fact for fact, times in listed.items() if times > 1)
    some = [one for one in [*told[:SEARCHED], *told[-SEARCHED:]] if one[0] not in besides]
    missed = [
        fact
        for user, where, fact in some
        if fact
        not in {hit.content for hit in await pet.search_memories(fact, user=user, place=where, limit=20)}
    ]
    return Findings(kept, tuple(lost), tuple(double), tuple(missed))
