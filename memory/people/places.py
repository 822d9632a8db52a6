"""Store which messages of a place the companion answers, and who opted out of being stored there."""

from datetime import datetime
from typing import Literal, cast, get_args

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from memory.audience import Place
from memory.sql.engine import Database
from memory.sql.tables import messages, places, unkept

ANYWHERE = Place()
"""All places and private conversations, for people who opt out everywhere."""

Listening = Literal["mentions", "everything", "nothing"]
LISTENING: tuple[Listening, ...] = get_args(Listening)

_UNKEPT = (
    select(unkept.c.place)
    .where(unkept.c.user_id == bindparam("user"), unkept.c.place.in_(bindparam("around", expanding=True)))
    .limit(1)
)
"""Built once, because every turn needs it."""


class Places:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def listening(self, place: Place) -> Listening:
        """Return the setting of the place or of the nearest outer place; else "mentions". In private
        "everything"."""
        if place.private:
            return "everything"
        around = [where.key for where in place.containing()]
        query = select(places.c.place, places.c.listening).where(places.c.place.in_(around))
        found = {row.place: row.listening for row in await self._database.rows(query)}
        return cast(Listening, next((found[key] for key in around if key in found), "mentions"))

    async def last_of(self, user: str, within: Place) -> Place | None:
        """Return the place inside `within` where the user last wrote. Use it only to reach them."""
        there = messages.c.place.startswith(f"{within.key}/", autoescape=True)
        query = select(messages.c.place).where(messages.c.user_id == user, messages.c.role == "user", there)
        last = await self._database.rows(query.order_by(messages.c.seq.desc()).limit(1))
        return Place.of_key(last[0].place) if last else None

    async def set(self, place: Place, listening: Listening, by: str, now: datetime) -> None:
        """Store the setting, made by the user `by`; the platform decides who may. Raises ValueError in
        private."""
        if place.private or listening not in LISTENING:
            raise ValueError(f"what is listened to is set for a place: one of {', '.join(LISTENING)}")
        values = {"listening": listening, "changed_by": by, "changed_at": now}
        put = insert(places).values(place=place.key, **values)
        await self._database.run(put.on_conflict_do_update(index_elements=["place"], set_=values))

    async def unkept(self, user: str) -> list[Place]:
        """Return where the person opted out: `ANYWHERE`, or places, which include the places inside them."""
        rows = await self._database.rows(select(unkept.c.place).where(unkept.c.user_id == user))
        return sorted((Place.of_key(row.place) for row in rows), key=lambda place: place.path)

    async def keeps(self, user: str, place: Place) -> bool:
        """Return whether messages of the person in the place, or in private, may be stored."""
        around = [ANYWHERE.stored, *(where.key for where in place.containing())]
        return not await self._database.rows(_UNKEPT, {"user": user, "around": around})

    async def keep(self, user: str, place: Place, now: datetime, *, wanted: bool) -> None:
        """Let the person opt out of being stored in the place and inside it, or opt in again; `ANYWHERE`
        resets all."""
        async with self._database.write() as connection:
            if not wanted:
                row = insert(unkept).values(user_id=user, place=place.stored, since=now)
                await connection.execute(row.on_conflict_do_nothing())
                return
            theirs = delete(unkept).where(unkept.c.user_id == user)
            await connection.execute(
                theirs if place.private else theirs.where(unkept.c.place == place.stored)
            )
