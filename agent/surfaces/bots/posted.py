"""A text that stands in one or more messages of a platform, and changes."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from agent.surfaces.bots.splitting import split, units

Handle = TypeVar("Handle")
"""What the platform calls a message."""


class Gone(Exception):
    """Raised by `edit` and `remove` where the message is no longer there: somebody took it away."""


@dataclass(slots=True)
class _Part(Generic[Handle]):
    handle: Handle
    text: str


class PostedText(Generic[Handle]):
    """Messages are posted as they are needed; only those whose text has changed are edited."""

    def __init__(
        self,
        limit: int,
        post: Callable[[str], Awaitable[Handle]],
        edit: Callable[[Handle, str], Awaitable[None]],
        remove: Callable[[Handle], Awaitable[None]],
    ) -> None:
        """`limit` is the most UTF-16 code units of a message."""
        self._limit = limit
        self._post = post
        self._edit = edit
        self._remove = remove
        self._parts: list[_Part[Handle]] = []

    @property
    def handles(self) -> list[Handle]:
        return [part.handle for part in self._parts]

    async def show(self, text: str, below: str = "") -> None:
        """Have the messages say this; what is to stand `below` is in one, as far as one holds it. What the
        platform raises comes through; then the next call goes on from what was done."""
        texts = self._parted(text, below)
        for number, wanted in enumerate(texts):
            if number == len(self._parts):
                self._parts.append(_Part(await self._post(wanted), wanted))
            elif self._parts[number].text != wanted:
                await self._change(self._parts[number], wanted)
        while len(self._parts) > max(1, len(texts)):
            with suppress(Gone):
                await self._remove(self._parts[-1].handle)
            self._parts.pop()

    def _parted(self, text: str, below: str) -> list[str]:
        *before, last = split(text, self._limit) or [""]
        whole = "\n\n".join(filter(None, (last, below)))
        if units(whole) <= self._limit:
            return [*before, *filter(None, [whole])]
        return [*before, *filter(None, [last]), *split(below, self._limit)]

    async def _change(self, part: _Part[Handle], text: str) -> None:
        try:
            await self._edit(part.handle, text)
        except Gone:
            part.handle = await self._post(text)
        part.text = text
