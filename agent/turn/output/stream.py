"""The message of an answer while the model is still writing it: the inside of the envelope's ``message``
string, or plain text once no envelope can follow. Everything else waits for the whole answer.
"""

import re
from collections.abc import Callable

from agent.models.json_repair import CLOSERS, NEXT_KEY, CutText, in_ascii, read_object, unescape
from agent.turn.output.answer_object import CALL_NAMES, MESSAGES
from agent.turn.output.cleaning import EDGES, OPENING_TOKENS, THOUGHT_CLOSES, THOUGHT_OPENS, announces
from agent.turn.output.labels import MEMORIES
from agent.turn.output.memories import name_of
from agent.turn.output.parse import LABELS, PLACEHOLDERS
from memory.text import readable

CERTAIN, CERTAIN_AFTER_ALL = 120, 400
"""Characters of prose after which it counts as the answer itself; more if it announces one or talks about the
user."""
PATIENCE = 8192
"""After this many undecided characters, nothing is shown until the end."""
LOOKAHEAD = 60
"""Characters after a quote, brace or bracket that decide its meaning."""

_KEYS = rf"(?:{LABELS}|name|tool|function|tool_calls|type|text|content|thoughts?|thinking|reasoning|output)"
_OBJECT = re.compile(r"(```\w*\s*)?(?=\{)")
_ENVELOPE = re.compile(rf"""(```\w*\s*)?(?=\{{\s*\\*["']?{_KEYS}\\*["']?\s*:)""", re.IGNORECASE)
_MESSAGE_STRING = re.compile(
    rf"(?:{'|'.join(MESSAGES)})[^\w\s]{{0,2}}\s{{0,9}}:\s{{0,60}}([\"'`])(?=..)",
    re.IGNORECASE | re.DOTALL,
)
_NOISE = r"[<◁]/?(?:seed:|think|thought|reason|reflect|scratch|analysis|message>|memories>|tool|function"
_NOISE += r"|invoke|start_of|end_of|s>)"
_NOISE += r"|<[|｜]|\[/?(?:INST|TOOL|THINK)"
_NOT_PROSE = re.compile(
    rf"[`\[\"“]|{_NOISE}|[\s#>*_-]{{0,9}}{LABELS}[*_ \t]{{0,4}}(?:[:：=]|\n)"
    r"|(?:assistant)?analysis[A-Z]|(?:question|thought|action):",
    re.I,
)
_PROSE_ENDS = re.compile(rf"{_ENVELOPE.pattern}|{_NOISE}", re.IGNORECASE)
_DOUBTFUL = re.compile(r"[{｛<◁\[`]|\n[ \t]*(?:[#>*_|\"']|new |memor)", re.IGNORECASE)
_TALKS_OF_USER = re.compile(r"\b(?:the user|they want|output|format)\b", re.IGNORECASE)
_UNITS = {
    opener: re.compile(
        rf"(?:[^\\{closers}]++|\\(?:u[0-9a-f]{{4}}|U[0-9a-f]{{8}}|x[0-9a-f]{{2}}|(?-i:[^uUx])))*+",
        re.DOTALL | re.IGNORECASE,
    )
    for opener, closers in CLOSERS.items()
}
_ENDS_STRING = ",}]:\"'/#"
_UNFINISHED = re.compile(r"(?:\r|[\ud800-\udbff]|\x1b(?:\[[0-?]{0,32}[ -/]{0,4})?)\Z")


class MessageStream:
    """Extracts the visible message from the model's text as it streams in. If the output is well-formed, what
    it returned is a prefix of the final message; otherwise compare that with `shown`."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._tail = ""
        """What was fed and is not decided yet; short."""
        self._step: Callable[[], str | None] = self._before
        """Reads from the tail and returns what to show, or None to wait for more."""
        self._searched = 0
        self._quote = ""
        self._unsettled = ""
        """Blanks that may be the last ones, and half a character."""

    @property
    def shown(self) -> str:
        """The text returned so far."""
        return "".join(self._shown)

    def feed(self, delta: str) -> str:
        """Add text from the model. Returns the newly visible text, often none."""
        if self._step == self._hold:
            return ""
        self._tail += delta
        known = len(self._shown)
        while self._tail and (piece := self._step()) is not None:
            if text := self._settled(piece):
                self._shown.append(text)
        if len(self._tail) + len(self._unsettled) > PATIENCE:
            self._hold()
        return "".join(self._shown[known:])

    def _hold(self) -> str | None:
        """Show nothing more: the rest comes with the final answer."""
        self._step, self._tail = self._hold, ""
        return None

    def _go(self, step: Callable[[], str | None], tail: str) -> str:
        self._step, self._tail = step, tail
        return ""

    def _before(self) -> str | None:
        """Handle text before its kind is known: thoughts, an envelope, or sentences."""
        text = self._tail = self._tail.lstrip(EDGES)
        if opened := THOUGHT_OPENS.match(text):
            closed = THOUGHT_CLOSES.search(text, opened.end())
            self._tail = opened[0] + text[opened.end() :][-80:]  # enough to recognise an open thought
            return self._go(self._before, text[closed.end() :]) if closed else None
        if (token := OPENING_TOKENS.match(text)) and token.end() < len(text):
            return self._go(self._before, text[token.end() :])
        syntax = in_ascii(text)
        if brace := _OBJECT.match(syntax):
            return self._go(self._object, text[brace.end() :])
        if closed := THOUGHT_CLOSES.search(text):
            return self._go(self._before, text[closed.end() :])
        if len(text) >= LOOKAHEAD and _NOT_PROSE.match(text):
            return self._hold()
        if found := _ENVELOPE.search(syntax):  # a fenced envelope after prose may be a sample
            return self._hold() if found[1] else self._go(self._object, text[found.end() :])
        unclear = announces(text[:CERTAIN]) or _TALKS_OF_USER.search(text)
        wait = len(text) < (CERTAIN_AFTER_ALL if unclear else CERTAIN)
        return None if wait else self._go(self._prose, text)

    def _prose(self) -> str | None:
        """Show plain text, up to where an envelope or a chat token begins or may begin."""
        if ends := _PROSE_ENDS.search(in_ascii(self._tail)) or MEMORIES.search(self._tail):
            text = self._tail[: ends.start()]
            self._hold()
            return text
        doubtful = _DOUBTFUL.search(self._tail, max(0, len(self._tail) - LOOKAHEAD))
        end = doubtful.start() if doubtful else len(self._tail)
        text, self._tail = self._tail[:end], self._tail[end:]
        return text or None

    def _object(self) -> str | None:
        """Read the outermost object up to the string of its message."""
        before = self._searched
        for opened in _MESSAGE_STRING.finditer(in_ascii(self._tail[before:])):
            self._searched = at = before + opened.end()
            if self._tail[at : at + 2] == 2 * self._tail[at - 1]:
                continue  # three quotes begin another kind of string
            fields = read_object(self._tail[: self._searched], 0).value
            *_, (name, message) = fields.items() or [("", None)]
            if name_of(name) not in MESSAGES or not isinstance(message, CutText):
                continue  # not the message of the outermost object
            if message or not set(CALL_NAMES).isdisjoint(map(name_of, fields)):
                return self._hold()
            self._quote = self._tail[self._searched - 1]
            return self._go(self._string, self._tail[self._searched :])
        self._searched = max(self._searched, len(self._tail) - 2 * LOOKAHEAD)
        return None

    def _string(self) -> str | None:
        """Show the inside of the message, up to a quote that ends it or may end it."""
        units = _UNITS[self._quote].match(self._tail)
        if units and units.end():
            goes_on = units.end() == len(self._tail)
            if not self._shown and goes_on and any(word.startswith(units[0]) for word in PLACEHOLDERS):
                return None
            if not self._shown and units[0] in PLACEHOLDERS:
                return self._hold()
            self._tail = self._tail[units.end() :]
            return unescape(units[0])
        after = in_ascii(self._tail[1:]).lstrip(EDGES)
        if len(self._tail) < LOOKAHEAD or not after:
            return None
        if self._tail[0] == "\\" or after[0] in _ENDS_STRING or NEXT_KEY.match(in_ascii(self._tail)):
            return self._hold()
        quote, self._tail = self._tail[0], self._tail[1:]
        return quote

    def _settled(self, text: str) -> str:
        """Return the part that is safe to show: whole characters, without blanks that may be trailing."""
        text = self._unsettled + text
        cut = unfinished.start() if (unfinished := _UNFINISHED.search(text)) else len(text)
        whole = readable(text[:cut])
        words = whole.rstrip(EDGES)
        self._unsettled = whole[len(words) :] + text[cut:]
        if self._shown:
            return words
        words = words.lstrip(EDGES)
        if self._step == self._string and words.startswith("{"):  # perhaps an envelope that is encoded twice
            self._hold()
            return ""
        return words
