"""Parses the model's final answer: ``{"message": str, "memories": [...]}``, in whatever form it was written.

Otherwise than as JSON, too: without the noise around it (`cleaning`), as malformed JSON (`json_repair`) whose
objects are searched for the answer (`answer_object`), as labelled lines (`labels`), or as plain text.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from pydantic_core import from_json

from agent.models.json_repair import CutText, Found, in_ascii, objects_in, read_object, unescape
from agent.turn.output import cleaning
from agent.turn.output.answer_object import (
    MESSAGES,
    OTHER_MESSAGES,
    Envelope,
    envelope_in,
    is_call,
    sentences_in,
    united,
)
from agent.turn.output.cleaning import trimmed, unfenced
from agent.turn.output.labels import labelled_fields, memories_below
from agent.turn.output.memories import drafts_in, first, forget_in, named
from memory.records import Draft
from memory.text import readable

# Shown if nothing readable remains of an answer, and if it holds memories but no message.
FALLBACK = "Sorry, I lost my words there. Could you say that again?"
FALLBACK_NOTED = "Noted, I will remember that."
NEARBY = 400
"""Characters around an object that help decide whether it is the answer or part of one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The message for the user, never blank, and the memories to store."""

    message: str
    memories: tuple[Draft, ...] = ()
    forget: tuple[str, ...] = ()
    """What the person asked to forget, in a sentence each. Nothing is forgotten until they confirm."""


LABELS = f"(?:{'|'.join(MESSAGES)}|memories)"
_KEY_FIRST = re.compile(rf"(?:```\w*\s{{0,9}})?[\"']{LABELS}[\"']\s{{0,9}}:", re.I)
_ENCODED = re.compile(
    r'"(?:[^"\\]|\\.)*+"\Z|\s*"?\s*\{\s{0,99}\\+"\w{1,40}\\+"\s{0,9}:'
    rf'|[^{{]*+\{{\s{{0,99}}\\+"{LABELS}\\+"\s{{0,9}}:',
    re.DOTALL,
)
"""One JSON string, or an object whose quotes are escaped; after prose, one that may be the answer."""
_OBJECT_STARTS = re.compile(r"(?:```\w*\s*)?[\[{]\s*(?:[\[{\"']|\w{1,40}\s*:|\Z)")
_SYNTAX = re.compile(r"[\s{}\[\]\"'`,:\\]*(?:json|null|true|false)?[\s{}\[\]\"'`,:\\]*")
PLACEHOLDERS = frozenset("str string text … ...".split())
"""What the message is in the form of an answer that a model repeats."""
_FENCE_OPENS = re.compile(r"```[\w+-]{0,20}\s{0,9}\Z")
_FENCED = re.compile(r"```[\w+-]*[ \t]*\n(?:.*\n)?[ \t]*```", re.DOTALL)


def parse_answer(raw: str) -> Answer:
    """Parse a model's final output. Never raises: any input gives a readable answer."""
    return well_formed(raw) or _repaired(readable(raw), 0)


def well_formed(raw: str) -> Answer | None:
    """Return the answer if it has exactly the requested form, as nearly always; otherwise None."""
    try:
        value = from_json(raw)
    except (ValueError, TypeError):
        return None
    match value:
        case {"message": str(message), "memories": list(memories), **rest} if rest.keys() <= {"forget"}:
            shown = trimmed(readable(message))
            # A key that appears twice contributes both lists, and a message may itself be an envelope.
            if shown and not shown.startswith("{") and raw.count('"memories"') == 1:
                return Answer(shown, drafts_in(memories), forget_in([rest]))
    return None


def _repaired(text: str, depth: int) -> Answer:
    text = trimmed(cleaning.without_thoughts(cleaning.first_turn(text)))
    inside = _inside_fence(text)
    if depth < 3 and _ENCODED.match(inside):
        return _repaired(readable(unescape(inside.removeprefix('"').removesuffix('"'))), depth + 1)
    if _KEY_FIRST.match(in_ascii(text)):
        text = "{" + text.removeprefix("```json").lstrip("`")
    found = list(objects_in(text, lambda value: envelope_in(value) is not None))
    envelope, around = _chosen(text, found)
    if envelope is None or envelope.message is None:
        labelled = labelled_fields(_inside_fence(cleaning.prose(text)))
        if labelled and (envelope is None or "memories" in labelled):
            envelope, around = envelope_in(labelled), ""
        elif labelled and (beside := labelled_fields(around)):
            around = str(beside["message"])
    if envelope is None:
        return Answer(_plain(around, found))
    message, memories = envelope.message or "", drafts_in(envelope.memories)
    if isinstance(message, CutText) and (token := cleaning.TURN_ENDS.search(message)):
        message = message[: token.start()]
    around = "" if cleaning.announces(around) else around
    shown = trimmed(readable(message)) or around or (FALLBACK_NOTED if memories else FALLBACK)
    return Answer(shown, memories, forget_in([item.value for item in found]))


def _chosen(text: str, found: list[Found]) -> tuple[Envelope | None, str]:
    """Return the envelope among the objects, and the sentences around it. Envelopes of this speaker's turn
    that follow one another are one answer. One that follows sentences is a corrected version of the draft
    before them."""
    parts: list[Envelope] = []
    said: str | None = None
    taken: list[Found] = []
    for item in found:
        candidate = envelope_in(item.value)
        if candidate is None:
            taken += [item] if is_call(item.value) else []
            continue
        between = text[taken[-1].end : item.start] if taken else ""
        if parts and cleaning.NEXT_TURN.search(between):
            break
        if parts and candidate.message in PLACEHOLDERS:
            taken.append(item)
        elif candidate.sure or _stands_alone(text, item, candidate):
            taken.append(item)
            corrected = candidate.message is not None and bool(unfenced(between))
            if said in PLACEHOLDERS or (said is not None and corrected):
                parts = []
            parts.append(candidate)
            said = said if candidate.message is None else candidate.message
    envelope, around = united(parts), _around(text, taken)
    if envelope and not envelope.memories:
        envelope = Envelope(envelope.message, memories_below(text[taken[-1].end :]))
    return envelope, around


def _stands_alone(text: str, item: Found, candidate: Envelope) -> bool:
    """Return whether an object with a message and no memories is the answer, not data that it shows."""
    before, after = text[max(0, item.start - NEARBY) : item.start], text[item.end : item.end + NEARBY]
    said = [unfenced(before), unfenced(after)]
    if memories_below(after) is not None or not any(said):
        return True
    return candidate.bare and not (_FENCE_OPENS.search(before[-40:]) and all(said))


def _around(text: str, taken: list[Found]) -> str:
    """Return the sentences before the objects, or else those after them."""
    if not taken:
        return cleaning.prose(text)
    after = [text[one.end : other.start] for one, other in pairwise(taken)]
    return unfenced(text[: taken[0].start]) or unfenced("\n".join([*after, text[taken[-1].end :]]))


def _inside_fence(text: str) -> str:
    """Return the inside of a text that is one fenced block; any other text unchanged."""
    return text.split("\n", 1)[1].rstrip("` \n") if _FENCED.fullmatch(text) else text


def _plain(text: str, found: list[Found]) -> str:
    """Return the text of an answer without an envelope; `FALLBACK` if all of it is syntax."""
    if _SYNTAX.fullmatch(text):
        return FALLBACK
    sample = found and _FENCED.fullmatch(text) and not first(named(found[0].value), OTHER_MESSAGES)
    if sample or _OBJECT_STARTS.match(in_ascii(text)) is None:
        return text
    items = [read_object('{"items": ' + text + "}", 0)] if text.startswith("[") else found
    values = [item.value for item in items]
    sentences = (trimmed(readable(said)) for value in values for said in sentences_in(value))
    return max(sentences, key=len, default=FALLBACK)
