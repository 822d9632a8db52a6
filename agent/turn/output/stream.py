"""The message of an answer while the model is still writing it.

Only what is certain is shown: the inside of the ``message`` string of an envelope, or plain text once it is
clear that no envelope follows. Everything else is held back, and comes with the answer at the end.
"""

import re
from collections.abc import Callable

from agent.models.json_repair import CLOSERS, NEXT_KEY, READ_KEY, closes_field, unescape
from agent.turn.output.answer import Answer, parse_answer
from agent.turn.output.cleaning import EDGES, OPENING_TOKENS, THOUGHT_CLOSES, THOUGHT_OPENS, announces
from agent.turn.output.envelope import CALL_NAMES, MESSAGES
from agent.turn.output.memories import name_of
from memory.text import readable

CERTAIN = 120
"""Characters of prose without an object, after which they are taken for the answer itself."""
CERTAIN_AFTER_ALL = 400
"""The same for prose that announces an answer or talks about the user."""
PATIENCE = 8192
"""Characters waited for before an undecided place is left to the end."""
_LOOKAHEAD = 60

_LABELS = r"(?:message|reply|response|answer|memories)"
_KEYS = rf"(?:{_LABELS}|name|tool|function|tool_calls|type|text|content|thoughts?|thinking|reasoning|output)"
_ENVELOPE = re.compile(rf"""(?:```\w*\s*)?[{{｛]\s*["'“]?{_KEYS}["'”]?\s*[:：]""", re.IGNORECASE)
_OBJECT = re.compile(r"(?:```\w*\s*)?[{｛]")
_NOISE = re.compile(
    r"</?(?:think|thought|reason|reflect|scratch|analysis|tool|function|invoke|start_of|end_of|s>)"
    r"|<[|｜]|\[/?(?:INST|TOOL|THINK)",
    re.I,
)
_NOT_PROSE = re.compile(
    rf"```|{_NOISE.pattern}|[\s#>*_-]{{0,9}}{_LABELS}[*_ \t]{{0,4}}[:：]"
    rf"""|["“]\s*(?:[{{\\\[]|{_LABELS}["”]\s*:)|\[\s*["{{]|analysis[A-Z]""",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(r"[{｛<\[]|`{1,3}")
_SENTENCE = re.compile(r"\w{1,40}+(?:\s++[^\s:]|[^\w\s:])")
_TALKS_OF_USER = re.compile(r"\b(?:the user|they want|output|format)\b", re.IGNORECASE)

_UNITS = {
    opener: re.compile(rf"(?:[^\\{closers}]++|\\u[0-9a-fA-F]{{4}}|\\[^uUx])*+", re.DOTALL)
    for opener, closers in CLOSERS.items()
}
_UNFINISHED = re.compile(r"(?:\r|[\ud800-\udbff]|\x1b(?:\[[0-?]{0,32}[ -/]{0,4})?)\Z")

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_NESTED = rf'[\[{{](?:{_STRING}|[^"\[\]{{}}]++)*+[\]}}]'
for _ in range(3):
    _NESTED = rf'[\[{{](?:{_STRING}|[^"\[\]{{}}]++|{_NESTED})*+[\]}}]'
_VALUE = re.compile(
    rf"\s*+(?:{_STRING}|'(?:[^'\\]++|\\.)*+'|“[^”]*+”|{_NESTED}|[^\s,}}\"'“{{\[][^,}}\"'“{{\[]*+(?=[,}}]))",
    re.DOTALL,
)


class MessageStream:
    """Feed it the model's text as it comes; it returns what has become visible of the message.

    For well-formed output, what was returned so far is always a prefix of the final message. Otherwise
    the final answer decides: compare it with `shown`.
    """

    def __init__(self) -> None:
        self._raw: list[str] = []
        self._shown: list[str] = []
        self._tail = ""
        """What was fed and is not decided yet; short."""
        self._step: Callable[[], str | None] = self._before
        """Reads from the tail and returns what to show, or None to wait for more."""
        self._quote = ""
        self._half = ""
        """The first half of a character."""
        self._blanks: list[str] = []

    @property
    def shown(self) -> str:
        """All that was returned so far."""
        return "".join(self._shown)

    def feed(self, delta: str) -> str:
        """The newly visible text, often none."""
        self._raw.append(delta)
        if self._step == self._hold:
            return ""
        self._tail += delta
        known = len(self._shown)
        while self._tail and (piece := self._step()) is not None:
            self._shown.append(self._show(piece))
        if len(self._tail) > PATIENCE:
            self._hold()
        return "".join(self._shown[known:])

    def close(self) -> Answer:
        """The whole answer, from everything that was fed."""
        return parse_answer("".join(self._raw))

    def _hold(self) -> str | None:
        """Show nothing more: the rest comes with the answer."""
        self._step, self._tail = self._hold, ""
        return None

    def _go(self, step: Callable[[], str | None], behind: int = 0) -> str:
        self._step, self._tail = step, self._tail[behind:]
        return ""

    def _before(self) -> str | None:
        """Before it is certain what is being written: thoughts, an envelope, or sentences."""
        text = self._tail = self._tail.lstrip(EDGES)
        if opened := THOUGHT_OPENS.match(text):
            return self._go(self._thought, opened.end())
        if (token := OPENING_TOKENS.match(text)) and token.end() < len(text):
            return self._go(self._before, token.end())
        if brace := _OBJECT.match(text):
            return self._go(self._object, brace.end())
        if closed := THOUGHT_CLOSES.search(text):
            return self._go(self._before, closed.end())
        if len(text) >= 48 and _NOT_PROSE.match(text):
            return self._hold()
        if found := _ENVELOPE.search(text):
            return self._hold() if found[0][0] == "`" else self._go(self._object, found.start() + 1)
        unclear = announces(text[:CERTAIN]) or _TALKS_OF_USER.search(text)
        return None if len(text) < (CERTAIN_AFTER_ALL if unclear else CERTAIN) else self._go(self._text)

    def _thought(self) -> str | None:
        if closed := THOUGHT_CLOSES.search(self._tail):
            return self._go(self._before, closed.end())
        self._tail = self._tail[-80:]
        return None

    def _text(self) -> str | None:
        """Plain text, held from wherever an envelope or a chat token may begin until it clearly does not."""
        doubtful = _DOUBTFUL.search(self._tail)
        end = doubtful.start() if doubtful else len(self._tail)
        if doubtful and end == 0:
            if _ENVELOPE.match(self._tail) or _NOISE.match(self._tail):
                return self._hold()
            if len(self._tail) < _LOOKAHEAD:
                return None
            end = doubtful.end()
        text, self._tail = self._tail[:end], self._tail[end:]
        return text

    def _object(self) -> str | None:
        """The outermost object, as far as its message; anything unexpected is left to the end."""
        text = self._tail = self._tail.lstrip(EDGES + ",，")
        key = READ_KEY.match(text)
        if key is None:
            return None if text[:1] not in ("{", "}", "[", "]") and len(text) < 80 else self._hold()
        name = name_of(key[2] or key[1])
        if name in CALL_NAMES:
            return self._hold()
        if name not in MESSAGES:
            value = _VALUE.match(text, key.end())
            return self._go(self._object, value.end()) if value else None
        value_text = text[key.end() :].lstrip(EDGES)
        self._quote = value_text[:1]
        if self._quote not in ("", *CLOSERS) or value_text.startswith(self._quote * 3 or " "):
            return self._hold()
        return self._go(self._string, len(text) - len(value_text) + 1) if len(value_text) > 2 else None

    def _string(self) -> str | None:
        """The inside of the message."""
        units = _UNITS[self._quote].match(self._tail)
        if units and units.end():
            piece, self._tail = unescape(units[0]), self._tail[units.end() :]
            return piece
        if self._tail[0] == "\\":
            return self._hold() if self._tail[1:2] in ("U", "x") or len(self._tail) > 12 else None
        return self._at_quote()

    def _at_quote(self) -> str | None:
        """Hold from a quote that ends the message, or may; return one that belongs to the sentence."""
        after = self._tail[1:].lstrip(EDGES)
        word = after[0] in ",，" and after[1:].lstrip(EDGES) if after else None
        if not after or word == "" or (self._tail[1:2].isalpha() and len(self._tail) < 16):
            return None
        if word and word[0].isalpha():  # a comma of the sentence, or one before a bare key
            if len(word) < _LOOKAHEAD and not _SENTENCE.match(word):
                return None
            ends = closes_field(self._tail, 0)
        else:
            ends = after[0] in ",，}｝]:：\"'“/#" or NEXT_KEY.match(self._tail) is not None
        if ends:
            return self._hold()
        quote, self._tail = self._tail[0], self._tail[1:]
        return quote

    def _show(self, text: str) -> str:
        """What of it can be shown now: whole characters, without blanks that may turn out to be the last."""
        text = self._half + text
        cut = unfinished.start() if (unfinished := _UNFINISHED.search(text)) else len(text)
        self._half, text = text[cut:], readable(text[:cut])
        words = text.rstrip(EDGES)
        if not words:
            self._blanks.append(text)
            return ""
        blanks, self._blanks = "".join(self._blanks), [text[len(words) :]]
        if any(self._shown):
            return blanks + words
        words = words.lstrip(EDGES)
        if self._step == self._string and words.startswith("{"):  # perhaps an envelope encoded twice
            self._hold()
            return ""
        return words
