"""Files attached to a message. Text files are read; other files are named with the reason why not."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

log = logging.getLogger("hachi.bots")

MAX_FILES = 5
MAX_BYTES = 64_000
"""The limit for one file."""
MAX_CHARACTERS = 60_000
"""The limit for all files of a message together."""
TOO_LARGE = f"more than {MAX_BYTES // 1000} kB"
MAX_NAME = 60

_TYPES = ("text/", "application/json", "application/xml", "application/x-yaml", "application/toml")
_ENDINGS = tuple(
    ".txt .md .csv .tsv .json .jsonl .yaml .yml .toml .xml .html .log .ini .cfg .py .js .ts .java .c .h .cpp "
    ".cs .go .rs .rb .php .sh .sql .css .diff".split()
)


class Unreadable(Exception):
    """A file that cannot be read. The sender sees the reason."""


@dataclass(frozen=True, slots=True)
class Attachment:
    name: str
    media_type: str
    """Empty if unknown."""
    size: int
    """In bytes, as the platform reports it."""
    fetch: Callable[[], Awaitable[bytes]]
    """Returns the content. May raise anything."""
    is_text: bool = False
    """Whether the platform itself calls it text."""


async def read_attachments(attachments: Sequence[Attachment]) -> str:
    """Return the text files, each between lines with its name, and why others were not read."""
    parts: list[str] = []
    skipped: list[str] = []
    left = MAX_CHARACTERS
    for number, attachment in enumerate(attachments):
        name = display_name(attachment.name, "a file")
        try:
            if number >= MAX_FILES:
                raise Unreadable("one too many")
            text = await _read(attachment, left)
        except Unreadable as reason:
            skipped.append(f"{name} ({reason})")
        else:
            left -= len(text)
            parts.append(f"[file {name}]\n{text}\n[end of {name}]")
    if skipped:
        parts.append(f"[attached, but not read: {'; '.join(skipped)}]")
    return "\n\n".join(parts)


async def _read(attachment: Attachment, left: int) -> str:
    media_type = attachment.media_type.partition(";")[0].strip()
    known = media_type.startswith(_TYPES) or attachment.name.lower().endswith(_ENDINGS)
    if not (attachment.is_text or known):
        raise Unreadable(f"{display_name(media_type, 'not text')}, I read text only")
    if attachment.size > MAX_BYTES:
        raise Unreadable(TOO_LARGE)
    try:
        text = (await attachment.fetch()).decode("utf-8-sig")
    except Unreadable:
        raise
    except UnicodeDecodeError:
        raise Unreadable("no text in UTF-8") from None
    except Exception as error:
        log.warning("cannot fetch an attachment: %s: %s", type(error).__name__, error)
        raise Unreadable("it could not be fetched") from error
    if len(text) > left:
        raise Unreadable("the files are too long together")
    return text


def display_name(name: str | None, fallback: str) -> str:
    """Return the name of a person or a file on one printable line of at most `MAX_NAME` characters. Colons
    are removed, because a name and a colon precede what a person says."""
    readable = "".join(letter if letter.isprintable() else " " for letter in name or "")
    return " ".join(readable.replace(":", " ").split())[:MAX_NAME].strip() or fallback
