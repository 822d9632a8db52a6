"""When a conversation is consolidated: once it is quiet, or before messages leave the prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from sqlalchemy import BindParameter, bindparam, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.types import TurnRequest
from agent.types.budget import Budget
from memory.audience import Place
from memory.sql.jobs.job import Job
from memory.sql.jobs.queue import JobQueue
from memory.sql.jobs.statements import When, when
from memory.sql.messages.message_rows import kept
from memory.sql.messages.summaries import (
    CONSOLIDATE,
    consolidation_subject,
    heard_by,
    outlived,
    owner_of,
)
from memory.sql.messages.transcript import after_a_cut
from memory.sql.tables import Utc, active_conversations, messages

MESSAGES_OF_AN_EXCHANGE = 2
"""Messages that an exchange adds."""
NO_CUT = 2**31 - 1


@dataclass(frozen=True)
class ConsolidationDue:
    """A conversation waits until it has been quiet for a while, or until messages that no summary covers are
    about to leave the prompt's window. The due time of its one waiting job says so, for all processes;
    each exchange moves it in the transaction that stores the reply."""

    quiet: timedelta
    """How long nobody has written before a conversation counts as quiet."""
    window: int
    """How many recent messages a prompt holds …"""
    window_budget: Budget
    """… and how much of them."""

    async def expect(
        self,
        connection: AsyncConnection,
        request: TurnRequest,
        now: datetime,
        shown: int | None,
        **payload: Any,
    ) -> datetime:
        """Move the waiting consolidation of the conversation, or add one. Returns when it is due. `shown` is
        how many messages of ours stood before the question in the turn's prompt; None where a client has
        the history."""
        conversation, owner = request.conversation_id, owner_of(str(request.user), request.place)
        payload |= {"conversation": conversation, "place": list(request.place.path)}
        return await self._expect(
            connection, conversation, owner, payload, now, self.quiet, self._most(shown)
        )

    def _most(self, shown: int | None) -> int:
        """Return how many messages without a summary are no reason to hurry: all, unless the prompt after the
        next one is cut; then those that it still holds, so that the summary is there by then."""
        if shown is None:
            return self.window - MESSAGES_OF_AN_EXCHANGE
        if shown + 2 * MESSAGES_OF_AN_EXCHANGE <= self.window:
            return NO_CUT
        return after_a_cut(self.window) - MESSAGES_OF_AN_EXCHANGE

    async def go_on(
        self, connection: AsyncConnection, job: Job, now: datetime, *, at_once: bool = False
    ) -> None:
        """Add a consolidation for the messages that follow those of this one."""
        conversation, place = job.payload["conversation"], Place(tuple(job.payload["place"]))
        owner, quiet = owner_of(job.user_id, place), timedelta() if at_once else self.quiet
        await self._expect(connection, conversation, owner, job.payload, now, quiet, self._most(None))

    async def _expect(
        self,
        connection: AsyncConnection,
        conversation: str,
        owner: str,
        payload: Mapping[str, Any],
        now: datetime,
        quiet: timedelta,
        most: int,
    ) -> datetime:
        about, payer = consolidation_subject(conversation, owner), owner.removeprefix("user:")
        given = {"conversation": conversation, "owner": owner, "later": now + quiet, "most": most}
        return await JobQueue.expect(
            connection, CONSOLIDATE, payer, payload, now, about=about, due=self._when, given=given
        )

    @cached_property
    def _when(self) -> When:
        """Now where messages that no summary covers are about to leave the prompt, or where the summary is
        withheld; or later."""
        active = active_conversations.c
        this = active.conversation_id == _CONVERSATION, active.owner == _OWNER
        now, quiet = (bindparam(name, type_=Utc()) for name in ("now", "later"))
        withheld = select(or_(active.withheld == 1, outlived(now))).where(*this).scalar_subquery()
        covered = select(active.covered).where(*this)
        later = messages.c.seq > func.coalesce(covered.scalar_subquery(), 0)
        uncovered = select(func.count() > bindparam("most")).where(*_HEARD, later)
        length = func.sum(func.length(messages.c.text))
        full = uncovered.with_only_columns(2 * length > self.window_budget.characters)
        at_once = or_(uncovered.scalar_subquery(), full.scalar_subquery(), withheld)
        return when(case((at_once, now), else_=quiet))


_CONVERSATION: BindParameter[str] = bindparam("conversation")
_OWNER: BindParameter[str] = bindparam("owner")
_HEARD = messages.c.conversation_id == _CONVERSATION, heard_by() == _OWNER, kept()
