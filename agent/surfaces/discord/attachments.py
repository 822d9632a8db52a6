"""Files that come with a message: text is read, the others are named."""

import logging
from collections.abc import Sequence

import discord

from agent.surfaces.bots.people import display_name

log = logging.getLogger("hachi.discord")

MOST_FILES = 5
MOST_BYTES = 64_000
"""Of one file; a longer one is not read."""
MOST_CHARACTERS = 60_000
"""Of all files of a message."""

_TYPES = ("text/", "application/json", "application/xml", "application/x-yaml", "application/toml")
_ENDINGS = (
    *("txt", "md", "csv", "tsv", "json", "jsonl", "yaml", "yml", "toml", "xml", "html", "log", "ini", "cfg"),
    *("py", "js", "ts", "java", "c", "h", "cpp", "cs", "go", "rs", "rb", "php", "sh", "sql", "css", "diff"),
)


async def read_files(attachments: Sequence[discord.Attachment]) -> str:
    """The text files word for word, each between its name, and why the others were not read. Raises nothing
    of Discord's."""
    parts, skipped, left = [], [], MOST_CHARACTERS
    for number, file in enumerate(attachments):
        name = display_name(file.filename, "a file")
        text, why = (None, "one too many") if number >= MOST_FILES else await _text(file, left)
        if text is None:
            skipped.append(f"{name} ({why})")
        else:
            left -= len(text)
            parts.append(f"[file {name}]\n{text}\n[end of {name}]")
    if skipped:
        parts.append(f"[attached, but not read: {'; '.join(skipped)}]")
    return "\n\n".join(parts)


async def _text(file: discord.Attachment, left: int) -> tuple[str | None, str]:
    """What is in it; or None, and why not."""
    kind = (file.content_type or "").partition(";")[0].strip()
    if not (kind.startswith(_TYPES) or file.filename.lower().rpartition(".")[2] in _ENDINGS):
        return None, f"{display_name(kind, 'not text')}, I read text only"
    if file.size > MOST_BYTES:
        return None, f"more than {MOST_BYTES // 1000} kB"
    try:
        text = (await file.read()).decode("utf-8-sig")
    except UnicodeDecodeError:
        return None, "no text in UTF-8"
    except (discord.DiscordException, OSError) as error:
        log.warning("an attachment cannot be read: %s: %s", type(error).__name__, error)
        return None, "it could not be fetched"
    return (text, "") if len(text) <= left else (None, "the files are too long together")
