"""Consolidation without a model: a summary of quotations, and profile values that people state in a fixed
form."""

import re
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from agent.models.offline_reading import stated_name, statements
from memory.records import Message
from memory.text import sentences

MOST_SENTENCES = 5
LONGEST_SUMMARY = 700
LONGEST_SENTENCE = 240
"""In characters."""


def plain_summary(previous: str, messages: Sequence[Message]) -> str:
    """Return the newest five statements of people with their speakers, each on a line: "Anna: We rent."
    Returns `previous` unchanged if nobody stated anything new."""
    kept = previous.splitlines()
    for message in messages:
        if message.role == "user":
            name = " ".join(re.sub(r"[:.!?]", " ", message.author).split())[:40] or "Somebody"
            stated = sentences(" ".join(statements(message.text)))[-MOST_SENTENCES:]
            kept += [line for text in stated if (line := f"{name}: {_sentence(text)}") not in kept]
    kept = kept[-MOST_SENTENCES:]
    while len("\n".join(kept)) > LONGEST_SUMMARY:
        kept = kept[1:]
    return "\n".join(kept)


def plain_updates(text: str) -> list[tuple[str, str]]:
    """Return (key, value) pairs for the profile: a name from "my name is Mickael" and a time zone such as
    "Europe/Paris"."""
    found = [("name", name)] if (name := stated_name(text)) else []
    for zone in re.findall(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?", text):
        try:
            found.append(("timezone", ZoneInfo(zone).key))
        except (KeyError, OSError, ValueError):
            continue
    return found


def _sentence(text: str) -> str:
    """Return the text on one line, with final punctuation and without a colon that looks like another
    speaker."""
    flat = re.sub(r":(?=\s|$)", " –", " ".join(text.split()))
    flat = flat if len(flat) <= LONGEST_SENTENCE else f"{flat[:LONGEST_SENTENCE].rstrip()} …"
    return flat if flat[-1] in ".!?…。！？؟" else f"{flat}."
