"""Read what messages hold, what stands around them, and which places their author may read."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from agent.companion import Companion
from agent.surfaces.bots.attachments.attachment import PERCEIVED, text_with
from agent.surfaces.bots.attachments.read import (
    MAX_PICTURES,
    AttachmentReader,
    Read,
    as_stored,
    joined,
    together,
)
from agent.surfaces.bots.platform import (
    MAX_QUOTED,
    Content,
    IncomingMessage,
    NearbyMessage,
    Platform,
    continues,
)
from agent.types.client import without_description
from memory.audience import Place
from memory.sql.jobs.deliveries import Sent, quote_id

log = logging.getLogger("hachi.bots")

MOST_AROUND = 8_000
"""Characters of a thread, and of what is replied to, that the model is shown."""
READABLE_FOR, MOST_READABLE = timedelta(minutes=10), 10_000
"""How long the cache holds that a person can read a place, and its most entries."""
READABLE_SECONDS = 5.0
"""How long a turn waits for the platform to answer that."""


class Reading(NamedTuple):
    """The content of messages that are answered together."""

    contents: Sequence[Content]
    text: str
    """All of it as one text."""
    files: Read
    unchanged: bool = False
    """Whether the text is the stored one."""


class Surroundings(NamedTuple):
    """What stands around a message."""

    text: str
    quotes: tuple[str, ...]
    """Ids by which the traces that show it are found."""
    files: Read


@dataclass(eq=False)
class MessageReader:
    pet: Companion
    platform: Platform

    def __post_init__(self) -> None:
        self.files = AttachmentReader.of(self.pet.settings)

    async def read(self, burst: Sequence[IncomingMessage], sent: Sent | None) -> Reading:
        """Return the content of the messages. If they are stored (`sent`) and were not edited, no recording
        is transcribed again, and no file fetched once there is a reply. Of a file that was read and can no
        longer be, the stored content stays."""
        contents = [await self.platform.read(part) for part in burst]
        stored = without_description(sent.message.text) if sent else ""
        changed = {one.origin for one in burst} ^ {*(sent.origins if sent else ())}
        edited = bool(changed) or any(one.version for one in burst)
        reads, sees, unread = list[Read](), await self._sees(), stored
        for one in contents:
            files, room = one.attachments, MAX_PICTURES - sum(len(read.pictures) for read in reads)
            if sent and not edited:
                files = [file for file in files if file.kind == "picture" and not sent.reply]
            read = await self.files.read(files, sees=sees, pictures=room)
            if edited:
                read, unread = as_stored(read, files, unread)
            reads.append(read)
        files_read = together(reads)
        if sent and not edited:
            return Reading(contents, stored, files_read, unchanged=True)
        text = joined((one.text, read.places) for one, read in zip(contents, reads, strict=True))
        return Reading(contents, text, files_read, sent is not None and text == stored)

    async def _sees(self) -> bool:
        """Return whether a model that may answer is shown pictures."""
        model = (await self.pet.runtime()).turn.model
        return model.sees or bool(model.fallback and model.fallback.sees)

    async def around(
        self, message: IncomingMessage, contents: Sequence[Content], pictures: int
    ) -> Surroundings:
        """Return what others wrote in the thread and in the message replied to, with at most so many
        pictures. The model is shown it for this answer only."""
        replied = {one.replies_to.origin: one.replies_to for one in contents if one.replies_to}
        title, before = await self._thread(message, replied)
        texts, room = {}, MOST_AROUND
        for line in (*replied.values(), *before[:1], *reversed(before[1:])):
            if room <= 0:
                break
            if text := (await self.platform.quote(line, message))[: min(room, MAX_QUOTED)]:
                texts[line.origin] = text
                room -= len(text)
        reads, sees = list[Read](), await self._sees()
        first = before[:1] if before and not await self.has_history(message) else []
        for line in [one for one in (*replied.values(), *first) if one.origin in texts]:
            files = [one for one in await self.platform.files_of(line) if one.kind in PERCEIVED]
            room = pictures - sum(len(one.pictures) for one in reads)
            reads.append(await self.files.read(files, sees=sees, pictures=room))
            texts[line.origin] = text_with(texts[line.origin], reads[-1].places)
        parts = [f"The thread is called “{title}”."] if title else []
        if thread := [texts[line.origin] for line in before if line.origin in texts]:
            parts += ["Before it in the thread:", *thread]
        if answered := [texts[origin] for origin in replied if origin in texts]:
            parts += [*["It replies to:"] * bool(parts), *answered]
        rows = [await self.pet.components.transcript.sent_as(origin) for origin in replied]
        quotes = (*map(quote_id, texts), *(row[0] for row in rows if row))
        return Surroundings("\n".join(parts), quotes, together(reads))

    async def _thread(
        self, message: IncomingMessage, without: Collection[str]
    ) -> tuple[str, list[NearbyMessage]]:
        """Return the title of the thread and its messages that were not for the bot: the others are in the
        transcript, or were forgotten. People who opted out of storage are not quoted."""
        if not message.in_thread or message.place.private:
            return "", []
        places = self.pet.people.places
        try:
            thread = await self.platform.thread(message)
        except Exception as error:
            log.warning("the thread of %s is not read: %s", message.origin, error)
            return "", []
        listening, lines = await places.listening(message.place), thread.lines
        talk = [
            line
            for at, line in enumerate(lines)
            if line.user
            and line.origin not in without
            and not (line.addressed or continues(line.user, lines[:at]))
            and (listening != "everything" or line.to_others)
        ]
        quiet = {user for user in {one.user for one in talk} if not await places.keeps(user, message.place)}
        return thread.title, [line for line in talk if line.user not in quiet]

    async def has_history(self, message: IncomingMessage) -> bool:
        """Return whether its conversation has messages already."""
        return await self.pet.conversations.exists(message.queue, user=message.user, place=message.place)


class ReadablePlaces:
    """Cache which places a person can read, and their names. A place that the platform does not confirm is
    not readable."""

    def __init__(self, platform: Platform, clock: Callable[[], datetime]) -> None:
        self._platform, self._clock = platform, clock
        self._cache: dict[tuple[str, Place], tuple[str, datetime]] = {}

    async def of(self, user: str, places: Sequence[Place]) -> Mapping[Place, str]:
        now = self._clock()
        cached = {place: self._cache.get((user, place), ("", now - READABLE_FOR)) for place in places}
        names = {place: name for place, (name, at) in cached.items() if now - at < READABLE_FOR}
        if unconfirmed := [place for place in places if place not in names]:
            try:
                async with asyncio.timeout(READABLE_SECONDS):
                    confirmed = await self._platform.may_read(user, unconfirmed)
            except Exception as error:
                log.warning("it is not known which channels %s can read: %s", user, error)
                confirmed = {}
            if len(self._cache) >= MOST_READABLE:
                self._cache.clear()
            self._cache.update({(user, place): (name, now) for place, name in confirmed.items()})
            names |= confirmed
        return {place: name for place, name in names.items() if name}
