"""Consolidation without a model: a summary made of quotations, and what people state in a fixed form."""

import re
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from agent.models.offline_reading import stated_name, statements
from memory.records import Message
from memory.text import sentences

MOST_SENTENCES = 5
LONGEST_SUMMARY = 700
LONGEST_SENTENCE = 240
"""Characters."""


def plain_summary(previous: str, messages: Sequence[Message]) -> str:
    """The newest five statements of people, each with who said it: "Anna: We rent." The previous summary
    unchanged if nothing new was stated."""
    kept = sentences(previous)
    for message in messages:
        if message.role == "user":
            name = " ".join(re.sub(r"[:.!?]", " ", message.author).split())[:40] or "Somebody"
            stated = sentences(" ".join(statements(message.text)))
            kept += [line for text in stated if (line := f"{name}: {_sentence(text)}") not in kept]
    kept = kept[-MOST_SENTENCES:]
    while len(" ".join(kept)) > LONGEST_SUMMARY:
        kept = kept[1:]
    return " ".join(kept)


def plain_updates(text: str) -> list[tuple[str, str]]:
    """(key, value) pairs for the person's context: a name in "my name is Mickael" and a time zone in its own
    notation, "Europe/Paris"."""
    found = [("name", name)] if (name := stated_name(text)) else []
    for zone in re.findall(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?", text):
        try:
            found.append(("timezone", ZoneInfo(zone).key))
        except (KeyError, OSError, ValueError):
            continue
    return found


def _sentence(text: str) -> str:
    """On one line with an end, and without a colon that looks like another speaker."""
    flat = re.sub(r":(?=\s|$)", " –", " ".join(text.split()))
    flat = flat if len(flat) <= LONGEST_SENTENCE else f"{flat[:LONGEST_SENTENCE].rstrip()} …"
    return flat if flat[-1] in ".!?…。！？؟" else f"{flat}."
