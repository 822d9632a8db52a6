"""Does the work after a turn again: decides on facts and consolidates, from what these rested on then."""

from contextlib import suppress
from dataclasses import replace

from pydantic import ValidationError

from agent.background.conversation_reader import Reading
from agent.background.extraction import Extraction, extract_memory_updates, quoted_summary
from agent.errors import BadInput
from agent.models.choose import ChosenModel
from agent.replay.cassette import RecordedModel, decide_again
from agent.settings import Settings
from agent.tracing.trace import Trace
from memory.process.spans import Span, note, span


async def work_again(trace: Trace, settings: Settings, upkeep: ChosenModel) -> None:
    """Record what today's code makes of what a job read and was answered. Stores nothing."""
    for recorded in trace.root.spans:
        decide_again(recorded, settings.importance_floor)
        if recorded.kind == "exchange":
            await _consolidate_again(trace, recorded, settings, upkeep)


async def _consolidate_again(trace: Trace, recorded: Span, settings: Settings, upkeep: ChosenModel) -> None:
    try:
        reading = Reading.from_trace(recorded.data.get("reading"))
    except ValidationError as error:
        raise BadInput(f"{trace.summary.short} cannot be replayed: an older Hachi recorded it") from error
    calls = [one for one in recorded.spans if one.kind == "call"]
    model = replace(upkeep, model=RecordedModel(trace, calls))
    found = Extraction(quoted_summary(reading, settings.summary_budget))
    with span("exchange"):
        if calls:
            with suppress(Exception):  # the recorded work quoted people too
                found = await extract_memory_updates(model, reading, settings.summary_budget)
        if "findings" in recorded.data:
            note(findings=found)
