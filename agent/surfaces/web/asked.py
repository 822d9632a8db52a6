"""What is looked for, as the address says it: the fields of the form above the list."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from agent.errors import BadInput
from agent.tracing.store import TraceFilter
from memory.audience import Place

FIELDS = ("text", "user", "place", "tool", "failed", "slower", "since", "kind", "before")
LONGEST = 300
"""Characters of a field."""
_AGO = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Asked:
    """As it was typed, and what it means."""

    fields: Mapping[str, str]
    """What is not empty."""
    wanted: TraceFilter

    @property
    def before(self) -> str | None:
        """The id of the trace below which the list goes on."""
        return self.fields.get("before")

    @property
    def narrowed(self) -> bool:
        return any(name != "before" for name in self.fields)

    def address(self, path: str = "/", **changed: str | None) -> str:
        """With these fields instead; a change of filters begins at the newest again."""
        fields = dict(self.fields)
        fields.pop("before", None)
        return to(path, **(fields | changed))


def to(path: str, **fields: str | None) -> str:
    given = {name: value for name, value in fields.items() if value}
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def asked(query: Mapping[str, str], now: datetime) -> Asked:
    """Raises BadInput."""
    fields = {name: value for name in FIELDS if (value := query.get(name, "").strip())}
    for name, value in fields.items():
        if len(value) > LONGEST:
            raise BadInput(f"{name} has more than {LONGEST} characters")
    wanted = TraceFilter(
        user=fields.get("user"),
        place=_place(fields["place"]) if "place" in fields else None,
        tool=fields.get("tool"),
        failed="failed" in fields,
        text=fields.get("text"),
        since=_since(fields["since"], now) if "since" in fields else None,
        slower=_seconds(fields["slower"]) if "slower" in fields else None,
    )
    if fields.get("kind") == "all":
        wanted = replace(wanted, kinds=frozenset())
    elif "kind" in fields:
        raise BadInput("kind is `all`, or nothing for turns alone")
    return Asked(fields, wanted)


def _place(text: str) -> str:
    place = Place.parse(text)
    return "" if place.private else place.key


def _seconds(text: str) -> float:
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not (math.isfinite(seconds) and seconds >= 0.0):
        raise BadInput(f"slower than {text!r} is no number of seconds, such as 2 or 0.5")
    return seconds


def _since(text: str, now: datetime) -> datetime:
    try:
        if found := _AGO.fullmatch(text):
            return now - timedelta(**{_UNITS[found[2]]: float(found[1])})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise BadInput(f"since {text!r} is no time such as 15m, 2h, 7d or 2026-01-10T09:30") from error
