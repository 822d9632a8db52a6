"""Show a person's memories and their evidence, tasks and documents."""

from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from typing import Any, get_args

from fastapi import APIRouter, Depends
from starlette.datastructures import UploadFile
from starlette.responses import Response

from agent.companion import Companion
from agent.errors import BadInput
from agent.surfaces.web.pages import Here, PageRequest, go
from agent.surfaces.web.sign_in import ZONE, require_visit
from agent.tracing.store.filters import TraceFilter
from agent.tracing.trace import Summary
from agent.tracing.why.explain import explain, traces_of
from agent.tracing.why.gates import Question as WhyQuestion
from agent.types.arguments import Page
from memory.audience import Audience, user_key
from memory.documents.files import MAX_BYTES
from memory.errors import NotFound
from memory.records import ForgetCandidate, ForgetKind, Forgotten, Memory, MemoryUpdate, Message

MOST_LISTED = 200
"""Maximum number of facts on a page."""
MOST_FOUND = 20
MOST_FILES = 20
"""Maximum number of files in one upload."""
KINDS: tuple[ForgetKind, ...] = get_args(ForgetKind)

router = APIRouter(dependencies=[Depends(require_visit)])


@router.get("/memories")
async def overview(here: Here) -> Response:
    """Show the newest facts, those of one month, or the results of a search."""
    text, pet, user, query = here.searched, here.pet, here.user, here.request.query_params
    context, zone, readers = await pet.people.context(user=user), ZONE.get(), Audience.of(user)
    hits = await pet.search_memories(text, user=user, limit=MOST_FOUND) if text else []
    facts, month = Page(hit.memory for hit in hits if hit.memory), query.get("month", "")
    if not text:
        when, cursor = _month_range(month) if month else {}, query.get("cursor")
        facts = await pet.memories.list(user=user, limit=MOST_LISTED, cursor=cursor, **when)
    return here.page(
        "console/memories.html",
        text=text,
        month=month,
        months=await pet.memories.months(user=user),
        days=[
            [*day] for _, day in groupby(facts, lambda one: text or one.created_at.astimezone(zone).date())
        ],
        next=facts.next,
        tellers=await pet.components.transcript.speakers.names({one.user_id for one in facts}, readers)
        | await pet.people.account_names(await pet.people.accounts(user=user)),
        said=[hit for hit in hits if not hit.memory],
        profile=[(name, value) for name, value in (*context.profile, *context.preferences) if value],
        summary=context.memory_summary,
        unkept=await pet.people.unkept(user=user),
    )


def _month_range(month: str) -> dict[str, Any]:
    """Return the first and the last day of a month such as 2026-11. Raises BadInput."""
    try:
        first = date.fromisoformat(f"{month}-01")
    except ValueError:
        raise BadInput(f"month: {month[:20]!r} is none; write it as 2026-11") from None
    return {"since": str(first), "until": str(first.replace(day=monthrange(first.year, first.month)[1]))}


@router.post("/keep")
async def keep(here: Here) -> Response:
    """Set whether what the person says is stored, in all places."""
    await here.pet.people.keep(here.field("kept") == "yes", user=here.user)
    return go("/memories")


@router.post("/memories")
async def add(here: Here) -> Response:
    await here.pet.remember(here.field("content"), user=here.user)
    return go("/memories")


@router.post("/memories/alias")
async def alias(here: Here) -> Response:
    """Remember another name of a person."""
    await here.pet.people.alias(here.field("person"), here.field("alias"), user=here.user)
    return go("/memories")


@router.get("/memories/{id}")
async def show(here: Here, id: str) -> Response:
    """Show one fact. The address of a superseded fact redirects to the newer one."""
    memories, user = here.pet.memories, here.user
    try:
        memory = await memories.get(id, user=user)
    except NotFound:
        replacing = [step.new_id for step in await memories.history(id, user=user) if step.new_id]
        for newer in reversed(replacing):
            with suppress(NotFound):
                return go(f"/memories/{(await memories.get(newer, user=user)).id}")
        raise
    why = await provenance_of(here.pet, memory, user)
    forgetting, pet = await memories.preview_forget(memory.id, user=user), here.pet
    question = WhyQuestion(pet.clock(), user, linked=await pet.people.accounts(user=user))
    [explained] = await explain(pet.traces, question, memory.id, ["memory"])
    used = [one for one in await traces_of(pet.traces, memory.id, pet.clock()) if one[0].user == user]
    return here.page(
        "console/memory.html", memory=memory, why=why, forgetting=forgetting, explained=explained, used=used
    )


@router.post("/memories/{id}")
async def correct(here: Here, id: str) -> Response:
    """Replace the fact with the person's wording."""
    decision = await here.pet.memories.update(id, here.field("content"), user=here.user)
    return go(f"/memories/{decision.id or id}")


@router.post("/memories/{id}/undo")
async def undo(here: Here, id: str) -> Response:
    step = await here.pet.memories.undo(id, user=here.user)
    return go(f"/memories/{step.new_id}" if step.new_id else "/memories")


@router.post("/memories/{id}/forget")
async def forget_fact(here: Here, id: str) -> Response:
    return receipts_page(here, [await here.pet.memories.forget(id, user=here.user)])


@router.post("/messages/{id}/forget")
async def forget_message(here: Here, id: str) -> Response:
    return receipts_page(here, [await here.pet.conversations.forget(id, user=here.user)])


@router.get("/forget")
async def choose(here: Here) -> Response:
    """Ask which of the candidates in a link is to be forgotten."""
    query = here.request.query_params
    asks = [(kind, id) for kind in KINDS for id in query.getlist(kind)]
    choices = await candidates(here.pet, here.user, asks, query.get("asked", ""))
    return here.page("console/choose.html", forget=choices)


async def candidates(
    pet: Companion, user: str, asks: Iterable[Sequence[Any]], asked: str
) -> list[ForgetCandidate]:
    """Return the candidates that can still be forgotten, each with its cascade. A lone fact or item is marked
    as certain."""
    previews = list[ForgetCandidate]()
    for kind, id in asks:
        with suppress(NotFound):
            previews.append(await pet.memories.preview_forget(id, user=user, kind=kind, asked_in=asked))
    first = [one for one in previews if one.kind == "memory"] or previews
    return [replace(one, sure=[one] == first) for one in previews]


@router.post("/forget")
async def forget_chosen(here: Here) -> Response:
    """Forget the candidates that the person chose, from a request in words or from a receipt; or decline all
    that a reply asks about."""
    if declined := here.field("keep"):
        await here.pet.conversations.keep_asked(declined, user=here.user)
        return go("/")
    asked, now = here.field("asked"), here.pet.clock()
    chosen = [ForgetCandidate(id, kind, "", now, asked) for kind in KINDS for id in here.form.get(kind, [])]
    receipts = await here.pet.memories.forget_confirmed(chosen, user=here.user)
    return receipts_page(here, receipts) if receipts else go("/")


@router.post("/restore")
async def restore(here: Here) -> Response:
    back = await here.pet.memories.undo_forget(here.field("id"), user=here.user)
    return go(f"/memories/{back.id}" if back.id else "/")


def receipts_page(here: PageRequest, receipts: Sequence[Forgotten]) -> Response:
    return here.page("console/forgotten.html", receipts=receipts)


@router.get("/tasks")
async def all_tasks(here: Here) -> Response:
    """Show open tasks; with `all` finished ones too."""
    everything = "all" in here.request.query_params
    tasks = await here.pet.tasks.list(user=here.user, done=everything)
    wanted, planned = (
        await here.pet.check_ins.wanted(user=here.user),
        await here.pet.check_ins.list(user=here.user),
    )
    return here.page(
        "console/tasks.html",
        tasks=tasks,
        everything=everything,
        now=here.pet.clock(),
        check_ins=wanted,
        planned=planned,
    )


@router.post("/check-ins")
async def set_check_ins(here: Here) -> Response:
    """Turn check-ins on or off."""
    await here.pet.check_ins.want(here.field("wanted") == "yes", user=here.user)
    return go("/tasks")


@router.post("/tasks")
async def add_task(here: Here) -> Response:
    """Create a task, with a reminder if it is due at a time."""
    await here.pet.people.note_zone(here.field("zone"), user=here.user)
    description, due = here.field("description"), here.field("due")
    await here.pet.tasks.update(description, user=here.user, due=due, alike=False)
    return go("/tasks")


@router.post("/tasks/{id}")
async def change_task(here: Here, id: str) -> Response:
    """Finish a task, or open it again."""
    status = "done" if here.field("status") == "done" else "open"
    await here.pet.tasks.update(user=here.user, id=id, status=status)  # type: ignore[arg-type]
    return go("/tasks")


@router.get("/documents")
async def all_documents(here: Here) -> Response:
    """Show the documents, or the passages that match a search."""
    text, pet, user = here.searched, here.pet, here.user
    passages = await pet.documents.search(text, user=user) if text else []
    documents = await pet.documents.list(user=user)
    return here.page(
        "console/documents.html",
        text=text,
        passages=passages,
        documents=documents,
        own=user_key(user),
        most=MAX_BYTES,
    )


@router.post("/documents")
async def add_document(here: Here) -> Response:
    """Add files or a text to the person's own documents."""
    async with here.request.form(max_files=MOST_FILES) as form:
        for file in form.getlist("file"):
            if isinstance(file, UploadFile) and file.filename:
                await here.pet.documents.add(file.filename, await file.read(), user=here.user)
    if "content" not in here.form:
        return go("/documents")
    name = here.field("name")
    name += "" if "." in name else ".md"
    await here.pet.documents.add(name, here.field("content"), user=here.user)
    return go("/documents")


@router.post("/documents/{id}/remove")
async def remove_document(here: Here, id: str) -> Response:
    await here.pet.documents.remove(id, user=here.user)
    return go("/documents")


# Why a fact is remembered.


@dataclass(frozen=True, slots=True)
class Provenance:
    message: Message | None
    """What the person said."""
    turn: Summary | None
    """The trace of the turn in which they said it."""
    decision: tuple[str, str] | None
    """The action when the fact was stated (add, merge, replace), and the reason."""
    steps: Sequence[MemoryUpdate]
    """What the fact replaced, and what replaced it, oldest first."""
    evidence: Mapping[str, Message]
    """The person's message for each fact of the steps, by the fact's id."""


async def provenance_of(pet: Companion, memory: Memory, user: str) -> Provenance:
    steps = await pet.memories.history(memory.id, user=user)
    messages = {step.old_id: await _own_message(pet, step.old_message_id, user) for step in steps}
    evidence = {id: message for id, message in messages.items() if message}
    message = await _own_message(pet, memory.message_id, user)
    turn = await turn_of(pet, message.id, user) if message else None
    decision = await _decision(pet, turn, memory.id) if turn else None
    return Provenance(message, turn, decision, steps, evidence)


async def turn_of(pet: Companion, message: str, user: str) -> Summary | None:
    """Return the trace of the turn that answered the person's message, if it is stored."""
    await pet.components.recorder.flush()
    traces = await pet.traces.list(TraceFilter(user=user, message_id=message), pet.clock(), 1)
    return traces[0] if traces else None


async def _own_message(pet: Companion, id: str | None, user: str) -> Message | None:
    """Return the message if the person wrote it and it is not forgotten."""
    try:
        return await pet.conversations.message(id, user=user) if id else None
    except NotFound:
        return None


async def _decision(pet: Companion, turn: Summary, id: str) -> tuple[str, str] | None:
    """Return the action and the reason that the turn, or the consolidation after it, recorded for this
    memory."""
    try:
        turn_trace = await pet.traces.get_with_jobs(turn.id, pet.clock())
    except NotFound:
        return None
    for trace in (turn_trace.trace, *turn_trace.jobs):
        for span in trace.spans("decision"):
            for decision in span.data.get("decisions", ()):
                if decision.get("id") == id:
                    return decision["action"], decision["reason"]
    return None
