"""Files that come with a message, whatever the platform: text is read, the others are named."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent.surfaces.bots.people import display_name

MOST_FILES = 5
MOST_BYTES = 64_000
"""Of one file; a longer one is not read."""
MOST_CHARACTERS = 60_000
"""Of all files of a message."""
TOO_BIG = f"more than {MOST_BYTES // 1000} kB"

_TYPES = ("text/", "application/json", "application/xml", "application/x-yaml", "application/toml")
_ENDINGS = tuple(
    f".{ending}"
    for ending in (
        *(
            "txt",
            "md",
            "csv",
            "tsv",
            "json",
            "jsonl",
            "yaml",
            "yml",
            "toml",
            "xml",
            "html",
            "log",
            "ini",
            "cfg",
        ),
        *(
            "py",
            "js",
            "ts",
            "java",
            "c",
            "h",
            "cpp",
            "cs",
            "go",
            "rs",
            "rb",
            "php",
            "sh",
            "sql",
            "css",
            "diff",
        ),
    )
)


class Unreadable(Exception):
    """The text says why, to whoever sent the file."""


@dataclass(frozen=True, slots=True)
class File:
    """One file, as the platform tells of it."""

    name: str
    kind: str
    """Its media type; empty where it is not told."""
    size: int
    """In bytes, as far as it is told."""
    fetch: Callable[[], Awaitable[bytes]]
    """What is in it. Raises Unreadable."""
    text: bool = False
    """Whether the platform itself says that it is text."""


async def read_files(files: Sequence[File]) -> str:
    """The text files word for word, each between its name, and why the others were not read."""
    parts: list[str] = []
    skipped: list[str] = []
    left = MOST_CHARACTERS
    for number, file in enumerate(files):
        name = display_name(file.name, "a file")
        try:
            if number >= MOST_FILES:
                raise Unreadable("one too many")
            text = await _text(file, left)
        except Unreadable as why:
            skipped.append(f"{name} ({why})")
        else:
            left -= len(text)
            parts.append(f"[file {name}]\n{text}\n[end of {name}]")
    if skipped:
        parts.append(f"[attached, but not read: {'; '.join(skipped)}]")
    return "\n\n".join(parts)


async def _text(file: File, left: int) -> str:
    kind = file.kind.partition(";")[0].strip()
    if not (file.text or kind.startswith(_TYPES) or file.name.lower().endswith(_ENDINGS)):
        raise Unreadable(f"{display_name(kind, 'not text')}, I read text only")
    if file.size > MOST_BYTES:
        raise Unreadable(TOO_BIG)
    try:
        text = (await file.fetch()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("no text in UTF-8") from None
    if len(text) > left:
        raise Unreadable("the files are too long together")
    return text
