"""The state of a fact moves from the log of replacements into the links to its owners."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

_HISTORY = (
    "undone",
    "said before what is known: a model judged that this takes its place",
    "said before what it is to correct",
)
"""Reasons of steps from a fact that never held, or was taken back."""
_PRIVATE = "made private"

_links = sa.table(
    "memory_owners",
    *map(sa.column, ("memory_id", "owner", "content_key", "superseded", "superseded_by", "reason")),
    sa.column("superseded_at", sa.DateTime(timezone=True)),
)
_steps = sa.table(
    "memory_updates",
    *map(sa.column, ("old_id", "new_id", "reason")),
    sa.column("created_at", sa.DateTime(timezone=True)),
    sa.column("owners", sa.JSON()),
)


def upgrade() -> None:
    op.add_column("memory_owners", sa.Column("superseded_by", sa.String(36)))
    op.add_column("memory_owners", sa.Column("superseded_at", sa.DateTime(timezone=True)))
    op.add_column("memory_owners", sa.Column("reason", sa.Text()))
    steps = op.get_bind().execute(sa.select(_steps).order_by(_steps.c.created_at)).all()
    last = {(step.old_id, owner): step for step in steps for owner in step.owners}
    _convert_links(last)
    _note_places({step.old_id: step for step in steps if step.reason == _PRIVATE})
    _convert_forgotten()
    op.drop_index("uq_memory_owners_active", "memory_owners")
    op.drop_column("memory_owners", "superseded")
    holds = sa.text("superseded_by IS NULL")
    op.create_index(
        "uq_memory_owners_active",
        "memory_owners",
        ["owner", "content_key"],
        unique=True,
        sqlite_where=holds,
        postgresql_where=holds,
    )
    op.create_index("ix_memory_owners_superseded_by", "memory_owners", ["superseded_by"])


def _state(id: str, step: Any) -> dict[str, Any]:
    """What the last step of a superseded link says in the link itself."""
    if step is None or step.reason == _PRIVATE:
        return {"superseded_by": id, "superseded_at": None, "reason": None}
    at = None if step.reason in _HISTORY else step.created_at
    return {"superseded_by": step.new_id or id, "superseded_at": at, "reason": step.reason}


def _convert_links(last: Mapping[tuple[str, str], Any]) -> None:
    ended = sa.select(_links.c.memory_id, _links.c.owner).where(_links.c.superseded == 1)
    for id, owner in op.get_bind().execute(ended).all():
        here = sa.update(_links).where(_links.c.memory_id == id, _links.c.owner == owner)
        op.execute(here.values(_state(id, last.get((id, owner)))))


def _note_places(private: Mapping[str, Any]) -> None:
    """Link what was made private to the places where it was told, as ended there."""
    connection = op.get_bind()
    sources = sa.table("memory_sources", sa.column("memory_id"), sa.column("message_id"))
    messages = sa.table("messages", sa.column("id"), sa.column("conversation_id"))
    talks = sa.table("conversations", sa.column("id"), sa.column("place"))
    told = (
        sa.select(sources.c.memory_id, talks.c.place, sa.func.max(_links.c.content_key).label("key"))
        .join(messages, messages.c.id == sources.c.message_id)
        .join(talks, talks.c.id == messages.c.conversation_id)
        .join(_links, _links.c.memory_id == sources.c.memory_id)
        .where(sources.c.memory_id.in_(list(private)), talks.c.place != "")
        .group_by(sources.c.memory_id, talks.c.place)
    )
    for id, place, key in connection.execute(told).all():
        same = (_links.c.memory_id == id, _links.c.owner == place)
        if connection.execute(sa.select(_links.c.owner).where(*same)).first() is None:
            ended = {"superseded_by": id, "superseded_at": private[id].created_at, "reason": _PRIVATE}
            row = {"memory_id": id, "owner": place, "content_key": key, "superseded": 1} | ended
            op.execute(sa.insert(_links).values(row))


def _convert_forgotten() -> None:
    """The links that an undo will bring back."""
    forgotten = sa.table("forgotten", sa.column("id"), sa.column("payload", sa.JSON()))
    connection = op.get_bind()
    for id, payload in connection.execute(sa.select(forgotten.c.id, forgotten.c.payload)).all():
        rows = payload["rows"]
        steps = sorted(rows.get("memory_updates", {}).values(), key=lambda step: step["created_at"])
        last = {(step["old_id"], owner): step for step in steps for owner in step["owners"]}
        for link in rows.get("memory_owners", {}).values():
            state = {"superseded_by": None, "superseded_at": None, "reason": None}
            if link.pop("superseded"):
                state["superseded_by"] = link["memory_id"]
                if step := last.get((link["memory_id"], link["owner"])):
                    at = None if step["reason"] in _HISTORY else step["created_at"]
                    by = step["new_id"] or link["memory_id"]
                    state = {"superseded_by": by, "superseded_at": at, "reason": step["reason"]}
            link.update(state)
        op.execute(sa.update(forgotten).where(forgotten.c.id == id).values(payload=payload))
