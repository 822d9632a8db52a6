"""Redacts traces and log lines before they are written: secrets that people pasted, Hachi's keys and secret
settings, and matches of the operator's patterns."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pydantic import SecretStr

from memory.text import LINK

if TYPE_CHECKING:
    from agent.settings import Settings

REDACTED = "[redacted]"
SHORTEST_SECRET = 8
"""Characters of the shortest secret. Shorter values are part of too many words."""

SECRETS = {
    "sk-": ("sk-", r"[A-Za-z0-9_-]{16,}"),  # OpenAI, Anthropic and providers with similar keys
    "k_live_": ("[srp]k_live_", r"[A-Za-z0-9]{16,}"),
    "hachi_": ("hachi_", r"[A-Za-z0-9_-]{16,}"),
    "hachi-": ("hachi-", r"[A-Za-z0-9_-]{32,}"),  # a key of `memory.sql.keys`
    "gh": ("gh[opusr]_", r"[A-Za-z0-9]{16,}"),
    "github_pat_": ("github_pat_", r"[A-Za-z0-9_]{16,}"),
    "glpat-": ("glpat-", r"[A-Za-z0-9_-]{16,}"),
    "xox": ("xox", r"[abeoprs]-[A-Za-z0-9-]{10,}"),
    "xapp-": ("xapp-", r"[A-Za-z0-9-]{10,}"),
    "akia": ("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    "aiza": ("AIza", r"[A-Za-z0-9_-]{30,}"),
    "eyj": ("eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    "earer ": ("[Bb]earer ", r" *[A-Za-z0-9._~+/=-]{16,}"),
    "-----begin ": ("-----BEGIN ", r"[A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*KEY-----|\Z)"),
    "://": ("://", r"[^\s/:@]*:[^\s/@]+@"),  # name and password in a URL
}
"""The beginning and the rest of each kind of secret, by a lower-case part that is cheap to look for."""

_IS = r"[\\\"']{0,4}\s{0,3}[=:]\s{0,3}[\\\"']{0,4}"
_VALUE = r"[^\s\"'\\,;]"
_PASSWORD, _KEY = rf"{_VALUE}{{4,}}", rf"(?={_VALUE}{{0,200}}\d){_VALUE}{{8,}}"
NAMED = {
    "passw": ("passw(?:or)?d", _PASSWORD),
    "token": ("token", _KEY),
    "secret": ("secret", _KEY),
    **{name: (name, _KEY) for name in ("apikey", "api_key", "api-key")},
}
"""The name of a secret and the pattern of the value after it (``password=…``, ``token: …``), by a part of the
name. The value of a token has a digit, so "token: nothing" is not redacted."""
_SECRET_NAME = re.compile(rf"[\w-]{{0,60}}(?i:{'|'.join(name for name, _ in NAMED.values())})")


class Redaction:
    def __init__(
        self, patterns: Sequence[str] = (), *, secrets: bool = True, values: Sequence[str] = ()
    ) -> None:
        """`patterns` are regular expressions; `secrets` turns on those of `SECRETS`; `values` are removed
        literally. Links that open a person's pages are always removed. Raises re.error for an invalid
        pattern."""
        known = {part: re.compile(re.escape(part)) for part in _spellings(values)}
        known[LINK] = re.compile(rf"{LINK}[\w.-]+")
        if secrets:
            known |= {part: _pattern(*patterns) for part, patterns in SECRETS.items()}
        self._known = [(part.encode("utf-8", "surrogatepass").lower(), known[part]) for part in known]
        # Looking for a name in lower-case text is fast; ignoring case in a pattern is slow.
        self._named = [
            (part.encode(), re.compile((name + _IS).encode()), re.compile(rf"(?i:{name}){_IS}{value}"))
            for part, (name, value) in (NAMED if secrets else {}).items()
        ]
        self._more = [re.compile(pattern) for pattern in patterns]

    def suspects(self, text: str) -> list[re.Pattern[str]]:
        """Return the patterns that may match somewhere in a text or its JSON form."""
        lower = text.encode("utf-8", "surrogatepass").lower()  # lowers only ASCII, which is fast
        found = [pattern for part, pattern in self._known if part in lower and pattern.search(text)]
        named = [pattern for part, name, pattern in self._named if part in lower and name.search(lower)]
        return [*found, *(pattern for pattern in named if pattern.search(text)), *self._more]

    def text(self, text: str) -> str:
        return _redacted_text(text, self.suspects(text))


def secret_values(settings: "Settings") -> list[str]:
    """Return every secret setting of at least `SHORTEST_SECRET` characters; of a URL also the password, as
    written and decoded."""
    return [secret for secret in _secret_settings(settings) if len(secret) >= SHORTEST_SECRET]


def _secret_settings(settings: "Settings") -> Iterator[str]:
    for value in vars(settings).values():
        if isinstance(value, SecretStr):
            secret = value.get_secret_value()
            yield secret
            if found := re.match(r"[^/]+://[^/@:]*:([^@/]+)@", secret):
                yield found[1]
                yield unquote(found[1])


def redacted(value: Any, patterns: Sequence[re.Pattern[str]]) -> Any:
    """Replace every match in the value's texts by `REDACTED`, and texts in fields with a secret's name."""
    if isinstance(value, dict):
        return {
            _redacted_text(name, patterns): REDACTED
            if isinstance(item, str) and _SECRET_NAME.fullmatch(name)
            else redacted(item, patterns)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [redacted(item, patterns) for item in value]
    return _redacted_text(value, patterns) if isinstance(value, str) else value


def _redacted_text(text: str, patterns: Sequence[re.Pattern[str]]) -> str:
    for pattern in patterns:
        text = pattern.sub(REDACTED, text)
    return text


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Apply `change` to every text of a JSON value, including names in objects."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): map_texts(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [map_texts(item, change) for item in value]
    return value


def _pattern(begin: str, rest: str) -> re.Pattern[str]:
    """Return the pattern of a secret, which does not begin inside a word. In JSON, and in JSON within JSON,
    an escape such as ``\\n`` may come directly before it."""
    if begin[0] in ":-" or begin[-1] == " ":
        return re.compile(begin + rest)
    escaped = rf"(?<=\\[bfnrt]{begin})|(?<=\\u[0-9a-f]{{4}}{begin})"
    return re.compile(rf"{begin}(?:(?<![A-Za-z0-9_-]{begin})|{escaped}){rest}")


def _spellings(values: Sequence[str]) -> list[str]:
    """Return each value unchanged, and escaped as JSON once and twice. Longer ones come first, since they may
    contain others."""
    found: set[str] = set()
    for value in values:
        for _ in range(3):
            found.add(value)
            value = json.dumps(value, ensure_ascii=False)[1:-1]
    return sorted(found, key=len, reverse=True)
