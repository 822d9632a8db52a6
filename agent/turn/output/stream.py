"""Show the message of an answer while the model is still writing it: the inside of the envelope's ``message``
string, or plain text once no envelope can follow. Everything else waits for the whole answer.
"""

import json
import re
from collections.abc import Callable
from typing import Protocol

from agent.errors import ModelError
from agent.turn.output.cleaning import OPENING_TOKENS, THOUGHT_CLOSES, THOUGHT_OPENS
from agent.turn.output.written_memory import EDGES
from memory.text import readable
from prompts.echo import may_become_echo

OnText = Callable[[str], None]

CERTAIN = 120
"""Characters of prose after which it counts as the answer itself."""
PATIENCE = 8192
"""After this many undecided characters, nothing is shown until the end."""
LOOKAHEAD = 60
"""Characters in which what has begun shows what it is: a tag, a fence, an escape."""

_OBJECT = re.compile(r"(?:```\w*\s*)?(?=\{)")
_STRINGS_AND_BRACES = re.compile(r"""(["'])((?:(?!\1)[^\\\n]|\\.)*+)\1|[{}\[\]]""", re.DOTALL)
_MESSAGE = re.compile(r"""[{,]\s*(["']?)message\1\s*:\s*"(?=..)""", re.I | re.DOTALL)
_TAG = r"[<◁]/?[|｜a-z]|\[/?(?:INST|TOOL|THINK)"
_NOT_PROSE = re.compile(rf"[`\[\"“｛]|{_TAG}|(?:assistant)?analysis[A-Z]|(?:message|reply):", re.IGNORECASE)
_KEYS = "(?:message|memories|reply|response|answer|name|tool|function|type|text|content|thoughts?|output)"
_ENVELOPE = re.compile(rf"""(?:```\w*\s*)?(?=\{{\s*\\*["']?{_KEYS}\\*["']?\s*:)""", re.IGNORECASE)
_PROSE_ENDS = re.compile(rf"{_ENVELOPE.pattern}|{_TAG}", re.IGNORECASE)
_DOUBTFUL = re.compile(r"[{｛<◁\[`]")
_UNITS = re.compile(r"""(?:[^\\"]++|\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))*+""")
_UNFINISHED = re.compile(r"(?:\r|[\ud800-\udbff]|\x1b(?:\[[0-?]{0,32}[ -/]{0,4})?)\Z")


class MessageStream:
    """Extracts the visible message from the model's text as it streams in. If the output is well-formed, what
    it returned is a prefix of the final message; otherwise compare that with `shown`."""

    def __init__(self) -> None:
        self.shown = ""
        """The text returned so far."""
        self._tail = ""
        """What was fed and is not decided yet; short."""
        self._step: Callable[[], str | None] = self._before
        """Reads from the tail and returns what to show, or None to wait for more."""
        self._searched = 0
        self._unsettled = ""
        """Blanks that may be the last ones, and half a character."""

    def feed(self, delta: str) -> str:
        """Add text from the model. Returns the newly visible text, often none."""
        if self._step == self._wait_for_end:
            return ""
        self._tail += delta
        before = len(self.shown)
        while self._tail and (piece := self._step()) is not None:
            self.shown += self._settled(piece)
        if len(self._tail) + len(self._unsettled) > PATIENCE:
            self._wait_for_end()
        return self.shown[before:]

    def _wait_for_end(self) -> str | None:
        """Show nothing more: the rest comes with the final answer."""
        return self._go(self._wait_for_end, "") or None

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
        if brace := _OBJECT.match(text):
            return self._go(self._object, text[brace.end() :])
        if closed := THOUGHT_CLOSES.search(text):
            return self._go(self._before, text[closed.end() :])
        if len(text) >= LOOKAHEAD and _NOT_PROSE.match(text):
            return self._wait_for_end()
        if opened := _ENVELOPE.search(text):  # a fenced envelope after prose may be a sample
            fenced = text.count("```", 0, opened.end()) % 2
            return self._wait_for_end() if fenced else self._go(self._object, text[opened.end() :])
        return None if len(text) < CERTAIN else self._go(self._prose, text)

    def _prose(self) -> str | None:
        """Show plain text, up to where an object or a chat token begins or may begin."""
        if ends := _PROSE_ENDS.search(self._tail):
            text = self._tail[: ends.start()]
            self._wait_for_end()
            return text
        doubtful = _DOUBTFUL.search(self._tail, max(0, len(self._tail) - LOOKAHEAD))
        end = doubtful.start() if doubtful else len(self._tail)
        text, self._tail = self._tail[:end], self._tail[end:]
        return text or None

    def _object(self) -> str | None:
        """Read the outermost object up to the string of its message."""
        for opened in _MESSAGE.finditer(self._tail, self._searched):
            self._searched = opened.start() + 1
            before, inside = self._tail[: self._searched], self._tail[opened.end() :]
            if _depth(before) == 1 and not inside.startswith('""'):  # three quotes are another string
                return self._go(self._string, inside)
        self._searched = max(self._searched, len(self._tail) - 2 * LOOKAHEAD)
        return None

    def _string(self) -> str | None:
        """Show the inside of the message up to its closing quote, or to one that should have been escaped."""
        units = _UNITS.match(self._tail)
        if units and units.end():
            self._tail = self._tail[units.end() :]
            return str(json.loads(f'"{units[0]}"', strict=False))
        undecided = self._tail[0] == "\\" and len(self._tail) < LOOKAHEAD
        return None if undecided else self._wait_for_end()

    def _settled(self, text: str) -> str:
        """Return the part that is safe to show: whole characters, without blanks that may be trailing."""
        text = self._unsettled + text
        cut = unfinished.start() if (unfinished := _UNFINISHED.search(text)) else len(text)
        whole = readable(text[:cut])
        words = whole.rstrip(EDGES)
        self._unsettled = whole[len(words) :] + text[cut:]
        if self.shown:
            return words
        words = words.lstrip(EDGES)
        if self._step == self._string and words.startswith("{"):  # perhaps an envelope that is encoded twice
            self._wait_for_end()
            return ""
        return words


def _depth(text: str) -> int:
    """Return how many brackets are open at the end of a text."""
    marks = [mark[0] for mark in _STRINGS_AND_BRACES.finditer(text)]
    return sum(mark in ("{", "[") for mark in marks) - sum(mark in ("}", "]") for mark in marks)


class Extract(Protocol):
    """Reads the answer's text out of what the model writes."""

    shown: str
    """The text returned so far."""

    def feed(self, text: str) -> str: ...


class ShownText:
    """Shows the text of the answer as the model writes it, and at the end what was held back as uncertain.

    Only the text of the last model call is the answer, and only its end shows that a call was the last. So
    text that an earlier call wrote beside its tool calls is shown too, on lines of its own.
    """

    def __init__(self, on_text: OnText, extract: Callable[[], Extract], *, one_object: bool = False) -> None:
        """`extract` begins with a model call. An answer that is `one_object` has no text before it."""
        self._on_text, self._extract, self._one_object = on_text, extract, one_object
        self._new_line = ""
        self._call = extract()
        self.text = ""
        """What was shown of the present model call."""

    def feed(self, written: str) -> None:
        self._call.feed(written)
        if self.text or not may_become_echo(self._call.shown):
            self._show(self._call.shown[len(self.text) :])

    def call_tools(self) -> None:
        """Begin with the text of the next model call."""
        if self._one_object and self.text:
            raise ModelError("the model called a tool after its answer in the form of response_format")
        self._new_line = "\n" if self.text else self._new_line
        self._call, self.text = self._extract(), ""

    def end(self, message: str) -> None:
        """Show what is left of the answer; all of it, below, if what was shown is not the answer."""
        if self.text.startswith(message):
            return  # such as one that was cut where it began to loop
        if not message.startswith(self.text):
            self.text, self._new_line = "", "\n"
        self._show(message[len(self.text) :])

    def _show(self, text: str) -> None:
        if text:
            self._on_text(self._new_line + text)
            self.text, self._new_line = self.text + text, ""
