"""An answer in labelled lines instead of JSON: ``message: …``, ``**Memories:**``, ``- content: …``."""

import re

from agent.models.json_repair import Fields, read_object, unescape
from agent.turn.output.answer_object import MEMORIES as MEMORY_WORDS
from agent.turn.output.answer_object import MESSAGES

_COLON = r"(?:[:：]|=(?=[ \t]*[\"'\[]))"
_MESSAGE = re.compile(
    rf"[\s#>*_-]{{0,9}}({'|'.join(MESSAGES)})(?:[*_ \t]{{0,4}}{_COLON}[*_]{{0,3}}[ \t]*|[*_]{{0,3}}[ \t]*\n)",
    re.I,
)
_MESSAGE_BELOW = re.compile(r"\n" + _MESSAGE.pattern, re.I)
_NAME = rf"[\"']?(?:new )?(?:{'|'.join(MEMORY_WORDS)})(?: to \w{{4,8}})?[\"'*_]{{0,3}}"
MEMORIES = re.compile(
    rf"^(?:[ \t#>*_,`]{{0,9}}{_NAME}[ \t]{{0,4}}{_COLON}[*_]{{0,3}}|[#*_]{{1,6}} ?{_NAME}[*_ \t]*$"
    rf"|(?=\|[ \t*]*(?:content|fact|memory)[ \t*]*\|.{{0,200}}(?:subjects|ttl|importance)))",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM = re.compile(r"^([ \t]*)(?:[-*•]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_LIST_BELOW = re.compile(r"(\w{1,40}:)[ \t]*\n((?:[ \t]*[-*•][ \t]+.*(?:\n|\Z))+)")
_BARE_LIST = re.compile(r"[\s,`]{0,9}(?:json\b)?\s{0,9}(?=\[\s{0,9}[\"{])")
_NONE = re.compile(r"\W*(?:none|no|nothing|null|n/a)\b", re.IGNORECASE)
_EMPTY_FIELD = re.compile(r"^[ \t]*\w{1,40}:[ \t]*$", re.MULTILINE)
_FIELD = re.compile(r"^[ \t]*[\"'*]{0,2}(\w{1,40})[\"'*]{0,2}[ \t]*:[*]{0,2}(?=\s)", re.MULTILINE)
_HAS_KEY = re.compile(r"\{|[\"'*]{0,2}[A-Za-z_]\w{0,30}[\"'*]{0,2}[ \t]*:[*]{0,2}(?:[ \t]|$)", re.MULTILINE)
_TAG = re.compile(r"<(message|memories)>|</(?:message|memories)>")
_QUOTED = re.compile(r"^> ?", re.MULTILINE)
_MARK_BELOW = re.compile(r"(?:```[\w+-]{0,20}|[-*_]{3,9})\Z")


def labelled_fields(text: str) -> Fields | None:
    """Return the labelled parts as the fields of an object; None if the text has no such labels."""
    text = _TAG.sub(lambda tag: f"\n{tag[1]}: " if tag[1] else "", text).lstrip()
    if text.startswith(">"):  # all of it is quoted
        text = _QUOTED.sub("", text)
    label, memories = _MESSAGE.match(text), MEMORIES.search(text)
    if memories and memories.start() == 0 and (below := _MESSAGE_BELOW.search(text, memories.end())):
        items = _items(text[memories.end() : below.start()])
        return Fields(message=_message(text[below.end() :]), memories=items)
    start = label.end() if label else 0
    if memories is None:
        known = label is not None and label[1].lower() == "message" and label[0].strip()[-1] in ":：*_"
        return Fields(message=_message(text[start:])) if known else None
    items = _items(text[memories.end() :])
    if label is None and not (isinstance(items, list) and any(isinstance(item, Fields) for item in items)):
        return None  # the message has a heading with that name
    return Fields(message=_message(text[start : memories.start()]), memories=items)


def memories_below(text: str) -> object:
    """Return the memories at the beginning of what follows an answer, under their label or as a list; None if
    there are none."""
    text = text.lstrip(" \t\n,`")
    opening = MEMORIES.match(text) or _BARE_LIST.match(text)
    return _items(text[opening.end() :]) if opening else None


def _message(text: str) -> str:
    if text.startswith(("|", ">")):
        return (" " if text[0] == ">" else "\n").join(line.strip() for line in text.splitlines()[1:]).strip()
    text = _MARK_BELOW.sub("", text.strip()).strip()
    quoted = len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]
    return unescape(text[1:-1]) if quoted else text


def _items(text: str) -> object:
    """Parse the memories under their label: a list in brackets, or one item per dash."""
    inline = text.strip().removeprefix("```json").strip("` \n")
    if inline.startswith(("[", "{")):
        return read_object('{"memories": ' + inline + "}", 0).value.get("memories")
    if inline.startswith("|"):
        table = (line.strip().strip("|").split("|") for line in inline.splitlines() if line.startswith("|"))
        names, *rows = [[cell.strip(" \t*`") for cell in row] for row in table]
        return [Fields(zip(names, row, strict=False)) for row in rows if set(row[0]) - set(":- ")]
    dashes = list(_ITEM.finditer(text))
    if not dashes and len(inline.splitlines()) == 1 and not _NONE.match(inline):
        return inline
    outermost = [dash for dash in dashes if len(dash[1]) <= len(dashes[0][1])]
    ends = [dash.start() for dash in outermost[1:]] + [len(text)]
    items = [_item(text[dash.end() : end]) for dash, end in zip(outermost, ends, strict=False)]
    if len(items) > 1 and isinstance(items[0], Fields) and isinstance(items[-1], Fields):
        items[-1].cut = not text.endswith("\n") and len(items[-1]) < len(items[0])
    return items


def _item(text: str) -> str | Fields:
    if _HAS_KEY.match(text) is None:
        return text.strip().split("\n")[0].strip("\"' ")
    text = _LIST_BELOW.sub(lambda below: f"{below[1]} [{_ITEM.sub(', ', below[2])}]\n", text)
    text = _FIELD.sub(r'"\1":', _EMPTY_FIELD.sub("", text)).strip()
    return read_object(text if text.startswith("{") else "{" + text + "\n}", 0).value
