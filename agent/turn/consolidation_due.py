"""When a conversation is consolidated: once it has been quiet for a while, or before messages that no summary
covers leave the prompt's window.

The due time of the conversation's one waiting job says so, and each exchange moves it in the transaction that
stores the reply. So it holds for all processes together.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, case, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.settings import Budget
from agent.types import TurnRequest
from memory.sql.jobs import JobQueue
from memory.sql.message_rows import kept
from memory.sql.summaries import LOOK_BACK, consolidation_subject, heard_by, owner_of
from memory.sql.tables import Utc, active_conversations, messages

EXCHANGE = 2
"""Messages that the next exchange adds."""


@dataclass(frozen=True)
class ConsolidationDue:
    quiet: timedelta
    """How long nobody has written before a conversation counts as quiet."""
    window: int
    """How many recent messages a prompt holds …"""
    window_budget: Budget
    """… and how much of them."""

    async def expect(
        self, connection: AsyncConnection, request: TurnRequest, now: datetime, **payload: Any
    ) -> None:
        """Move the waiting consolidation of the request's conversation, or add one, in the transaction that
        stores the reply."""
        conversation, owner = request.conversation_id, owner_of(str(request.user), request.place)
        found = {"conversation": conversation, "place": list(request.place.path), **payload}
        leaving = self._leaving(conversation, owner)
        due = case((leaving, literal(now, Utc())), else_=literal(now + self.quiet, Utc()))
        about = consolidation_subject(conversation, owner)
        await JobQueue.expect(connection, LOOK_BACK, str(request.user), found, now, about=about, due=due)

    def _leaving(self, conversation: str, owner: str) -> ColumnElement[bool]:
        """True where the next exchange pushes a message out of the window that no summary covers."""
        active = active_conversations.c
        covered = select(active.covered).where(active.conversation_id == conversation, active.owner == owner)
        uncovered = (
            select(func.count() + EXCHANGE > self.window)
            .where(messages.c.conversation_id == conversation, heard_by() == owner, kept())
            .where(messages.c.seq > func.coalesce(covered.scalar_subquery(), 0))
        )
        length = func.sum(func.length(messages.c.text))
        full = uncovered.with_only_columns(2 * length > self.window_budget.characters)
        return or_(uncovered.scalar_subquery(), full.scalar_subquery())
