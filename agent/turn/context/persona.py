"""The operator's persona for the companion: a Markdown file named by HACHI_PERSONA."""

from pathlib import Path

from agent.errors import SettingsError

MAX_CHARACTERS = 20_000
"""A persona is part of every prompt. A longer file is probably a mistake."""


def read_persona(path: Path | None) -> str:
    """Return the file's text; empty if no file is set. Raises SettingsError if it cannot be used."""
    if path is None:
        return ""
    try:
        with path.expanduser().open(encoding="utf-8-sig") as file:  # some editors write a byte order mark
            text = file.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise SettingsError(f"HACHI_PERSONA: {path} is not UTF-8 text") from None
    except (OSError, RuntimeError, ValueError) as error:  # the last two: a bad "~" or an impossible path
        why = getattr(error, "strerror", None) or error
        raise SettingsError(f"HACHI_PERSONA: {path} cannot be read ({why})") from error
    if "\x00" in text:
        raise SettingsError(f"HACHI_PERSONA: {path} is not UTF-8 text")
    if not text.strip():
        raise SettingsError(f"HACHI_PERSONA: {path} is empty; give a Markdown file, or unset it")
    if len(text) > MAX_CHARACTERS:
        raise SettingsError(f"HACHI_PERSONA: {path} has more than {MAX_CHARACTERS:,} characters; shorten it")
    return text.strip()
