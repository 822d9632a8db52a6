"""`hachi stats`: how much is remembered, of what, since when, and what was decided."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.surfaces.cli.options import Json, OneUser
from agent.surfaces.cli.output import print_json, print_table
from agent.surfaces.cli.session import with_companion

if TYPE_CHECKING:
    from agent.companion import Companion

MAX_ROWS = 10
"""Subjects and days that are shown; JSON has all."""


@with_companion
async def stats(pet: "Companion", user: OneUser = None, json: Json = False) -> None:
    """Count what is remembered, and what was decided about what was said."""
    found = await pet.services.statistics.memories(user)
    figures = await pet.services.statistics.figures.totals(user)
    days = Counter(one.created_at.astimezone().date().isoformat() for one in found)
    counts = {
        "memories": len(found),
        "types": dict(Counter(one.type for one in found).most_common()),
        "subjects": dict(Counter(tag for one in found for tag in one.subjects).most_common()),
        "days": dict(sorted(days.items(), reverse=True)),
        "decisions": {action: figures[action] for action in ("add", "merge", "replace", "ignore")},
        "look_backs": {
            "applied": figures["applied"],
            "failed": figures["extractions"] - figures["applied"],
        },
    }
    if json:
        print_json(counts)
    else:
        print_table(("what", "", "count"), _rows(counts))


def _rows(counts: dict[str, Any]) -> list[list[str]]:
    rows = [["memories", "", str(counts["memories"])]]
    labels = {"types": "type", "subjects": "subject", "days": "day", "decisions": "decided"}
    for name, label in (labels | {"look_backs": "looked back"}).items():
        items = list(counts[name].items())
        rows += [[label, item, str(count)] for item, count in items[:MAX_ROWS]]
        if len(items) > MAX_ROWS:
            rows.append([label, f"… and {len(items) - MAX_ROWS} more", ""])
    return rows
