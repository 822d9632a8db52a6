"""Run calls that change something elsewhere, once their person agrees: `pet.calls`.

A proposed call is a job that times out. Agreeing makes it another kind of job, which whoever has the surface
claims: it is noted as begun before the server is asked, so that neither a second press nor a killed process
runs it twice. What the server answers comes back to the person as a turn that no message began.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, select, update

from agent.types import Occasion, Reply, TurnRequest
from agent.types.labels import call_title
from memory.audience import Place
from memory.errors import NotFound
from memory.sql.jobs.job import CALL, CONFIRM, Job
from memory.sql.messages.message_rows import missing
from memory.sql.tables import work
from memory.text.quoting import joined
from prompts import render
from tools.failures import ToolFailed
from tools.proposed_call import ProposedCall

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.tools")

CONFIRM_WITHIN = timedelta(minutes=10)
"""How long a person may agree."""
INTERRUPTED = (
    "> The process ended before the server answered: it is not known whether the call was carried out."
)


@dataclass(frozen=True)
class ConfirmedCalls:
    parts: "Components"
    turn: Callable[[TurnRequest], Awaitable[Reply]]
    """Takes a turn that no message began."""

    async def propose(self, call: ProposedCall) -> str:
        """Store a call until its person confirms it or `CONFIRM_WITHIN` is over. Returns its id, which is the
        same if the turn is repeated."""
        now = self.parts.clock()
        payload = asdict(call) | {"place": list(call.place.path)}
        async with self.parts.database.write(lock=[f"calls:{call.user}"]) as connection:
            same = select(work).where(work.c.user_id == call.user, work.c.kind.in_((CONFIRM, CALL)))
            for row in await connection.execute(same):
                if payload.items() <= row.payload.items():
                    return str(row.id)
            due = now + CONFIRM_WITHIN
            return (await self.parts.queue.add(connection, CONFIRM, call.user, payload, now, due=due)).id

    async def answer(self, id: str, *, user: str, agreed: bool) -> ProposedCall | None:
        """Confirm or drop a proposed call. Returns None, and runs nothing, if it is answered already, has
        timed out, belongs to somebody else, or its message is forgotten."""
        now = self.parts.clock()
        open_ = and_(work.c.id == id, work.c.kind == CONFIRM, work.c.user_id == user, work.c.due_at > now)
        async with self.parts.database.write() as connection:
            row = (await connection.execute(select(work).where(open_).with_for_update())).first()
            if row is None:
                return None
            gone = await missing(connection, [row.payload["message"]])
            run = update(work).where(open_).values(kind=CALL, due_at=now)
            await connection.execute(run if agreed and not gone else delete(work).where(open_))
        return None if gone else _read_call(row.payload)

    async def drop_late(self) -> int:
        """Delete the calls that nobody confirmed in time. Returns how many."""
        late = and_(work.c.kind == CONFIRM, work.c.due_at <= self.parts.clock())
        if not await self.parts.database.rows(select(work.c.id).where(late).limit(1)):
            return 0
        return await self.parts.database.run(delete(work).where(late))

    async def run(self, call: ProposedCall, result: str = "") -> Reply:
        """Run a call unless it has a result, and take the turn that tells its person the result."""
        result = result or await self._result(call)
        message = await self.parts.transcript.find_message(call.message, call.user)
        text = render("confirmed_call", name=call.name, arguments=joined(call.arguments), result=result)
        occasion = Occasion(text, (call.message,))
        return await self.turn(
            TurnRequest(
                f"{call.name} was run",
                call.user,
                self.parts.clock(),
                call.place,
                message.conversation_id,
                message.author,
                occasion=occasion,
            )
        )

    async def run_job(self, job: Job) -> tuple[ProposedCall, str, Reply | None]:
        """Run the call of a claimed job, once, whatever happens to the process. Returns it, the text for its
        person, and the reply that has it, if one is stored. Call it while `working_on` the job."""
        call, result = _read_call(job.payload), job.payload.get("result", "")
        if not result and job.payload.get("begun"):
            result = INTERRUPTED
        elif not result:
            await self._note(job, begun=True)
            result = await self._result(call)
            await self._note(job, begun=True, result=result)
        try:
            reply = await self.run(call, result)
        except NotFound:  # the message was forgotten meanwhile
            return call, "", None
        return call, reply.message or f"{call_title(call)}: done.", reply

    async def _result(self, call: ProposedCall) -> str:
        servers = {one.name: one for one in self.parts.extensions.connections}
        try:
            if call.server not in servers:
                raise ToolFailed(f"{call.server} is not set up any more")
            return await servers[call.server].call(call)
        except Exception as error:
            log.warning("the call of %s failed: %s", call.name, error)
            return f"> It failed: {joined(str(error))}"

    async def _note(self, job: Job, **progress: Any) -> None:
        same = update(work).where(work.c.id == job.id)
        async with self.parts.database.write() as connection:  # refused where the claim is lost
            await connection.execute(same.values(payload={**job.payload, **progress}))


def _read_call(payload: dict[str, Any]) -> ProposedCall:
    fields = {name: payload[name] for name in ProposedCall.__dataclass_fields__ if name in payload}
    return ProposedCall(**fields | {"place": Place(tuple(payload["place"]))})
