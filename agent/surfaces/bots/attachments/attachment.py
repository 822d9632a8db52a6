"""A file attached to a message: how it is fetched, and how its place in the message's text reads."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal
from urllib.parse import urljoin, urlsplit

import aiohttp

MAX_NAME = 60
TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=10, sock_read=20)
MOST_REDIRECTS = 3
NOT_FETCHED = "it could not be fetched"

_TEXT = ("text/", "application/json", "application/xml", "application/x-yaml", "application/toml")
_TEXTS = frozenset(
    "txt md csv tsv json jsonl yaml yml toml xml html log ini cfg py js ts java c h cpp "
    "cs go rs rb php sh sql css diff".split()
)
_PICTURES = frozenset("png jpg jpeg jfif webp gif".split())
_RECORDINGS = frozenset("flac m4a mp3 mpga oga ogg opus wav weba".split())
PERCEIVED = ("picture", "recording")
"""The kinds of files that are read of messages that are forwarded, or replied to."""
Kind = Literal["text", "picture", "recording", "other"]


class Unreadable(Exception):
    """A file that cannot be read. The sender sees the reason."""


@dataclass(frozen=True, slots=True)
class Attachment:
    name: str
    media_type: str
    """Empty if unknown."""
    size: int
    """In bytes, as the platform reports it."""
    fetch: Callable[[int], Awaitable[bytes]]
    """Returns the content, of so many bytes at most. May raise anything."""
    is_text: bool = False
    """Whether the platform itself calls it text."""
    is_voice: bool = False
    """Whether it is a voice message, and no file with a name of its own."""
    seconds: float | None = None
    """How long a recording is, as the platform tells."""

    @property
    def kind(self) -> Kind:
        media, ending = (
            self.media_type.partition(";")[0].strip().lower(),
            PurePath(self.name.lower()).suffix[1:],
        )
        if self.is_text:
            return "text"
        if self.is_voice or media.startswith("audio/"):
            return "recording"
        if media.removeprefix("image/") in _PICTURES:
            return "picture"
        if media.startswith(_TEXT) or ending in _TEXTS:
            return "text"
        if media not in ("", "application/octet-stream"):
            return "other"
        return "picture" if ending in _PICTURES else "recording" if ending in _RECORDINGS else "other"

    @property
    def label(self) -> str:
        """What stands for it in the text of its message, without brackets."""
        if self.kind == "recording":
            return "spoken" if self.is_voice else f"spoken in {display_name(self.name, 'a recording')}"
        what = "picture" if self.kind == "picture" else "file"
        return f"{what} {display_name(self.name, 'without a name')}"

    def shown(self, content: str = "", fault: str = "", seconds: float | None = None) -> str:
        """Return its place in the text of its message: with its content, or why there is none."""
        if self.kind == "recording":
            length = "" if seconds is None else f", {round(seconds) // 60}:{round(seconds) % 60:02}"
            return f"({self.label}{length}{fault and f'; not heard: {fault}'}) {content}".strip()
        if fault:
            return f"[{self.label}; not read: {fault}]"
        ends = f"\n{content}\n[end of {display_name(self.name, 'without a name')}]"
        return f"[{self.label}]{ends if self.kind == 'text' else ''}"

    def find_in(self, text: str) -> re.Match[str] | None:
        """Find its place, with its content, in the text of a message that is stored."""
        if self.kind == "recording":
            return re.search(rf"\({re.escape(self.label)}(?:, \d+:\d\d)?\) [^\n]+", text)
        around = map(re.escape, self.shown("\0").split("\0"))
        return re.search(".*?".join(around), text, re.DOTALL)


def text_with(text: str, places: Sequence[str]) -> str:
    """Return a message's text with these places of its attachments."""
    return "\n\n".join(filter(None, (text, *places)))


def display_name(name: str | None, fallback: str) -> str:
    """Return the name of a person or a file on one printable line of at most `MAX_NAME` characters. Colons
    are removed, because a name and a colon precede what a person says."""
    readable = "".join(letter if letter.isprintable() else " " for letter in name or "")
    return " ".join(readable.replace(":", " ").split())[:MAX_NAME].strip() or fallback


def is_at(url: str, hosts: tuple[str, ...], here: str) -> bool:
    """Return whether a URL is at one of these hosts or below it, by https, or where the API is set to be."""
    where, api = urlsplit(url), urlsplit(here)
    if (where.scheme, where.hostname, where.port) == (api.scheme, api.hostname, api.port):
        return True
    return where.scheme == "https" and f".{where.hostname}".endswith(hosts)


async def download(
    url: str, most: int, may_ask: Callable[[str], bool], headers: Mapping[str, str] | None = None
) -> bytes:
    """Return what is at the URL. Each address on the way is one that we `may_ask`; no other one gets the
    headers, or a request. Raises Unreadable, and what aiohttp raises."""
    async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
        for _ in range(MOST_REDIRECTS + 1):
            if not may_ask(url):
                raise Unreadable("it is stored outside the platform")
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, answer.headers.get("location", ""))
                    continue
                # in place of a file that it does not grant, Slack returns a page
                if answer.status != 200 or answer.content_type == "text/html":
                    raise Unreadable(NOT_FETCHED)
                content = bytearray()
                async for piece in answer.content.iter_chunked(65_536):
                    content += piece
                    if len(content) > most:
                        raise Unreadable(too_large(most))
                return bytes(content)
    raise Unreadable(NOT_FETCHED)


def too_large(most: int) -> str:
    return f"more than {most // 1_000_000} MB" if most >= 1_000_000 else f"more than {most // 1_000} kB"
