"""What is taken out of a trace before it is written: secrets that were pasted into a conversation, and what
the operator names."""

import json
import re
from collections.abc import Sequence
from typing import Any

REDACTED = "[redacted]"

SECRETS = {
    "sk-": r"[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic and those who write keys like them
    "sk_live_": r"[A-Za-z0-9]{16,}",
    "rk_live_": r"[A-Za-z0-9]{16,}",
    "pk_live_": r"[A-Za-z0-9]{16,}",
    "hachi_": r"[A-Za-z0-9_-]{16,}",
    **{f"gh{kind}_": r"[A-Za-z0-9]{16,}" for kind in "opusr"},
    "github_pat_": r"[A-Za-z0-9_]{16,}",
    "glpat-": r"[A-Za-z0-9_-]{16,}",
    "xox": r"[abeoprs]-[A-Za-z0-9-]{10,}",
    "xapp-": r"[A-Za-z0-9-]{10,}",
    "AKIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    "AIza": r"[A-Za-z0-9_-]{30,}",
    "eyJ": r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "Bearer ": r" *[A-Za-z0-9._~+/=-]{16,}",
    "bearer ": r" *[A-Za-z0-9._~+/=-]{16,}",
    "-----BEGIN ": r"[A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*KEY-----|\Z)",
    "://": r"[^\s/:@]*:[^\s/@]+@",  # name and password in a URL
}
"""How each begins, letter for letter, and what follows. A text without the beginning is left alone, which
makes looking for them cheap."""


class Redaction:
    def __init__(
        self, patterns: Sequence[str] = (), *, secrets: bool = True, values: Sequence[str] = ()
    ) -> None:
        """`patterns` are regular expressions; `secrets` says whether those of `SECRETS` go too; `values` go
        letter for letter. Raises re.error where a pattern cannot be read."""
        self._known = [(spelt, re.compile(re.escape(spelt))) for spelt in _spellings(values)]
        if secrets:
            self._known += [(part, _pattern(part, rest)) for part, rest in SECRETS.items()]
        self._more = [re.compile(pattern) for pattern in patterns]

    def suspects(self, text: str) -> list[re.Pattern[str]]:
        """The patterns that may match somewhere in a text, or in JSON of it."""
        found = [pattern for part, pattern in self._known if part in text and pattern.search(text)]
        return [*found, *self._more]

    def text(self, text: str) -> str:
        return str(redacted(text, self.suspects(text)))


def redacted(value: Any, patterns: Sequence[re.Pattern[str]]) -> Any:
    """The same value, of dicts, lists and plain values, with what matches taken out of every text."""
    if isinstance(value, str):
        for pattern in patterns:
            value = pattern.sub(REDACTED, value)
        return value
    if isinstance(value, dict):
        return {redacted(name, patterns): redacted(item, patterns) for name, item in value.items()}
    if isinstance(value, list):
        return [redacted(item, patterns) for item in value]
    return value


def _pattern(part: str, rest: str) -> re.Pattern[str]:
    """With its beginning first, which is quick to look for. A word does not begin in the middle of another;
    but in JSON, and in JSON inside JSON, a line that begins there has the letter n before it."""
    begin = re.escape(part)
    if not part[0].isalpha() or part[-1] == " ":
        return re.compile(begin + rest)
    escaped = rf"(?<=\\[bfnrt]{begin})|(?<=\\u[0-9a-f]{{4}}{begin})"
    return re.compile(rf"{begin}(?:(?<![A-Za-z0-9_-]{begin})|{escaped}){rest}")


def _spellings(values: Sequence[str]) -> list[str]:
    """Each as it is, and as JSON writes it once and twice; the longest first, as it may hold another."""
    found: set[str] = set()
    for value in values:
        for _ in range(3):
            found.add(value)
            value = json.dumps(value, ensure_ascii=False)[1:-1]
    return sorted(found, key=len, reverse=True)
