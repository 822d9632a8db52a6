"""An answer written as labelled lines instead of JSON: ``message: …``, ``memories:``, ``- content: …``."""

import re

from agent.reply.quotes import unescape
from agent.reply.repair import CutText, Fields, objects_in

_LABEL = re.compile(
    r"^[\s#>*_-]{0,9}(message|reply|response|answer)[*_ \t]{0,4}:[*_]{0,3}[ \t]*", re.IGNORECASE
)
_MEMORIES = re.compile(
    r"^[ \t#>*_]{0,9}[\"']?memories[\"']?[*_ \t]{0,4}:[*_]{0,3}", re.IGNORECASE | re.MULTILINE
)
_FIELD = re.compile(r"[\"']?([A-Za-z_]\w{0,30})[\"']?[ \t]*:(?:[ \t]+(.*)|$)")
_ITEM = re.compile(r"([ \t]*)[-*•][ \t]+(.*)")
_FENCE = re.compile(r"```[\w+-]{0,20}\Z")
_BLOCK = re.compile(r"[|>][+-]?[ \t]*\n")


def outline_in(text: str) -> Fields | None:
    """The fields of an outline, as from an object; None where the text is none."""
    label = _LABEL.match(text)
    memories = _MEMORIES.search(text)
    start = label.end() if label else 0
    if memories is None:
        labelled = label is not None and label[1].lower() == "message"
        return Fields(message=_message(text[start:])) if labelled else None
    kept = _memories(text[memories.end() :])
    if label is None and not (isinstance(kept, list) and any(isinstance(item, Fields) for item in kept)):
        return None  # the reply has a heading of that name
    return Fields(message=_message(text[start : memories.start()]), memories=kept)


def _message(text: str) -> str:
    folded = text.startswith(">")
    if block := _BLOCK.match(text):
        lines = [line.strip() for line in text[block.end() :].strip("\n").split("\n")]
        return (" " if folded else "\n").join(lines).strip()
    text = _FENCE.sub("", text.strip()).strip()
    value = _value(text) if text.startswith(('"', "'")) else text
    return value if isinstance(value, str) else text


def _memories(text: str) -> object:
    """The list under its label: in brackets, or an item a dash."""
    inline = text.lstrip()
    if inline.startswith(("[", "{")):
        return _value(inline.rstrip().removesuffix("```"))
    items: list[Fields | str] = []
    field, outer = "", -1
    for line in text.split("\n"):
        item = _ITEM.match(line)
        if item is not None and (outer < 0 or len(item[1]) <= outer):
            outer = len(item[1])
            field = _start(items, item[2])
        elif item is not None and field and items and isinstance(items[-1], Fields):
            below = items[-1].setdefault(field, [])
            if isinstance(below, list):
                below.append(_value(item[2]))
        elif (pair := _FIELD.fullmatch(line.strip())) and items and isinstance(items[-1], Fields):
            field = _set(items[-1], pair)
    return _with_cut(items, text)


def _start(items: list[Fields | str], text: str) -> str:
    pair = _FIELD.fullmatch(text.strip())
    if pair is None:
        value = _value(text)
        items.append(value if isinstance(value, str | Fields) else text)
        return ""
    fields = Fields()
    items.append(fields)
    return _set(fields, pair)


def _set(fields: Fields, pair: re.Match[str]) -> str:
    written = (pair[2] or "").strip()
    if written:
        fields[pair[1]] = _value(written)
    return pair[1]


def _with_cut(items: list[Fields | str], text: str) -> list[Fields | str]:
    """Mark the last item as cut where the text stops in it before it has what the first one has."""
    if len(items) > 1 and not text.endswith("\n"):
        first, last = items[0], items[-1]
        if isinstance(first, Fields) and isinstance(last, Fields):
            last.cut = len(last) < len(first)
    return items


def _value(written: str) -> object:
    """A value as JSON would have it, where it is quoted or bracketed; otherwise the text itself."""
    written = written.strip()
    if written[:1] in ('"', "'") and written[-1:] == written[:1] and len(written) > 1:
        return unescape(written[1:-1])
    if written[:1] in ("[", "{"):
        found = next(objects_in('{"v": ' + written + "}", lambda _: True), None)
        return None if found is None else found.value.get("v")
    return CutText() if not written else None if written.lower() in ("null", "none", "~") else written
