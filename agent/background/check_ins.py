"""Ask people who want it how something went: `pet.check_ins`.

The model gets a turn of its own, in the person's private conversation, and may stay silent. A surface
registers whom it can write to. The check-in is claimed before that turn, and the post is sent once: what a
killed process had begun is not asked any more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent.turn.context.user_snippet import line, moment
from agent.types import Occasion, Reply, TurnRequest
from agent.types.arguments import User
from agent.types.checks import checks_arguments
from agent.types.meanings import require_consent
from memory.audience import PRIVATE, Audience, user_key
from memory.people.check_ins import CheckIn, ClaimedCheckIn
from memory.people.due_tasks import longest_prefix
from memory.process.breaker import NotNow, calls_for
from memory.sql.jobs.job import Job, StaleClaim
from memory.text.quoting import joined
from prompts import render

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.check_ins")

SECONDS = 60.0
"""Seconds that sending one message may take."""
LONGEST = 1_000
"""Characters of a message that the model is shown again."""
RETRY_AFTER = timedelta(hours=1)
"""After so long it is tried again where the model does not answer."""


@dataclass(frozen=True, slots=True)
class CheckInMessage:
    """A message that a surface sends."""

    user: str
    check_in: CheckIn
    text: str


Send = Callable[[CheckInMessage], Awaitable[bool | str]]
"""Sends the message and returns whether it reached the person, or the id across platforms of the post that
did (``discord:1234``). It is called once for each message, whatever comes of it."""


@checks_arguments
@dataclass(frozen=True)
class CheckInService:
    parts: "Components"
    turn: Callable[[TurnRequest], Awaitable[Reply]]
    """Takes a turn that no message began."""
    _senders: dict[str, Send] = field(default_factory=dict)

    def register(self, prefix: str, send: Send) -> Callable[[], None]:
        """Use `send` for users whose ids begin with `prefix`, which ends with a colon, or for the one user
        whose id it is. Returns a function that removes the sender."""
        self._senders[prefix] = send
        return lambda: self._senders.pop(prefix, None) and None

    async def wanted(self, *, user: User) -> bool:
        """Return whether the person has turned check-ins on. They are off by default."""
        return await self.parts.check_ins.wanted(user)

    async def want(self, wanted: bool, *, user: User) -> None:
        """Turn check-ins on or off: questions, in private, how things went that the person told of there.
        Turning them off deletes those planned. Raises BadInput if the person has opted out of storage."""
        if wanted:
            await require_consent(self.parts.places, user, PRIVATE)
        await self.parts.check_ins.want(user, self.parts.clock(), wanted=wanted)

    async def list(self, *, user: User) -> list[CheckIn]:
        """List what the person is to be asked about, the next first."""
        now = self.parts.clock()
        zone = await self.parts.profiles.zone(user, PRIVATE, now)
        return await self.parts.check_ins.planned(user, zone, now)

    async def run(self) -> int:
        """Send the due check-ins to people whom this process can write to. Returns how many were sent."""
        now = self.parts.clock()
        await self.parts.check_ins.drop_late(now)
        if not self._senders:
            return 0
        due = await self.parts.check_ins.due([*self._senders], now)
        return sum(await asyncio.gather(*map(self._handle, due)))

    async def _handle(self, id: str) -> bool:
        job, claimed = await self.parts.queue.claim(self.parts.clock(), id), None
        if job is None:
            return False
        with suppress(StaleClaim):  # the person was erased, or another process was quicker
            async with self.parts.queue.working_on(job):
                claimed = await self._take(job)
        return claimed is not None and await self._ask(job.user_id, claimed)

    async def _take(self, job: Job) -> ClaimedCheckIn | None:
        now, user, queue = self.parts.clock(), job.user_id, self.parts.queue
        try:
            await self._check_budget(user, now)
        except NotNow as spent:
            await queue.postpone(job, spent.until, str(spent))
            return None
        zone, check_in = await self.parts.profiles.zone(user, PRIVATE, now), None
        if await self.parts.places.keeps(user, PRIVATE):
            check_in = await self.parts.check_ins.take(job, zone, now)
        if isinstance(check_in, datetime):
            await queue.postpone(job, check_in)
        elif check_in is None:
            await queue.done(job)
        return check_in if isinstance(check_in, ClaimedCheckIn) else None

    async def _check_budget(self, user: str, now: datetime) -> None:
        """Raise NotNow if the person has used up today's turns with bots or calls for consolidation."""
        await self.parts.consolidation_budget.check(user)
        most = self.parts.settings.bot_daily_turns
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        if most and await self.parts.transcript.written_since(user, midnight) >= most:
            raise NotNow(f"{user} has had all turns of today", midnight + timedelta(days=1))

    async def _ask(self, user: str, claimed: ClaimedCheckIn) -> bool:
        """Have the model write, and send its message. If it stays silent, the check-in does not count."""
        reply, retry_at = None, None
        try:
            with calls_for(user):
                reply = await self.turn(await self._request(user, claimed.check_in))
        except Exception as error:
            retry_at = self.parts.clock() + RETRY_AFTER
            log.warning("a check-in waits: %s: %s", type(error).__name__, error)
        for _ in range(reply.calls if reply else 0):
            with suppress(NotNow):
                await self.parts.consolidation_budget.spend(user)
        if reply is None or reply.message_id is None:
            await self.parts.check_ins.release(user, claimed, self.parts.clock(), retry_at)
            return False
        return await self._send(user, claimed.check_in, reply)

    async def _send(self, user: str, check_in: CheckIn, reply: Reply) -> bool:
        prefix = longest_prefix(user, self._senders)
        if prefix is None or not await self.wanted(user=user):
            return False
        try:
            async with asyncio.timeout(SECONDS):
                sent = await self._senders[prefix](CheckInMessage(user, check_in, reply.message))
        except Exception as error:
            log.warning("a check-in is not sent again: %s: %s", type(error).__name__, error)
            return False
        if isinstance(sent, str) and sent:
            await self.parts.deliveries.answered([], self.parts.clock(), reply.message_id, [sent])
        return bool(sent)

    async def _request(self, user: str, check_in: CheckIn) -> TurnRequest:
        now = self.parts.clock()
        zone = await self.parts.profiles.zone(user, PRIVATE, now)
        rows = await self.parts.transcript.lines(check_in.messages, user_key(user))
        notes = [f"> [{moment(row.message.sent_at, zone)}] {line(row.message.text, LONGEST)}" for row in rows]
        about, after = joined(check_in.about), moment(check_in.after, zone)
        text = render("check_in", about=about, after=after, said="\n".join(notes))
        names = await self.parts.transcript.speakers.names({user}, Audience.of(user))
        return TurnRequest(
            check_in.about,
            user,
            now,
            conversation=check_in.conversation,
            author=names.get(user),
            occasion=Occasion(text, check_in.messages),
        )
