"""What is taken out of a trace before it is written: secrets that were pasted into a conversation, and what
the operator names."""

import re
from collections.abc import Sequence
from typing import Any

REDACTED = "[redacted]"

SECRETS = {
    "sk-": r"\bsk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic and those who write keys like them
    "_live_": r"\b[prs]k_live_[A-Za-z0-9]{16,}",
    "hachi_": r"\bhachi_[A-Za-z0-9_-]{16,}",
    "gh": r"\bgh[opusr]_[A-Za-z0-9]{16,}",
    "github_pat_": r"\bgithub_pat_[A-Za-z0-9_]{16,}",
    "glpat-": r"\bglpat-[A-Za-z0-9_-]{16,}",
    "xox": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "xapp-": r"\bxapp-[A-Za-z0-9-]{10,}",
    "AKIA": r"\bAKIA[A-Z0-9]{16}\b",
    "AIza": r"\bAIza[A-Za-z0-9_-]{30,}",
    "eyJ": r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "PRIVATE KEY-----": r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*KEY-----|\Z)",
    "earer ": r"\b[Bb]earer +[A-Za-z0-9._~+/=-]{16,}",
    "://": r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",  # name and password in a URL
}
"""By a part that each match holds, and that JSON writes as it is: a text with none of them is left alone."""


class Redaction:
    def __init__(self, patterns: Sequence[str] = (), *, secrets: bool = True) -> None:
        """`patterns` are regular expressions; `secrets` says whether those of `SECRETS` go too. Raises
        re.error where a pattern cannot be read."""
        known = SECRETS if secrets else {}
        self._secrets = {part: re.compile(pattern) for part, pattern in known.items()}
        self._more = [re.compile(pattern) for pattern in patterns]

    def suspects(self, text: str) -> list[re.Pattern[str]]:
        """The patterns that may match somewhere in a text, or in JSON of it."""
        return [*(pattern for part, pattern in self._secrets.items() if part in text), *self._more]

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
