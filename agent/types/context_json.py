"""The JSON of what is known of a person, apart from that of other records: profiles are pydantic models, and
the command line starts in half the time without them."""

from datetime import datetime

from typing_extensions import TypedDict

from agent.types.records_json import FactJson
from memory.people.profile import Preferences, Profile
from memory.records import TaskStatus


class OpenTaskJson(TypedDict):
    id: str
    description: str
    status: TaskStatus
    created_at: datetime
    last_updated: datetime


class ContextJson(TypedDict):
    """What is known of a person, as `UserContext.to_json` has it."""

    profile: Profile
    preferences: Preferences
    long_term_facts: list[FactJson]
    open_tasks: list[OpenTaskJson]
    conversation_themes: list[str]
    memory_summary: str | None
    last_updated: datetime | None
