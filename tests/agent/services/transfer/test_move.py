"""Everything comes over, there and back, and what cannot come over whole is noticed."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from postgresql_server import Server

from agent.errors import BadInput
from agent.services.transfer import move
from agent.services.transfer.move import TABLES, Move, MovedTable
from memory.errors import StoreUnavailable
from memory.sql.engine import Database
from memory.sql.tables import memories, messages, users
from tests.agent.conftest import OpenPet

ACME = "acme/general"


@pytest.fixture
async def filled(open_pet: OpenPet, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where two people said and had things done, in private and in a place; nobody has it open."""
    monkeypatch.setattr(move, "ROWS_AT_ONCE", 3)
    pet = await open_pet(consolidate_minutes=0)
    (tmp_path / "paper.md").write_text("# Skis\n\nHow to wax them.")
    for user in ("ana", "Élodie", "זוהר"):  # in no order that a language gives them
        await pet.respond(f"I am {user} and I ski 🎿", user=user, settle=True)
        await pet.respond("I wax the skis tomorrow", user=user, place=ACME, settle=True)
        await pet.tasks.update("wax the skis", user=user, place=ACME, due="tomorrow at 9")
        old = await pet.remember(f"{user} lives in Paris", user=user, place=ACME)
        await pet.memories.update(str(old.id), f"{user} lives in Lyon", user=user)
        await pet.people.set_context("role", "nurse", user=user)
        await pet.check_ins.want(True, user=user)
        await pet.documents.add_files([tmp_path / "paper.md"], user=user)
    await pet.admin.keys.create("laptop", "user", "ana", False, now=pet.clock())
    await pet.remember("Ana rents a berth", user="ana")
    await pet.people.link(await pet.people.link_code(user="ana"), user="Élodie")
    gone = await pet.remember("Ana swims", user="ana")
    await pet.memories.forget(str(gone.id), user="ana")
    await pet.close()
    return home


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., Database]]:
    """`opened(url, home)`: a database that is closed when the test ends."""
    made: list[Database] = []

    def connect(url: str | None, home: Path = Path()) -> Database:
        made.append(Database.connect(url, home))
        return made[-1]

    yield connect
    for database in made:
        await database.close()


async def moved(source: Database, target: Database) -> list[MovedTable]:
    return await Move(source, target).run(lambda _: None)


async def all_rows(database: Database) -> dict[str, Any]:
    """Every row of every table, without those of indexes."""
    found = {}
    async with database.read() as connection:
        for table in TABLES:
            rows = (await connection.execute(sa.select(table))).all()
            plain = [dict(row._mapping) for row in rows]
            found[table.name] = sorted(plain, key=str)
    return found


async def test_there_and_back_every_row_is_the_same(
    filled: Path, postgresql: Server, opened: Callable[..., Database], open_pet: OpenPet, tmp_path: Path
) -> None:
    source, there = opened(None, filled), opened(await postgresql.new(migrated=False))
    back = opened(f"sqlite:///{tmp_path / 'back' / 'hachi.db'}")
    steps: list[int] = []

    tables = await Move(source, there).run(steps.append)
    again = await moved(there, back)

    before = await all_rows(source)
    assert before == await all_rows(there) == await all_rows(back)
    assert tables == again
    assert {table.name for table in tables if not table.rows} <= {"places", "erasures", "unkept"} | {
        "deliveries", "message_origins", "memory_aliases", "context_entries", "vectors", "work",
    }  # fmt: skip
    assert sum(steps) == 2 * sum(table.rows for table in tables)
    async with there.write() as connection:
        new = {"id": "m", "conversation_id": "c", "user_id": "ana", "place": "", "role": "user"}
        new |= {"author": "ana", "text": "hello", "sent_at": sa.func.now()}
        await connection.execute(sa.insert(messages).values(**new))  # behind those that came over
    await back.close()
    pet = await open_pet(home=tmp_path / "back")
    found = await pet.search_memories("where does ana live?", user="ana")
    assert "ana lives in Lyon" in [hit.content for hit in found]


class Killed(Exception):
    pass


async def test_an_interrupted_move_goes_on_and_nothing_opens_its_target_before(
    filled: Path, opened: Callable[..., Database], tmp_path: Path
) -> None:
    source, target = opened(None, filled), opened(f"sqlite:///{tmp_path / 'new.db'}")
    copied: list[int] = []

    def kill(count: int) -> None:
        copied.append(count)
        if len(copied) == 20:
            raise Killed

    with pytest.raises(Killed):
        await Move(source, target).run(kill)
    for database in (source, target):
        await database.close()
    with pytest.raises(StoreUnavailable, match=r"not finished: run `hachi move` again"):
        await Database.open(f"sqlite:///{tmp_path / 'new.db'}", tmp_path)
    other = opened(None, tmp_path / "other")
    await other.migrate()
    with pytest.raises(BadInput, match="holds part of another database"):
        await moved(other, target)

    steps: list[int] = []
    tables = await Move(source, target).run(steps.append)

    assert sum(steps) == 2 * sum(table.rows for table in tables)
    assert await all_rows(target) == await all_rows(source)


async def test_what_changes_meanwhile_is_noticed_and_the_next_move_begins_again(
    filled: Path, opened: Callable[..., Database], tmp_path: Path
) -> None:
    source, target = opened(None, filled), opened(f"sqlite:///{tmp_path / 'new.db'}")

    move, counted = Move(source, target), list[int]()
    rows = await move.rows()

    def change(count: int) -> None:
        counted.append(count)
        if sum(counted) == rows:  # all of them are copied, and none is compared
            with closing(sqlite3.connect(filled / "hachi.db")) as database, database:
                database.execute("UPDATE memories SET content = 'something else'")

    with pytest.raises(StoreUnavailable, match=r"memories differs in .* run it again from the beginning"):
        await move.run(change)
    await moved(source, target)
    async with target.read() as connection:
        texts = set(await connection.scalars(sa.select(memories.c.content)))
    assert texts == {"something else"}


async def test_a_target_with_other_data_and_a_source_in_use_are_refused(
    home: Path, opened: Callable[..., Database], tmp_path: Path
) -> None:
    source, target = opened(None, home), opened(None, tmp_path / "other")
    await target.migrate()
    async with target.write() as connection:
        await connection.execute(sa.insert(users).values(id="lea", created_at=sa.func.now()))
    with pytest.raises(BadInput, match=r"holds other data \(in users\); move to an empty one"):
        await moved(source, target)
    with pytest.raises(BadInput, match=r"is in .* already"):
        await moved(source, source)
    with closing(sqlite3.connect(home / "hachi.db")) as another:
        another.execute("PRAGMA journal_mode=WAL").fetchone()
        another.execute("SELECT count(*) FROM users").fetchone()
        with pytest.raises(StoreUnavailable, match="in use by another hachi process"):
            await moved(source, opened(None, tmp_path / "new"))


async def test_a_postgresql_source_in_use_is_refused(
    postgresql: Server, opened: Callable[..., Database], tmp_path: Path
) -> None:
    url = await postgresql.new()
    source, another = opened(url), opened(url)
    async with another.read() as connection:
        await connection.execute(sa.select(1))
        with pytest.raises(StoreUnavailable, match="in use by 1 other connections"):
            await moved(source, opened(None, tmp_path))
