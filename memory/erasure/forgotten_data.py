"""What was forgotten, to be recognised in traces, files and waiting jobs, and in what can be brought back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.erasure.repeats import repeats
from memory.erasure.repetition import FactWords, Words

LONG_ENOUGH = 12
"""Characters of a text that is recognised as a whole. Shorter ones, such as "Noted.", are everywhere."""


@dataclass(frozen=True, slots=True)
class ForgottenData:
    user: str
    """Who had it forgotten."""
    ids: frozenset[str]
    """Of the memories, messages and replies."""
    contents: tuple[str, ...]
    """The texts of the memories, or the telling sentences of the message."""
    texts: tuple[str, ...]
    """The whole texts of the messages and replies."""
    teller: Words

    @property
    def facts(self) -> list[FactWords]:
        return [FactWords.of(content, self.teller) for content in self.contents]

    def shown_by(self, text: str) -> bool:
        """Whether the text contains one of the ids or whole texts, or a line of it one of the facts."""
        if any(id in text for id in self.ids):
            return True
        if any(len(whole) >= LONG_ENOUGH and whole in text for whole in self.texts):
            return True
        lines = text.splitlines()
        return any(repeats(line, fact, self.teller) for line in lines for fact in self.contents)

    def to_json(self) -> dict[str, Any]:
        """Everything but the user."""
        return {
            "ids": sorted(self.ids),
            "contents": list(self.contents),
            "texts": list(self.texts),
            "teller": sorted(self.teller),
        }

    @classmethod
    def from_json(cls, user: str, stored: Mapping[str, Any]) -> "ForgottenData":
        return cls(
            user,
            frozenset(stored["ids"]),
            tuple(stored["contents"]),
            tuple(stored["texts"]),
            frozenset(stored["teller"]),
        )
