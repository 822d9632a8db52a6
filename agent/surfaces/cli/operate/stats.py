"""`hachi stats`: how much is remembered, of what, since when, and what was decided."""

from collections import Counter
from typing import Annotated, Any

import typer

from agent.surfaces.cli.options import Json, person
from agent.surfaces.cli.output import print_json, print_table
from agent.surfaces.cli.session import Session, running

MOST = 10
"""Subjects and days that are shown; JSON has all."""


@running
async def stats(
    context: typer.Context,
    user: Annotated[
        str | None, typer.Option("--user", "-u", parser=person, metavar="NAME", help="Of one person only.")
    ] = None,
    json: Json = False,
) -> None:
    """Count what is remembered, and what was decided about what was said."""
    session: Session = context.obj

    async with session.companion() as pet:
        found = await pet.services.statistics.memories(user)
    days = Counter(one.created_at.astimezone().date().isoformat() for one in found)
    counted = {
        "memories": len(found),
        "types": dict(Counter(one.type for one in found).most_common()),
        "subjects": dict(Counter(tag for one in found for tag in one.subjects).most_common()),
        "days": dict(sorted(days.items(), reverse=True)),
        "decisions": _decisions(session, user),
        "look_backs": _look_backs(session, user),
    }
    if json:
        print_json(counted)
    else:
        print_table(("what", "", "count"), _rows(counted))


def _decisions(session: Session, user: str | None) -> dict[str, int]:
    """As far back as the log goes."""
    from agent.surfaces.cli.log import events

    made = dict.fromkeys(("add", "merge", "replace", "ignore"), 0)
    for entry in events(session.settings().home, "memory_decision"):
        if user is None or entry.get("user_id") == user:
            for decision in entry.get("decisions", []):
                if decision.get("action") in made:
                    made[decision["action"]] += 1
    return made


def _look_backs(session: Session, user: str | None) -> dict[str, int]:
    """What became of a model's looks back at conversations, as far back as the log goes."""
    from agent.surfaces.cli.log import events

    made = {"applied": 0, "failed": 0}
    for entry in events(session.settings().home, "memory_extraction"):
        if user is None or entry.get("user_id") == user:
            made["applied" if entry.get("ok") else "failed"] += 1
    return made


def _rows(counted: dict[str, Any]) -> list[list[str]]:
    rows = [["memories", "", str(counted["memories"])]]
    for what, label in (
        ("types", "type"),
        ("subjects", "subject"),
        ("days", "day"),
        ("decisions", "decided"),
        ("look_backs", "looked back"),
    ):
        items = list(counted[what].items())
        rows += [[label, name, str(count)] for name, count in items[:MOST]]
        if len(items) > MOST:
            rows.append([label, f"… and {len(items) - MOST} more", ""])
    return rows
