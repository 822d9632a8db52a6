"""The components of turns, created on first use."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from agent.models.choice.registry import load
from agent.turn.context.persona import read_persona
from agent.wiring.components import Components

if TYPE_CHECKING:
    from agent.background.worker import Worker
    from agent.turn.turn import TurnDependencies


@dataclass(frozen=True)
class Runtime:
    """The components of turns, and the worker that runs jobs after them."""

    turn: "TurnDependencies"
    worker: "Worker"


async def open_runtime(c: Components, reminds: Callable[[str], bool]) -> Runtime:
    """Create what a turn needs, and let the worker run jobs that an earlier process left."""
    await load("agent.turn.turn")
    from agent.background.consolidation.apply import AnswerWriter
    from agent.background.consolidation.consolidate import Consolidation
    from agent.background.consolidation.reader import ConsolidationReader
    from agent.background.worker import Worker
    from agent.turn.commit import AnswerStore
    from agent.turn.consolidation_due import ENOUGH, ConsolidationDue
    from agent.turn.context.gather import ContextServices
    from agent.turn.context.prompt import budgets_of
    from agent.turn.turn import TurnDependencies

    settings, quiet = c.settings, timedelta(minutes=c.settings.consolidate_minutes)
    enough = ENOUGH if c.models.consolidates else 1
    due = ConsolidationDue(quiet, settings.history_messages, settings.history_budget, enough)
    model = await c.models.consolidating() if c.models.consolidates else None
    reader, writer = ConsolidationReader(c), AnswerWriter(c, due)
    worker = Worker(c, Consolidation(c, reader, model, c.consolidation_budget, writer))
    turn = TurnDependencies(
        parts=c,
        settings=settings,
        model=await c.models.answering(),
        context=ContextServices(c, budgets_of(settings), read_persona(settings.persona), reminds),
        forget_requests=c.forget_requests,
        worker=worker,
        answers=AnswerStore(c, None if settings.consolidate == "off" else due),
    )
    worker.wake(poll=True)
    return Runtime(turn, worker)
