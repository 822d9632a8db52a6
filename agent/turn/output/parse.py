"""Parses the model's final answer: ``{"message": str, "memories": [...]}``, whole, damaged, several times, or
as plain text."""

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from pydantic_core import from_json

from agent.models.json_objects import CutText, Fields, Found, in_ascii, objects_in, unescape
from agent.turn.output.cleaning import NEXT_TURN, cleaned, first_turn, prose, unfenced
from agent.turn.output.envelope import OTHER_MESSAGES, Envelope, envelope_in, is_call, sentences_in
from agent.turn.output.memories import drafts_in, is_memory, trimmed
from memory.records import Draft
from memory.text import readable

# Shown if nothing readable remains of an answer and nothing was found to quote, and if it holds memories but
# no message.
FALLBACK = "Sorry, I lost my words there. Could you say that again?"
FALLBACK_NOTED = "Noted, I will remember that."
MOST_FORGET = 8
NEARBY = 400
"""Characters around an object that help decide whether it is the answer or part of one."""
_ENCODED = re.compile(r'"(?:[^"\\]|\\.)*+"\Z|[^{]*+\{\s{0,99}\\+["\']\w{1,40}\\+["\']\s{0,9}:', re.DOTALL)
"""One JSON string, or an object whose quotes are escaped."""
_MAY_BE_ENVELOPE = ("{", '"message"')
_WHOLE_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*+)"\s*[,}]', re.DOTALL)
_CLOSED = re.compile(r'"\s{0,99}[\]}]{1,9}\s{0,99}\Z')
"""The end of an answer whose last quote was not recognised as one."""
_SPILLED = re.compile(r"""\A([^{]*?)[\"',\s]*["']+memories\b["']*\s*:*\s*[\[{].*\Z""", re.DOTALL)
"""The memories of a message whose end was not recognised."""
_QUOTED_KEY = re.compile(r"\{\s*[\"']")
_SYNTAX = re.compile(r"[\s{}\[\]\"'`,:\\]*(?:json|null|true|false)?[\s{}\[\]\"'`,:\\]*")
_OBJECT_STARTS = re.compile(r"(?:```\w*\s*)?[\[{]\s*(?:[\[{\"'`]|\w{1,40}[\"']?\s*:|\Z)")
_BEGUN = re.compile(r"""(?:```\w*)?[\s\[\\"']*[{｛]\s*\\*["']\w*\\*["']?[\s:\\"'\[{]*\Z""")
"""An object of which not even the first value was written."""
_FENCED = re.compile(r"```[\w+-]*[ \t]*\n?(.*?)\n?[ \t]*(?:```)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answer:
    """The message for the user, never blank, and the memories to store."""

    message: str
    memories: tuple[Draft, ...] = ()
    forget: tuple[str, ...] = ()
    """What the person asked to forget, in a sentence each. Nothing is forgotten until they confirm."""


def parse_answer(raw: str, instead: str = FALLBACK) -> Answer:
    """Parse a model's final output. Never raises: any input gives a readable answer, and one of which nothing
    readable remains the message `instead`."""
    return well_formed(raw) or _repaired(readable(raw), 0, instead)


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
            if shown and not shown.startswith(_MAY_BE_ENVELOPE) and raw.count('"memories"') == 1:
                forget = [draft.content for draft in drafts_in(rest.get("forget"))]
                return Answer(shown, drafts_in(memories), tuple(forget[:MOST_FORGET]))
    return None


def _repaired(text: str, depth: int, instead: str) -> Answer:
    text = in_ascii(cleaned(text))
    inside = _inside_fence(text)
    if depth < 3 and _ENCODED.match(inside):
        return _repaired(readable(unescape(inside.removeprefix('"').removesuffix('"'))), depth + 1, instead)
    text, found = _without_cut_object(text, list(objects_in(text)))
    envelope, around = _chosen(text, found)
    memories, message = drafts_in(envelope.memories), _SPILLED.sub(r"\1", envelope.message or "")
    cut = isinstance(envelope.message, CutText)
    message = first_turn(_CLOSED.sub("", message)) if cut else message
    unclosed = "message" in message and message.count("{") > message.count("}")
    broken = cut or "memories" in message or unclosed
    if message.startswith(_MAY_BE_ENVELOPE) and depth < 3 and broken and not _is_json(message):
        message = _repaired(message, depth + 1, instead).message
    shown = _without_begun(readable(message)) or _without_begun(readable(_without_object(around, found)))
    shown = shown or (FALLBACK_NOTED if memories else instead)
    return Answer(shown, memories, tuple(dict.fromkeys(envelope.forget))[:MOST_FORGET])


def _chosen(text: str, found: list[Found]) -> tuple[Envelope, str]:
    """Return the envelope among the objects, and the sentences around it. Envelopes of this speaker's turn
    that follow one another are one answer. One that follows sentences is a corrected version of the draft
    before them."""
    whole, used = Envelope(), list[Found]()
    for item, following in zip_longest(found, found[1:]):
        between = text[used[-1].end if used else 0 : item.start]
        part = envelope_in(item.value)
        if part.sure or part.message is not None:
            told = [*filter(is_memory, item.whole)]
            part.add(Envelope(memories=told, sure=bool(told)))
        if part.sure and part.message is None:
            part.message = _message_in(text, item)
        if isinstance(item.value, list) and not part.sure and used and not unfenced(between):
            part = Envelope(memories=item.value, sure=not is_call(item.value))  # sentences to remember
        if not part.sure and (part.message is None or not _stands_alone(text, item, following, part)):
            used += [item] if is_call(item.value) else []
            continue
        if used and NEXT_TURN.search(between):
            break
        used.append(item)
        if whole.message is not None and part.message is not None and unfenced(between):
            whole = Envelope()
        whole.add(part)
    if not used:
        return whole, prose(text)
    after = [text[one.end : other.start] for one, other in pairwise(used)]
    return whole, unfenced(text[: used[0].start]) or unfenced("\n".join([*after, text[used[-1].end :]]))


def _message_in(text: str, item: Found) -> str | None:
    """Return the message that is written whole in an object, wherever damage has put it."""
    whole = _WHOLE_MESSAGE.search(text, item.start, item.end)
    return unescape(whole[1]) if whole else None


def _stands_alone(text: str, item: Found, following: Found | None, part: Envelope) -> bool:
    """Return whether an object with a message and no memories is the answer, not data that it shows."""
    before = text[max(0, item.start - NEARBY) : item.start]
    after = text[item.end : following.start if following else item.end + NEARBY]
    around = [unfenced(before), unfenced(after)]
    return not any(around) or (part.bare and not (text.count("```", 0, item.start) % 2 and all(around)))


def _without_cut_object(text: str, found: list[Found]) -> tuple[str, list[Found]]:
    """Leave out the last object if it was cut before anything of the answer was in it."""
    start = found[-1].start if found and getattr(found[-1].value, "cut", False) else 0
    if not trimmed(text[:start]) or not _QUOTED_KEY.match(text, start):
        return text, found
    last = envelope_in(found[-1].value)
    return (text, found) if last.sure or last.message is not None else (text[:start], found[:-1])


def _is_json(text: str) -> bool:
    with suppress(ValueError):
        from_json(text)
        return True
    return False


def _inside_fence(text: str) -> str:
    """Return the inside of a text that is one fenced block; any other text unchanged."""
    block = _FENCED.fullmatch(text)
    return trimmed(block[1]) if block else text


def _without_object(text: str, found: list[Found]) -> str:
    """Return the text of an answer without an envelope, or the sentences of an object that stands for it.
    A fenced one was asked for, and is shown."""
    if _SYNTAX.fullmatch(text):
        return ""
    says = any(
        isinstance(item.value, Fields) and Fields.named(item.value).first(OTHER_MESSAGES) for item in found
    )
    fenced = found and text.startswith("```") and text.endswith("```")
    if _OBJECT_STARTS.match(text) is None or (fenced and not says):
        return text
    sentences = (
        trimmed(readable(said)) for item in found for said in sentences_in(item.value) if said[0] != "{"
    )
    return max(sentences, key=len, default="")


def _without_begun(text: str) -> str:
    """Return the text without an object at its end that has only begun."""
    return trimmed(text[:-80] + _BEGUN.sub("", text[-80:]))
