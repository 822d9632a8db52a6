"""What is killed: turns, the purge, imports, rebuilding the index, migrations, erasures, moves."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData, create_engine

from memory.sql.engine import Database
from tests.campaign.trials import Found, Killing, Place, Tell
from tests.campaign.world import PEOPLE, boat, facts_are_there, fill, look_for, opened, take_turns, talk

LINES = 400
"""Lines of an imported transcript."""
STORED_IN = "0004"
"""The revision of an older home's database."""


async def purge_for_ever(place: Place, tell: Tell, round_: int) -> None:
    """Facts that end at once are stored and purged, between others that stay."""
    async with opened(place) as pet:
        for number in count(1000 * (round_ + 1)):
            user = PEOPLE[number % len(PEOPLE)]
            await pet.remember(f"{user.title()} has guest {number}", user=user, ttl="1s")
            await pet.remember(boat(user, number), user=user)
            tell((user, None, boat(user, number)))
            if number % 5 == 0:
                await pet.purge()


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
            await pet.import_messages(_lines(user), user=user, conversation=f"old:{user}")
            tell((user, "imported", ""))
        await talk(pet, tell, count(1000 * (round_ + 1)))


async def imported_once(place: Place, told: Sequence[Any]) -> Found:
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
            await pet.reindex()


async def erase_somebody(place: Place, tell: Tell, round_: int) -> None:
    """Round by round the same person: each goes on where the last was killed."""
    async with opened(place) as pet:
        tell(("asked", None, PEOPLE[0]))
        receipt = await pet.erase(user=PEOPLE[0])
        tell(("erased", None, PEOPLE[0]) if receipt.verified else ("left", None, str(receipt.left)))


async def nothing_of_the_erased(place: Place, told: Sequence[Any]) -> Found:
    """A finished erasure left no byte, another run finishes a killed one, and the others keep all."""
    facts = [one for one in told if one[0] in PEOPLE]
    claimed = any(one[0] == "erased" for one in told)
    false = list[str]()
    async with opened(place) as pet:
        if claimed:
            false += [f"{fact} in a list" for fact in {m.content for m in await pet.memories(user=PEOPLE[0])}]
        elif any(one[0] == "asked" for one in told):
            receipt = await pet.erase(user=PEOPLE[0])
            claimed = receipt.verified
            false += [] if receipt.verified else [f"left: {receipt.left}"]
        found = await look_for(pet, facts, besides=frozenset(PEOPLE[:1] if claimed else ()))
    if claimed:
        words = [fact.encode() for user, _, fact in facts if user == PEOPLE[0]]
        for path in place.home.rglob("*"):
            if path.is_file():
                false += [f"{word!r} in {path.name}" for word in words if word in path.read_bytes()]
    return replace(found, false=tuple(false))


async def fill_an_old_home(place: Place, tell: Tell, _: int) -> None:
    """The tables as an older Hachi made them, with what they could hold."""
    await fill(place, tell, 0)
    current = place.home / "hachi.db"
    newer = current.rename(place.home / "newer.db")
    await _make_old_tables(place)
    _copy(newer, current)
    newer.unlink()
    for rest in place.home.glob("newer.db-*"):
        rest.unlink()


async def _make_old_tables(place: Place) -> None:
    from alembic import command

    from memory.sql.engine import _alembic_config

    database = Database.connect(None, place.home)
    config = _alembic_config()
    async with database.write() as connection:

        def upgrade(plain: Any) -> None:
            config.attributes["connection"] = plain
            command.upgrade(config, STORED_IN)

        await connection.run_sync(upgrade)
    await database.close()


def _copy(source: Path, target: Path) -> None:
    read, write = create_engine(f"sqlite:///{source}"), create_engine(f"sqlite:///{target}")
    old, new = MetaData(), MetaData()
    old.reflect(write)
    new.reflect(read)
    with read.connect() as reading, write.begin() as writing:
        for table in old.sorted_tables:
            if table.name == "alembic_version" or table.name not in new.tables:
                continue
            names = [c.name for c in table.columns if c.name in new.tables[table.name].columns]
            rows = reading.execute(new.tables[table.name].select()).mappings().all()
            if rows:
                writing.execute(table.insert(), [{name: row[name] for name in names} for row in rows])
    read.dispose()
    write.dispose()


async def migrate(place: Place, tell: Tell, round_: int) -> None:
    async with opened(place) as pet:
        await talk(pet, tell, count(1000 * (round_ + 1)))


KILLS = {
    "turns": Killing(fill, take_turns, facts_are_there),
    "purge": Killing(fill, purge_for_ever, facts_are_there),
    "import": Killing(fill, import_again, imported_once),
    "reindex": Killing(fill, rebuild_for_ever, facts_are_there),
    "migration": Killing(fill_an_old_home, migrate, facts_are_there, longest=0.4, rounds=2, opening=True),
    "erasure": Killing(fill, erase_somebody, nothing_of_the_erased, longest=0.3, rounds=3),
}
ON_POSTGRESQL = ("turns", "purge", "import", "erasure", "move")
"""What is killed there too; the index stays embedded. A move goes there and comes back."""


def seeds(name: str, amount: int) -> range:
    """The seeds of a scenario, so that no two of them share one."""
    first = random.Random(name).randrange(1_000_000)
    return range(first, first + amount)
