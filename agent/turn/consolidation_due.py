"""Decide when a conversation is consolidated: before messages leave the prompt, or once enough are quiet."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from sqlalchemy import BindParameter, Text, and_, bindparam, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.types import TurnRequest
from agent.types.budget import Budget
from memory.audience import Place
from memory.people.check_ins import is_wanted_by
from memory.sql.jobs.job import Job
from memory.sql.jobs.queue import JobQueue
from memory.sql.jobs.statements import When, when
from memory.sql.messages.message_rows import is_visible
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
ENOUGH = 6
"""A quiet conversation is consolidated from so many messages without a summary …"""
LONGEST = timedelta(days=1)
"""… and one that does not go quiet, so long after the first of those."""
FEWER = timedelta(days=30)
"""After this silence fewer messages than `ENOUGH` are consolidated. That is no loss until then: the prompt
has them, and the answers noted the facts. If answers cannot note facts, or a person wants check-ins, which
only consolidation plans, any quiet conversation is consolidated."""


@dataclass(frozen=True)
class ConsolidationDue:
    """A conversation waits until messages that no summary covers are about to leave the prompt's window, or
    until `ENOUGH` of them have been quiet for a while. Its one waiting job has the due time, for all
    processes; each turn moves it in the transaction that stores the reply."""

    quiet: timedelta
    """How long nobody has written before a conversation counts as quiet."""
    window: int
    """How many recent messages a prompt contains …"""
    window_budget: Budget
    """… and how much of them."""
    enough: int = ENOUGH
    """1 where consolidation costs no model call."""

    async def expect(
        self,
        connection: AsyncConnection,
        request: TurnRequest,
        now: datetime,
        shown: int | None,
        *,
        noted: bool = True,
        **payload: Any,
    ) -> datetime:
        """Move the waiting consolidation of the conversation, or add one. Returns when it is due. `shown` is
        how many stored messages the turn's prompt had before the question; None if the client keeps the
        history. `noted` is whether the form of the answer has a place for memories."""
        conversation, owner = request.conversation_id, owner_of(str(request.user), request.place)
        payload |= {"conversation": conversation, "place": list(request.place.path)}
        enough = self.enough if noted else 1
        return await self._expect(
            connection, conversation, owner, payload, now, self.quiet, self._most(shown), enough
        )

    def _most(self, shown: int | None) -> int:
        """Return how many messages without a summary can wait. That is any number, unless the prompt after
        the next one will be cut: then as many as it still contains, so that the summary is ready by then."""
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
        enough = 1 if at_once else self.enough
        await self._expect(connection, conversation, owner, job.payload, now, quiet, self._most(None), enough)

    async def _expect(
        self,
        connection: AsyncConnection,
        conversation: str,
        owner: str,
        payload: Mapping[str, Any],
        now: datetime,
        quiet: timedelta,
        most: int,
        enough: int,
    ) -> datetime:
        about, payer = consolidation_subject(conversation, owner), owner.removeprefix("user:")
        given = {"conversation": conversation, "owner": owner, "most": most, "enough": enough}
        given |= {"quiet": now + quiet, "fewer": now + max(FEWER, quiet), "long_ago": now - LONGEST}
        return await JobQueue.expect(
            connection, CONSOLIDATE, payer, payload, now, about=about, due=self._when, due_values=given
        )

    @cached_property
    def _when(self) -> When:
        """The due time. It is now if messages without a summary are about to leave the prompt or are
        `LONGEST` old, or if the summary is withheld; else later."""
        active = active_conversations.c
        this = active.conversation_id == _CONVERSATION, active.owner == _OWNER
        now, quiet, fewer, long_ago = (
            bindparam(name, type_=Utc()) for name in ("now", "quiet", "fewer", "long_ago")
        )
        withheld = select(or_(active.withheld == 1, outlived(now))).where(*this).scalar_subquery()
        covered = select(active.covered).where(*this).scalar_subquery()
        uncovered = select(func.count()).where(*_HEARD, messages.c.seq > func.coalesce(covered, 0))
        most: BindParameter[int] = bindparam("most")
        few: BindParameter[int] = bindparam("enough")
        # In private the payer is the person; elsewhere it is a place, which gets no check-ins.
        enough = case((is_wanted_by(bindparam("new_user_id", type_=Text())), 1), else_=few)
        leave = uncovered.with_only_columns(
            or_(
                func.count() > most,
                2 * func.sum(func.length(messages.c.text)) > self.window_budget.characters,
                and_(func.count() >= enough, func.min(messages.c.sent_at) <= long_ago),
            )
        )
        at_once = or_(leave.scalar_subquery(), withheld)
        return when(case((at_once, now), (uncovered.scalar_subquery() >= enough, quiet), else_=fewer))


_CONVERSATION: BindParameter[str] = bindparam("conversation")
_OWNER: BindParameter[str] = bindparam("owner")
_HEARD = messages.c.conversation_id == _CONVERSATION, heard_by() == _OWNER, is_visible()
