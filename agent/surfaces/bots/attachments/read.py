"""Read the files of a message: text, pictures for a model that sees, and what is said in recordings."""

import asyncio
import logging
import os
import sys
from base64 import b64encode
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from subprocess import DEVNULL, PIPE

from agent.models.wire.out import NOT_SHOWN
from agent.settings import Settings
from agent.surfaces.bots.attachments.attachment import (
    NOT_FETCHED,
    Attachment,
    Unreadable,
    display_name,
    text_with,
    too_large,
)
from agent.surfaces.bots.attachments.transcriber import Transcriber
from memory.documents.parsing import ENVIRONMENT
from memory.text import one_line, storable

log = logging.getLogger("hachi.bots")

MAX_FILES = 5
MAX_PICTURES = 5
"""The limit for all messages of a turn together, and those that they reply to."""
MAX_BYTES = {"text": 64_000, "picture": 20_000_000, "recording": 25_000_000}
"""The limit for one file of a kind."""
MAX_CHARACTERS = 60_000
"""The limit for all files of a message together."""
TOO_MANY = "too many files"
READABLE = "I can read text, see PNG, JPEG, WebP and GIF, and hear recordings"
SCALE_SECONDS, SCALED_AT_ONCE = 20.0, 2
"""Seconds that scaling a picture may take, and pictures that are scaled at a time."""
_CHILD = Path(__file__).with_name("scale_child.py")
_FAULTS = {3: "it has too many pixels", 4: "whoever runs me has not installed Pillow"}
BROKEN = "it is damaged, or not a PNG, JPEG, WebP or GIF"


@dataclass(frozen=True, slots=True)
class Read:
    """What files hold."""

    places: tuple[str, ...] = ()
    """What stands for each in the text of its message."""
    pictures: tuple[str, ...] = ()
    """As `data:` URLs, or words for a model that sees none."""
    faults: tuple[tuple[str, str], ...] = ()
    """What was not read: what stands for it, and a line that tells its sender why."""


class Scaler:
    """Checks and scales pictures in processes of their own: what strangers send may be made to break a
    decoder."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(SCALED_AT_ONCE)

    async def scaled(self, data: bytes) -> str:
        """Return the picture as a `data:` URL: upright, the first frame, at most 1,536 pixels a side. Raises
        Unreadable."""
        if not data:
            raise Unreadable("it is empty")
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        environment |= {name: path for name in ("PYTHONPATH",) if (path := os.environ.get(name))}
        async with self._free:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", str(_CHILD)), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
            )
            try:
                async with asyncio.timeout(SCALE_SECONDS):
                    picture, _ = await process.communicate(data)
            except TimeoutError:
                raise Unreadable("it takes too long to read") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode or not picture:
            raise Unreadable(_FAULTS.get(process.returncode or 0, BROKEN))
        return f"data:image/jpeg;base64,{b64encode(picture).decode()}"


@dataclass(eq=False)
class AttachmentReader:
    transcriber: Transcriber | None = None
    scaler: Scaler = field(default_factory=Scaler)

    @classmethod
    def of(cls, settings: Settings) -> "AttachmentReader":
        return cls(Transcriber.of(settings))

    async def read(
        self, attachments: Sequence[Attachment], *, sees: bool = True, pictures: int = MAX_PICTURES
    ) -> Read:
        """Read the files, so many `pictures` at most; for a model that `sees` none, none is fetched."""
        reading, room, reads = list[Awaitable[Read]](), MAX_CHARACTERS, list[Read]()
        for number, one in enumerate(attachments):
            many = number >= MAX_FILES or (one.kind == "picture" and pictures <= 0)
            reading.append(self._read(one, many=many, sees=sees))
            pictures -= one.kind == "picture"
        for attachment, read in zip(attachments, await asyncio.gather(*reading), strict=True):
            if len(read.places[0]) > room:
                read = _unread(attachment, "the files are too long together")
            room -= len(read.places[0])
            reads.append(read)
        return together(reads)

    async def _read(self, attachment: Attachment, *, many: bool, sees: bool) -> Read:
        if attachment.kind == "picture" and not sees:
            return Read((attachment.shown(),), (NOT_SHOWN,))
        try:
            if many:
                raise Unreadable(TOO_MANY)
            return await self._content(attachment)
        except Unreadable as reason:
            return _unread(attachment, str(reason))
        except Exception as error:
            log.warning("cannot fetch an attachment: %s: %s", type(error).__name__, error)
            return _unread(attachment, NOT_FETCHED)

    async def _content(self, attachment: Attachment) -> Read:
        kind, seconds = attachment.kind, attachment.seconds
        if kind == "other":
            kind_of_file = display_name(attachment.media_type, "this")
            raise Unreadable(f"{kind_of_file} is a kind of file that I cannot read. {READABLE}")
        if kind == "recording" and self.transcriber is None:
            raise Unreadable("no transcriber is set up")
        most = MAX_BYTES[kind]
        if attachment.size > most:
            raise Unreadable(too_large(most))
        data = await attachment.fetch(most)
        if kind == "picture":
            return Read((attachment.shown(),), (await self.scaler.scaled(data),))
        if kind == "recording":
            assert self.transcriber is not None
            words, length = await self.transcriber.hear(data, attachment.name)
            return Read((attachment.shown(one_line(words), seconds=seconds or length),))
        try:
            return Read((attachment.shown(data.decode("utf-8-sig")),))
        except UnicodeDecodeError:
            raise Unreadable("no text in UTF-8") from None


def _unread(attachment: Attachment, reason: str) -> Read:
    what = "Your voice message" if attachment.is_voice else display_name(attachment.name, "A file")
    place = attachment.shown(fault=reason, seconds=attachment.seconds)
    return Read((place,), (), ((place, f"{what}: {reason}."),))


def as_stored(read: Read, attachments: Sequence[Attachment], stored: str) -> tuple[Read, str]:
    """Take the content of files that can no longer be read from the `stored` text of their message. Also
    returns the rest of that text."""
    places, unread = list[str](), {place for place, _ in read.faults}
    for attachment, place in zip(attachments, read.places, strict=True):
        match = attachment.find_in(stored) if place in unread else None
        places.append(match[0] if match else place)
        stored = stored.partition(places[-1])[2] or stored
    faults = tuple(fault for fault in read.faults if fault[0] in places)
    return Read(tuple(places), read.pictures, faults), stored


def together(reads: Iterable[Read]) -> Read:
    """Return what all of these hold."""
    parts = [(one.places, one.pictures, one.faults) for one in reads]
    return Read(*(tuple(chain(*part)) for part in zip(*parts, strict=True))) if parts else Read()


def joined(messages: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return the text of messages that are stored as one, each with the places of its files."""
    return storable("\n".join(filter(None, (text_with(*one) for one in messages)))).strip()
