"""Describe a person as a typed document: name, time zone, language, preferences and traits."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, BeforeValidator, ConfigDict

from memory.records import Memory, Task
from memory.text import one_line

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})+")


def single_line(longest: int, *, required: bool = True) -> BeforeValidator:
    """Return one line of at most `longest` characters. Pydantic refuses other types."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = one_line(value) if len(value) <= 10 * longest else value
        if len(text) > longest:
            raise ValueError(f"has {len(text):,} characters, more than the {longest:,} that are kept")
        if required and not text:
            raise ValueError("is empty")
        return text

    return BeforeValidator(read)


def _word(value: Any) -> Any:
    """Return an enumerated value, without regard to spacing and capitals."""
    return "_".join(re.split(r"[\s_-]+", one_line(value).casefold())) if isinstance(value, str) else value


def _language(value: Any) -> Any:
    """Check a language name or code, and nothing else: the prompt shows it as an instruction."""
    if not isinstance(value, str):
        return value
    text = one_line(value) if len(value) <= 400 else ""
    if _LANGUAGE_CODE.fullmatch(text):
        text = text.replace("_", "-")
    elif not all(c in " -()" or unicodedata.category(c)[0] in "LM" for c in text):
        text = ""
    if not 2 <= len(text) <= 40 or len(text.split()) > 3:
        raise ValueError("is no language such as Hebrew, français or pt-BR")
    return text


@cache
def _zones() -> dict[str, str]:
    return {name.casefold(): name for name in available_timezones() - {"localtime", "Factory"}}


def _zone(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    name = _zones().get(one_line(value[:100]).replace(" ", "_").casefold())
    if name is None:
        raise ValueError("is no time zone such as Europe/Paris")
    return name


Name = Annotated[str, single_line(100)]
Phrase = Annotated[str, single_line(200)]
Note = Annotated[str, single_line(400)]
Language = Annotated[str, BeforeValidator(_language)]
Zone = Annotated[str, BeforeValidator(_zone)]
Word = BeforeValidator(_word)


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Profile(Part):
    """Who the person is. None and empty mean unknown."""

    name: Name | None = None
    native_language: Name | None = None
    level: Annotated[Literal["beginner", "intermediate", "advanced", "expert"], Word] | None = None
    role: Phrase | None = None
    location: Phrase | None = None
    goals: tuple[Phrase, ...] = ()
    """Newest first, as all lists here."""
    timezone: Zone | None = None
    """An IANA name."""


class Preferences(Part):
    """How the person wants to be answered. None and empty mean unknown."""

    language: Language | None = None
    answer_length: Annotated[Literal["short", "medium", "long"], Word] | None = None
    code_examples: Annotated[Literal["none", "simple", "detailed"], Word] | None = None
    tone: Annotated[Literal["casual", "formal"], Word] | None = None
    prefers_bullets: Annotated[bool, Word] | None = None
    other_notes: tuple[Note, ...] = ()


class OtherFields(Part):
    """The fields outside the profile and the preferences."""

    conversation_themes: tuple[Name, ...] = ()
    memory_summary: Annotated[str, single_line(4000)] | None = None


@dataclass(frozen=True, slots=True)
class UserContext:
    """The whole document. Lists are newest first."""

    profile: Profile = field(default_factory=Profile)
    preferences: Preferences = field(default_factory=Preferences)
    long_term_facts: tuple[Memory, ...] = ()
    open_tasks: tuple[Task, ...] = ()
    conversation_themes: tuple[str, ...] = ()
    memory_summary: str | None = None
    last_updated: datetime | None = None
    """The time of the latest statement; None if there is none."""
    mentioned: frozenset[str] = frozenset()
    """The ids of the overdue tasks that were already in the prompt of a reply today."""
    message_ids: frozenset[str] = frozenset()
    """The ids of the messages that the profile rests on, as far as they are known."""

    @property
    def zone(self) -> tzinfo:
        """Return the person's time zone; UTC if unknown."""
        try:
            return ZoneInfo(self.profile.timezone) if self.profile.timezone else UTC
        except (KeyError, OSError, ValueError):  # this machine may not know the zone
            return UTC

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; times are ISO 8601."""
        return {
            "profile": self.profile.model_dump(mode="json"),
            "preferences": self.preferences.model_dump(mode="json"),
            "long_term_facts": [_shown(fact, _FACT) for fact in self.long_term_facts],
            "open_tasks": [_shown(task, _TASK) for task in self.open_tasks],
            "conversation_themes": list(self.conversation_themes),
            "memory_summary": self.memory_summary,
            "last_updated": _plain(self.last_updated),
        }


_TASK = "id description status due created_at last_updated".split()
_FACT = "id content subjects created_at expires_at source type importance last_accessed_at".split()


def _shown(record: Memory | Task, fields: Iterable[str]) -> dict[str, Any]:
    return {name: _plain(getattr(record, name)) for name in fields}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value
