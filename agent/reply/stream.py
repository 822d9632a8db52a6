"""The message of an answer while the model is still writing it.

Only what is certain is shown: the inside of the ``message`` string of an envelope, or plain text once it is
clear that no envelope follows. Everything else is held back, and comes with the answer at the end.
"""

import re
from collections.abc import Callable

from agent.reply import Answer, parse_answer
from agent.reply.drafts import name_of
from agent.reply.envelope import CALL_NAMES, MESSAGES
from agent.reply.noise import EDGES, OPENING_TOKENS, THOUGHT_CLOSES, THOUGHT_OPENS, announces, readable
from agent.reply.quotes import CLOSERS, NEXT_KEY, READ_KEY, closes_field, unescape

CERTAIN = 120
"""Characters of prose without an object, after which they are taken for the answer itself."""
CERTAIN_AFTER_ALL = 400
"""The same for prose that announces an answer or talks about the user."""
PATIENCE = 4096
"""Characters waited for before an undecided place is left to the end."""

_MESSAGE_KEYS = r"(?:message|reply|response|answer|memories)"
_OTHER_KEYS = (
    r"(?:name|tool|function|tool_calls|type|text|content|thought|thoughts|thinking|reasoning|output)"
)
_ENVELOPE = re.compile(
    rf"""(?:```\w*\s*)?\{{\s*["'“]?(?:{_MESSAGE_KEYS}|{_OTHER_KEYS})["'”]?\s*:""", re.IGNORECASE
)
_NOISE = re.compile(
    r"</?(?:think|thought|reason|reflect|scratch|analysis|tool|function|invoke|start_of|end_of|s>)|<\||\[/?(?:INST|TOOL|THINK)",
    re.I,
)
_LABEL = re.compile(rf"[\s#>*_-]{{0,9}}{_MESSAGE_KEYS}[*_ \t]{{0,4}}:", re.IGNORECASE)
_ENCODED = re.compile(rf"""["“]\s*(?:\{{|\\|\[|{_MESSAGE_KEYS}["”]\s*:)""", re.IGNORECASE)
_DOUBTFUL = re.compile(r"[{<\[]|`{1,3}")
_SENTENCE = re.compile(r"\w{1,40}+(?:\s++[^\s:]|[^\w\s:])")
_LOOKAHEAD = 60
_TALKS_OF_USER = re.compile(r"\b(?:the user|they want|output|format)\b", re.IGNORECASE)

_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = r"\\u[dD][89abAB][0-9a-fA-F]{2}(?=\\u(?![dD][c-fC-F])[0-9a-fA-F]{4}|\\[^u]|[^\\])"
_SINGLE = r"\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^uUx]"
_UNITS = {
    opener: re.compile(rf"(?:[^\\{closers}]++|{_PAIR}|{_HALF}|{_SINGLE})*+", re.DOTALL)
    for opener, closers in CLOSERS.items()
}
_UNFINISHED = re.compile(r"(?:\r|[\ud800-\udbff]|\x1b(?:\[[0-?]{0,32}[ -/]{0,4})?)\Z")
_LITERAL = re.compile(r"[^,}\"'{\[]*+(?=[,}])")
_NESTED = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]]|[^"{}\[\]]++', re.DOTALL)


class MessageStream:
    """Feed it the model's text as it comes; it returns what has become visible of the message.

    For well-formed output, what was returned so far is always a prefix of the final message. Otherwise
    the final answer decides: compare it with `shown`.
    """

    def __init__(self) -> None:
        self._raw: list[str] = []
        self._tail = ""
        """What was fed and is not decided yet; short."""
        self._step: Callable[[], str | None] = self._head
        """Reads from the tail: returns what to show, or None to wait for more."""
        self._shown: list[str] = []
        self._unfinished = ""
        self._blanks: list[str] = []
        self._begun = False
        self._quote = ""
        self._spoken = False
        """Whether the string being read is the message."""
        self._after_prose = False
        self._depth = 0

    @property
    def shown(self) -> str:
        """All that was returned so far."""
        return "".join(self._shown)

    def feed(self, delta: str) -> str:
        """The newly visible text, often none."""
        self._raw.append(delta)
        if self._step == self._held:
            return ""
        self._tail += delta
        visible = []
        while self._tail and (piece := self._step()) is not None:
            visible.append(self._show(piece))
        if len(self._tail) > PATIENCE:
            self._hold()
        text = "".join(visible)
        self._shown.append(text)
        return text

    def close(self) -> Answer:
        """The whole answer, from everything that was fed."""
        return parse_answer("".join(self._raw))

    # What is being read, one step each.

    def _held(self) -> str | None:
        return None

    def _hold(self) -> str | None:
        self._step, self._tail = self._held, ""
        return None

    def _go(self, step: Callable[[], str | None], behind: int = 0) -> str:
        self._step, self._tail = step, self._tail[behind:]
        return ""

    def _head(self) -> str | None:
        """Before anything is certain."""
        text = self._tail = self._tail.lstrip(EDGES)
        if not text:
            return None
        if text[0] == "{":
            return self._go(self._key, 1)
        if text.startswith("`"):
            return self._fence(text)
        if text[0] in "<[":
            return self._tag(text)
        if text[0] in "\"“'" or _LABEL.match(text):
            if len(text) < 20:
                return None
            return self._hold() if _ENCODED.match(text) or _LABEL.match(text) else self._go(self._prose)
        return self._prose()

    def _fence(self, text: str) -> str | None:
        """An object in a fence is the envelope; another fenced block is left to the end."""
        line, newline, rest = text.partition("\n")
        if not newline or not rest.lstrip(EDGES):
            return None
        if self._after_prose or not rest.lstrip(EDGES).startswith("{"):
            return self._hold()
        return self._go(self._head, len(line) + 1)

    def _tag(self, text: str) -> str | None:
        if opened := THOUGHT_OPENS.match(text):
            return self._go(self._thought, opened.end())
        if (token := OPENING_TOKENS.match(text)) and token.end() < len(text):
            return self._go(self._head, token.end())
        if len(text) < 24 and ">" not in text and "]" not in text:
            return None
        if _NOISE.match(text):
            return self._hold() if len(text) > 40 else None
        return self._go(self._prose)

    def _thought(self) -> str | None:
        closed = THOUGHT_CLOSES.search(self._tail)
        if closed is not None:
            return self._go(self._head, closed.end())
        self._tail = self._tail[-20:]
        return None

    def _prose(self) -> str | None:
        """Sentences that may yet turn out to stand before the envelope."""
        self._step = self._prose
        text = self._tail
        if closed := THOUGHT_CLOSES.search(text):
            return self._go(self._head, closed.end())
        doubtful = _DOUBTFUL.search(text)
        if doubtful and (found := _ENVELOPE.search(text, doubtful.start())):
            self._after_prose = True
            return self._hold() if found[0].startswith("`") else self._go(self._head, found.start())
        certain = CERTAIN_AFTER_ALL if announces(text[:CERTAIN]) or _TALKS_OF_USER.search(text) else CERTAIN
        return None if len(text) < certain else self._go(self._text)

    def _text(self) -> str | None:
        """Plain text, held from wherever an envelope or a chat token may begin until it clearly does not."""
        doubtful = _DOUBTFUL.search(self._tail)
        if doubtful is None:
            text, self._tail = self._tail, ""
            return text
        if doubtful.start():
            text, self._tail = self._tail[: doubtful.start()], self._tail[doubtful.start() :]
            return text
        if _ENVELOPE.match(self._tail) or _NOISE.match(self._tail):
            return self._hold()
        if len(self._tail) < _LOOKAHEAD:
            return None
        text, self._tail = self._tail[: doubtful.end()], self._tail[doubtful.end() :]
        return text

    def _key(self) -> str | None:
        """A key of the outermost object; anything unexpected is left to the end."""
        self._tail = self._tail.lstrip(EDGES + ",")
        if not self._tail:
            return None
        key = READ_KEY.match(self._tail)
        if key is None:
            return None if self._tail[0] not in "{}[]" and len(self._tail) < 80 else self._hold()
        name = name_of(key[2] or key[1])
        if name in CALL_NAMES:
            return self._hold()
        self._spoken = name in MESSAGES
        return self._go(self._value, key.end())

    def _value(self) -> str | None:
        self._tail = self._tail.lstrip(EDGES)
        mark = self._tail[:1]
        if mark in CLOSERS:
            return self._opening(mark)
        if self._spoken or not mark:
            return self._hold() if mark else None
        if mark in "{[":
            self._depth = 0
            return self._go(self._nested)
        literal = _LITERAL.match(self._tail)
        return self._go(self._key, literal.end()) if literal else None

    def _opening(self, mark: str) -> str | None:
        if len(self._tail) < 3:
            return None
        if self._tail.startswith(mark * 3):
            return self._hold()
        self._quote = mark
        return self._go(self._string, 1)

    def _nested(self) -> str | None:
        """Pass over a list or an object."""
        while self._tail:
            part = _NESTED.match(self._tail)
            if part is None:
                return None
            self._tail = self._tail[part.end() :]
            self._depth += (part[0] in "{[") - (part[0] in "}]")
            if self._depth == 0:
                return self._go(self._key)
        return None

    def _string(self) -> str | None:
        """The inside of a string: the message is shown, another one passed over."""
        units = _UNITS[self._quote].match(self._tail)
        end = units.end() if units else 0
        if end:
            piece, self._tail = unescape(self._tail[:end]), self._tail[end:]
            return piece if self._spoken else ""
        if self._tail[0] == "\\":
            return self._hold() if self._tail[1:2] in ("U", "x") or len(self._tail) > 12 else None
        return self._at_quote()

    def _at_quote(self) -> str | None:
        """Whether an unescaped quote ends the string; when in doubt about the message, it is not shown on."""
        after = self._tail[1:].lstrip(EDGES)
        if not after or (self._tail[1:2].isalpha() and len(self._tail) < 16):
            return None
        if after[0] in ",}]:\"'“/#" or NEXT_KEY.match(self._tail):
            ahead = after[1:].lstrip(EDGES)
            sentence = after[0] == "," and ahead[:1].isalpha()
            undecided = sentence and len(ahead) < _LOOKAHEAD and not _SENTENCE.match(ahead)
            if after[0] == "," and (not ahead or undecided):
                return None
            if not sentence or closes_field(self._tail, 0):
                return self._hold() if self._spoken else self._go(self._key, 1)
        quote, self._tail = self._tail[0], self._tail[1:]
        return quote if self._spoken else ""

    def _show(self, text: str) -> str:
        """What of it can be shown now: whole characters, without blanks that may turn out to be the last."""
        text = self._unfinished + text
        unfinished = _UNFINISHED.search(text)
        cut = unfinished.start() if unfinished else len(text)
        self._unfinished, text = text[cut:], readable(text[:cut])
        words = text.rstrip(EDGES)
        if not words:
            self._blanks.append(text)
            return ""
        blanks, self._blanks = "".join(self._blanks), [text[len(words) :]]
        if not self._begun:
            words, blanks = words.lstrip(EDGES), ""
            if self._step == self._string and words.startswith("{"):  # an envelope encoded twice, perhaps
                self._hold()
                return ""
        self._begun = True
        return blanks + words
