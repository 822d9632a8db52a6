"""What a turn needs, made when it is first asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from agent.models.choice.registry import load
from agent.turn.context.persona import read_persona
from agent.turn.forget_requests import ForgetRequests
from agent.types.budget import SUMMARY_BUDGET
from agent.wiring.components import Components

if TYPE_CHECKING:
    from agent.background.consolidation import Consolidation
    from agent.background.worker import Worker
    from agent.turn.consolidation_due import ConsolidationDue
    from agent.turn.turn import TurnDependencies


SUMMARY_REREAD = 50
"""From how many of the newest messages that it covered a summary is written again."""


@dataclass(frozen=True)
class Runtime:
    """What a turn needs, and the worker that does what it leaves behind."""

    turn: "TurnDependencies"
    worker: "Worker"


async def open_runtime(c: Components, reminds: Callable[[str], bool]) -> Runtime:
    """What a turn needs; the worker then takes up the jobs that an earlier process did not finish."""
    await load("agent.turn.turn")
    from agent.background.worker import Worker
    from agent.turn.commit import AnswerStore
    from agent.turn.context.gather import ContextServices
    from agent.turn.context.prompt import budgets_of
    from agent.turn.turn import TurnDependencies

    settings, due = c.settings, _consolidation_due(c)
    consolidation = await _consolidation(c, due)
    worker = Worker(c.queue, c.writer, consolidation, c.sync, c.recall, c.clock, c.recorder)
    turn = TurnDependencies(
        settings=settings,
        clock=c.clock,
        model=await c.models.answering(),
        database=c.database,
        transcript=c.transcript,
        context=ContextServices(c, budgets_of(settings), read_persona(settings.persona), reminds),
        recall=c.recall,
        forget_requests=ForgetRequests(c.recall, c.transcript, c.forgetting.preview),
        writer=c.writer,
        worker=worker,
        answers=AnswerStore(c, None if settings.consolidate == "off" else due),
        recorder=c.recorder,
        extensions=c.extensions,
    )
    worker.wake(poll=True)
    return Runtime(turn, worker)


async def _consolidation(c: Components, due: "ConsolidationDue") -> "Consolidation":
    from agent.background.consolidation import Consolidation
    from agent.background.consolidation_input import ConsolidationReader
    from agent.models.failures import model_error

    settings = c.settings
    model = await c.models.consolidating() if c.models.consolidates else None
    reader = ConsolidationReader(
        transcript=c.transcript,
        summaries=c.summaries,
        profiles=c.profiles,
        store=c.store,
        tasks=c.tasks,
        similar=c.similar,
        check_ins=c.check_ins,
        clock=c.clock,
        with_model=model is not None,
        judging=c.models.judges,
        mode=settings.mode,
        reread=SUMMARY_REREAD,
        budget=settings.context_budget,
    )
    return Consolidation(
        database=c.database,
        reader=reader,
        summaries=c.summaries,
        profiles=c.profiles,
        tasks=c.tasks,
        queue=c.queue,
        due=due,
        writer=c.writer,
        clock=c.clock,
        model=model,
        calls=c.consolidation_budget,
        budget=SUMMARY_BUDGET,
        explain=lambda error: model_error(error, c.models.consolidation_settings),
        count=c.figures.count,
    )


def _consolidation_due(c: Components) -> "ConsolidationDue":
    from agent.turn.consolidation_due import ENOUGH, ConsolidationDue

    settings, quiet = c.settings, timedelta(minutes=c.settings.consolidate_minutes)
    enough = ENOUGH if c.models.consolidates else 1
    return ConsolidationDue(quiet, settings.history_messages, settings.history_budget, enough)
