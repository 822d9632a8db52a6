"""A home with the tables of 0023, with everything in it, opens and answers: on SQLite and on PostgreSQL.

`tests/data/tables_0023` holds the database of that home, as SQLite's file and as PostgreSQL's statements,
and what its people could read when it was made. Ana and Ben each spoke in private and in a channel. Facts
were replaced, corrected, made private and given an end. Tasks, documents, an imported message and summaries
are in it. A forgetting can still be undone, and one exchange waits to be consolidated.
"""

import gzip
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hachi import Companion, Settings
from memory.audience import Audience, Place
from memory.sql.engine import Database
from memory.sql.memories.store import MemoryStore

FOLDER = Path(__file__).parents[2] / "data" / "tables_0023"
CHANNEL = "acme/general"


@pytest.fixture
def expected() -> dict[str, Any]:
    return dict(json.loads((FOLDER / "expected.json").read_text()))


@pytest.fixture
async def old(on_database: str, tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    """The home as it was made."""
    url = None
    if on_database == "postgresql":
        postgresql = request.getfixturevalue("postgresql")
        url = await postgresql.new(migrated=False)
        statements = gzip.decompress((FOLDER / "postgresql.sql.gz").read_bytes()).decode()
        await postgresql.run(statements, database=url.split("?")[0].rpartition("/")[2])
    else:
        (tmp_path / "hachi.db").write_bytes(gzip.decompress((FOLDER / "hachi.db.gz").read_bytes()))
    return Settings.load(home=tmp_path, embedder="bundled", database_url=url, forget_undo_minutes=10_080)


@pytest.fixture
async def settings(old: Settings) -> Settings:
    """The same, at the newest migration: as `hachi migrate` does it, which a database server needs."""
    if old.database_url:
        database = Database.connect(old.database_url.get_secret_value(), Path())
        await database.migrate(backed_up=True)
        await database.close()
    return old


@pytest.fixture
async def pet(settings: Settings, clock: Any, expected: dict[str, Any]) -> AsyncIterator[Companion]:
    clock.now = datetime.fromisoformat(expected["made_at"]) + timedelta(minutes=5)
    async with Companion.open(settings, clock=clock, periodic_jobs=False) as opened:
        yield opened


async def facts(pet: Companion, user: str, place: str | None = None) -> list[str]:
    return sorted(memory.content for memory in await pet.memories.list(user=user, place=place))


async def test_what_was_known_is_known(pet: Companion, on_database: str, expected: dict[str, Any]) -> None:
    for user, place, known in (("ana", None, "ana"), ("ben", None, "ben"), ("ben", CHANNEL, "channel")):
        assert await facts(pet, user, place) == expected[known]
    for asked, user, place, told in (
        ("what is the cat called?", "ana", None, "Ana's cat is called Minou"),
        ("where is the offsite?", "ben", CHANNEL, "The offsite is on December 14 in Nice"),
        ("Mont Blanc", "ana", None, "climbed Mont Blanc"),
    ):
        hits = await pet.search_memories(asked, user=user, place=place)
        assert any(told in hit.content for hit in hits)
    holidays = await pet.documents.search("how many days of holiday?", user="ben")
    assert any("27 days" in chunk.text for chunk in holidays)
    for user in ("ana", "ben"):
        context = await pet.people.context(user=user)
        assert [task.description for task in context.open_tasks] == expected["tasks"][user]
    ana = await pet.people.context(user="ana")
    assert (ana.profile.name, ana.profile.location, ana.profile.role) == ("Ana", "Lyon", "nurse")

    await pet.memories.undo_forget(expected["undo_id"][on_database], user="ana")
    assert "Ana's door code is 4711" in await facts(pet, "ana")
    lyon = next(m for m in await pet.memories.list(user="ana") if "Lyon" in m.content)
    assert len(await pet.memories.history(lyon.id, user="ana")) == 2
    await pet.memories.undo(lyon.id, user="ana")
    assert "Ana lives in Lyon" in await facts(pet, "ana")

    reply = await pet.respond("What is my cat called?", user="ana", settle=True)
    assert "Minou" in reply.message
    assert await pet.settle()
    assert await pet.components.queue.counts() == (0, 0)
    cat = next(m for m in await pet.memories.list(user="ana") if "Minou" in m.content)
    await pet.memories.forget(cat.id, user="ana")
    said = [message.text for message in await pet.conversations.messages(user="ana", limit=50)]
    assert not {"My cat is called Minou.", "Sweet!"} & {*said}
    assert "Nice to meet you, Ana!" in said


@pytest.mark.parametrize("on_database", ["sqlite"], indirect=True)
async def test_what_each_could_read_of_facts_in_every_state_is_what_they_read(
    on_database: str, tmp_path: Path
) -> None:
    """Facts of random stories, which were told again, corrected, taken back, forgotten, edited, made private,
    imported late and given an end; who could read what when it was made."""
    made = json.loads((FOLDER / "states.json").read_text())
    (tmp_path / "hachi.db").write_bytes(gzip.decompress((FOLDER / "states.db.gz").read_bytes()))
    database = await Database.open(None, tmp_path)
    store, now = MemoryStore(database), datetime.fromisoformat(made["at"])
    for reader, known in made["known"].items():
        person, _, place = reader.partition(" ")
        read = await store.newest(Audience.of(person, Place.parse(place or None)), now)
        assert sorted(memory.content for memory in read) == known, reader
    await database.close()
