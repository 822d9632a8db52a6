"""Show the message of an answer while the model writes it: of a JSON envelope as far as it is readable, plain
text once no envelope can follow. Everything else waits for the whole answer."""

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from pydantic_core import from_json

from agent.errors import ModelError
from agent.turn.output.answer import EDGES
from agent.turn.output.cleaning import OPENING_TOKENS, THOUGHT_CLOSES, THOUGHT_OPENS
from memory.text import readable
from prompts.echo import may_become_echo

OnText = Callable[[str], None]

CERTAIN = 120
"""Characters of prose after which the prose counts as the answer."""
PATIENCE = 8192
"""After this many undecided characters, nothing is shown until the end."""
LOOKAHEAD = 60
"""Characters within which a tag or a fence can be recognised."""

_OBJECT = re.compile(r"(?:```\w*\s*)?(?=\{)")
_TAG = r"[<◁]/?[|｜a-z]|\[/?(?:INST|TOOL|THINK)"
_NOT_PROSE = re.compile(rf"[`\[\"“｛]|{_TAG}|(?:assistant)?analysis[A-Z]|(?:message|reply):", re.IGNORECASE)
_KEYS = "(?:message|memories|reply|response|answer|name|tool|function|type|text|content|thoughts?|output)"
_ENVELOPE = re.compile(rf"""(?:```\w*\s*)?(?=\{{\s*\\*["']?{_KEYS}\\*["']?\s*:)""", re.IGNORECASE)
_PROSE_ENDS = re.compile(rf"{_ENVELOPE.pattern}|{_TAG}", re.IGNORECASE)
_DOUBTFUL = re.compile(r"[{｛<◁\[`]")
_STRINGS, _ESCAPES = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL), {n: f"\\u{n:04x}" for n in range(32)}
_UNFINISHED = re.compile(r"(?:\r|[\ud800-\udbff]|\x1b(?:\[[0-?]{0,32}[ -/]{0,4})?)\Z")


class MessageStream:
    """Extracts the visible message from the model's text as it streams in. If the output is well-formed, the
    returned text is a prefix of the final message; otherwise compare the message with `shown`."""

    def __init__(self) -> None:
        self.shown = ""
        """The text returned so far."""
        self._text = ""
        """The answer so far; of an object, the text from its brace on."""
        self._step: Callable[[], str] = self._before
        """Returns new text that may be shown; the last step is `_wait_for_end`."""
        self._message = self._unsettled = ""
        """The message so far, and its end that is not shown yet: blanks, or half a character."""

    def feed(self, delta: str) -> str:
        """Add text from the model. Returns the newly visible text, often none."""
        if self._step == self._wait_for_end:
            return ""
        self._text += delta
        new = self._step() if self.shown or len(self._text) < PATIENCE else self._wait_for_end()
        ready = self._settled(new) if new else ""
        self.shown += ready
        return ready

    def _wait_for_end(self) -> str:
        """Show nothing more: the rest comes with the final answer."""
        self._step = self._wait_for_end
        return ""

    def _go(self, step: Callable[[], str], text: str) -> str:
        self._step, self._text = step, text
        return step()

    def _before(self) -> str:
        """Handle text before its kind is known: thoughts, an envelope, or sentences."""
        text = self._text = self._text.lstrip(EDGES)
        if opened := THOUGHT_OPENS.match(text):
            closed = THOUGHT_CLOSES.search(text, opened.end())
            self._text = opened[0] + text[opened.end() :][-80:]  # enough to recognise an open thought
            return self._go(self._before, text[closed.end() :]) if closed else ""
        if (token := OPENING_TOKENS.match(text)) and token.end() < len(text):
            return self._go(self._before, text[token.end() :])
        if brace := _OBJECT.match(text):
            return self._go(self._object, text[brace.end() :])
        if closed := THOUGHT_CLOSES.search(text):
            return self._go(self._before, text[closed.end() :])
        if len(text) >= LOOKAHEAD and _NOT_PROSE.match(text):
            return self._wait_for_end()
        if opened := _ENVELOPE.search(text):  # a fenced envelope after prose may be an example
            fenced = text.count("```", 0, opened.end()) % 2
            return self._wait_for_end() if fenced else self._go(self._object, text[opened.end() :])
        return "" if len(text) < CERTAIN else self._go(self._prose, text)

    def _prose(self) -> str:
        """Show plain text, up to where an object or a chat token begins or may begin."""
        ends = _PROSE_ENDS.search(self._text)
        if ends:
            self._wait_for_end()
        end = ends or _DOUBTFUL.search(self._text, max(0, len(self._text) - LOOKAHEAD))
        text, self._text = (self._text[: end.start()], self._text[end.start() :]) if end else (self._text, "")
        return text

    def _object(self) -> str:
        """Show the message of an object as far as it was written."""
        with suppress(ValueError):
            try:
                written = from_json(self._text, allow_partial="trailing-strings")
            except ValueError:  # perhaps lines in a string, which should have been escaped
                self._text = _STRINGS.sub(lambda found: found[0].translate(_ESCAPES), self._text)
                written = from_json(self._text, allow_partial="trailing-strings")
            before, message = self._message, written.get("message", "")
            # One that begins with a brace is perhaps an envelope that is encoded twice.
            if isinstance(message, str) and message.startswith(before) and message.lstrip()[:1] != "{":
                self._message = message
                return message[len(before) :]
        return self._wait_for_end()

    def _settled(self, text: str) -> str:
        """Return the part that is safe to show: whole characters, without blanks that may be trailing."""
        text = self._unsettled + text
        cut = unfinished.start() if (unfinished := _UNFINISHED.search(text)) else len(text)
        whole = readable(text[:cut])
        words = whole.rstrip(EDGES)
        self._unsettled = whole[len(words) :] + text[cut:]
        return words if self.shown else words.lstrip(EDGES)


class FormStream:
    """Shows the JSON object that a client wants as the model writes it, if the server enforces its form. Else
    shows nothing, as the model may have to be asked again."""

    def __init__(self, enforced: bool) -> None:
        self._enforced = enforced
        self._text = self.shown = ""

    def feed(self, text: str) -> None:
        """Add text, and set `shown` to the object so far, without white space around it."""
        self._text += text
        self.shown = self._text.strip() if self._enforced and self._text.lstrip().startswith("{") else ""


class ShownText:
    """Shows the text of the answer as the model writes it, and at the end the text that was uncertain until
    then.

    Only the text of the last model call is the answer, but a call turns out to be the last only at its end.
    So text that an earlier call wrote besides its tool calls is shown too, on separate lines.
    """

    def __init__(
        self,
        on_text: OnText,
        extract: Callable[[], MessageStream | FormStream] = MessageStream,
        stops: Sequence[str] = (),
        rendered: Collection[str] = (),
        *,
        object_only: bool = False,
    ) -> None:
        """`extract` makes a stream for each model call. Text ends at the first of the `stops`. Text that may
        become a sentence of the `rendered` prompt waits. With `object_only` no text may come before the
        object."""
        self._on_text, self._extract, self._stops, self._object_only = on_text, extract, stops, object_only
        self._rendered = rendered
        self._waits = max(map(len, stops), default=1) - 1
        self._new_line = ""
        self._call = extract()
        self.text = ""
        """The text shown of the current model call."""

    def feed(self, written: str) -> None:
        self._call.feed(written)
        shown = self._call.shown
        if self.text or not may_become_echo(shown, self._rendered):
            # text that may begin a stop waits
            ready = until_stop(shown, self._stops)
            self._show(ready[: len(ready) - self._waits * (ready == shown)])

    def call_tools(self) -> None:
        """Show the rest of this model call's text, and begin with the next call."""
        if self._object_only and self.text:
            raise ModelError("the model called a tool after its answer in the form of response_format")
        self._show(until_stop(self._call.shown, self._stops))
        self._new_line = "\n" if self.text else self._new_line
        self._call, self.text = self._extract(), ""

    def end(self, message: str) -> None:
        """Show the rest of the answer, or all of it on a new line if other text was shown. If the answer was
        cut where it began to loop, it was shown already."""
        if not (message.startswith(self.text) or self.text.startswith(message)):
            self.text, self._new_line = "", "\n"
        self._show(message)

    def _show(self, text: str) -> None:
        """Show the rest of the text."""
        if new := text[len(self.text) :]:
            self._on_text(self._new_line + new)
            self.text, self._new_line = text, ""


def until_stop(text: str, stops: Sequence[str]) -> str:
    """Return the text before the first stop sequence in it."""
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]


def message_is_closed(written: str) -> bool:
    """Return whether the message in a partly written answer is complete; what follows it is not shown."""
    try:
        value = from_json(written[max(0, written.find("{")) :], allow_partial=True)
    except ValueError:
        return False
    return isinstance(value, dict) and isinstance(value.get("message"), str)
