"""What is killed: turns, the purge, imports, reindexing, migrations, forgetting, erasures, moves."""

import gzip
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from hachi import Companion
from tests.campaign.trials import Findings, Killing, Place, Tell
from tests.campaign.world import PEOPLE, boat, facts_are_there, fill, look_for, opened, take_turns, talk

LINES = 400
"""Lines of an imported transcript."""
OLD_HOME = Path(__file__).parents[1] / "data" / "tables_0023"


async def purge_for_ever(place: Place, tell: Tell, round_: int) -> None:
    """Facts that end at once are stored and purged, between others that stay."""
    async with opened(place) as pet:
        for number in count(1000 * (round_ + 1)):
            user = PEOPLE[number % len(PEOPLE)]
            await pet.remember(f"{user.title()} has guest {number}", user=user, ttl="1s")
            await pet.remember(boat(user, number), user=user)
            tell((user, None, boat(user, number)))
            if number % 5 == 0:
                await pet.admin.purge()


def _lines(user: str) -> list[dict[str, Any]]:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        {
            "id": f"{user}-{n}",
            "author": user,
            "text": f"I saw bird {n}",
            "sent_at": begin + timedelta(minutes=n),
        }
        for n in range(LINES)
    ]


async def import_again(place: Place, tell: Tell, round_: int) -> None:
    async with opened(place) as pet:
        for user in PEOPLE:
            await pet.conversations.import_messages(_lines(user), user=user, conversation=f"old:{user}")
            tell((user, "imported", ""))
        await talk(pet, tell, count(1000 * (round_ + 1)))


async def imported_once(place: Place, told: Sequence[Any]) -> Findings:
    async with opened(place) as pet:
        found = await look_for(pet, [one for one in told if one[1] != "imported"])
        lost, double = list(found.lost), list(found.double)
        async with pet.components.database.read() as connection:
            rows = await connection.exec_driver_sql(
                "SELECT user_id, text FROM messages WHERE text LIKE 'I saw%'"
            )
            times = Counter((row[0], row[1]) for row in rows)
        double += [f"{user}: {text}" for (user, text), n in times.items() if n > 1]
        for user in {one[0] for one in told if one[1] == "imported"}:
            lost += [line["text"] for line in _lines(user) if (user, line["text"]) not in times]
        return replace(found, lost=tuple(lost), double=tuple(double))


async def rebuild_for_ever(place: Place, tell: Tell, round_: int) -> None:
    async with opened(place) as pet:
        for number in count(1000 * (round_ + 1)):
            await talk(pet, tell, [number])
            await pet.admin.reindex()


async def erase_somebody(place: Place, tell: Tell, round_: int) -> None:
    """Round by round the same person: each goes on where the last was killed."""
    async with opened(place) as pet:
        tell(("asked", None, PEOPLE[0]))
        receipt = await pet.people.erase(user=PEOPLE[0])
        tell(("erased", None, PEOPLE[0]) if receipt.verified else ("left", None, str(receipt.left)))


async def nothing_of_the_erased(place: Place, told: Sequence[Any]) -> Findings:
    """A finished erasure left no byte, another run finishes a killed one, and the others keep all."""
    facts = [one for one in told if one[0] in PEOPLE]
    claimed = any(one[0] == "erased" for one in told)
    false = list[str]()
    async with opened(place) as pet:
        if claimed:
            false += [
                f"{fact} in a list" for fact in {m.content for m in await pet.memories.list(user=PEOPLE[0])}
            ]
        elif any(one[0] == "asked" for one in told):
            receipt = await pet.people.erase(user=PEOPLE[0])
            claimed = receipt.verified
            false += [] if receipt.verified else [f"left: {receipt.left}"]
        found = await look_for(pet, facts, besides=frozenset(PEOPLE[:1] if claimed else ()))
    if claimed:
        words = [fact.encode() for user, _, fact in facts if user == PEOPLE[0]]
        for path in place.home.rglob("*"):
            if path.is_file():
                false += [f"{word!r} in {path.name}" for word in words if word in path.read_bytes()]
    return replace(found, false=tuple(false))


STEPS = ("forgetting", "forgotten", "undoing", "undone")


async def forget_for_ever(place: Place, tell: Tell, round_: int) -> None:
    """Each fact is kept, forgotten, or forgotten and brought back. Every step is told before and after."""
    async with opened(place) as pet:
        for number in count(1000 * (round_ + 1)):
            user = PEOPLE[number % len(PEOPLE)]
            fact = boat(user, number)
            stored = await pet.remember(fact, user=user)
            tell((user, None, fact))
            if number % 4:
                tell(("forgetting", user, fact))
                receipt = await pet.memories.forget(str(stored.id), user=user)
                tell(("forgotten", user, fact))
            if number % 4 == 1:
                tell(("undoing", user, fact))
                await pet.memories.undo_forget(receipt.undo_id, user=user)
                tell(("undone", user, fact))


async def forgotten_as_told(place: Place, told: Sequence[Any]) -> Findings:
    async with opened(place) as pet:
        return await as_told(pet, told)


async def as_told(pet: Companion, told: Sequence[Any]) -> Findings:
    """What was kept or brought back is there, and what was forgotten is in no list and no search."""
    last = {fact: step for step, _, fact in told if step in STEPS}
    facts = [one for one in told if one[0] not in STEPS]
    found = await look_for(pet, [one for one in facts if last.get(one[2], "undone") == "undone"])
    false = list[str]()
    for user in {one[0] for one in facts}:
        gone = {fact for who, _, fact in facts if who == user and last.get(fact) == "forgotten"}
        listed = {memory.content for memory in await pet.memories.list(user=user, limit=1000)}
        false += [f"{fact} in a list" for fact in gone & listed]
        for fact in sorted(gone)[-5:]:
            hits = {hit.content for hit in await pet.search_memories(fact, user=user, limit=20)}
            false += [f"{fact} in a search" for _ in hits & {fact}]
    return replace(found, false=tuple(false))


async def fill_an_old_home(place: Place, tell: Tell, _: int) -> None:
    """A home with older tables."""
    place.home.mkdir(parents=True, exist_ok=True)
    (place.home / "hachi.db").write_bytes(gzip.decompress((OLD_HOME / "hachi.db.gz").read_bytes()))
    expected = json.loads((OLD_HOME / "expected.json").read_text())
    for user in {"ana", "ben"} & set(PEOPLE):
        for fact in expected[user]:
            tell((user, None, fact))


async def migrate(place: Place, tell: Tell, round_: int) -> None:
    async with opened(place) as pet:
        await talk(pet, tell, count(1000 * (round_ + 1)))


KILLS = {
    "turns": Killing(fill, take_turns, facts_are_there),
    "purge": Killing(fill, purge_for_ever, facts_are_there),
    "import": Killing(fill, import_again, imported_once),
    "reindex": Killing(fill, rebuild_for_ever, facts_are_there),
    "migration": Killing(fill_an_old_home, migrate, facts_are_there, longest=0.4, rounds=2, opening=True),
    "forgetting": Killing(fill, forget_for_ever, forgotten_as_told),
    "erasure": Killing(fill, erase_somebody, nothing_of_the_erased, longest=0.3, rounds=3),
}
ON_POSTGRESQL = ("turns", "purge", "import", "forgetting", "erasure", "move")
"""What is killed there too; the index is in the process. A move goes there and comes back."""


def seeds(name: str, amount: int) -> range:
    """The seeds of a scenario, so that no two of them share one."""
    first = random.Random(name).randrange(1_000_000)
    return range(first, first + amount)
