"""One trace: its page, the pane of a span, and downloads in other formats; and two traces side by side."""

from collections.abc import Sequence

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, Response

from agent.errors import BadInput
from agent.surfaces.web.pages import field_of, page
from agent.surfaces.web.sign_in import require_visit, visitor_of
from agent.surfaces.web.timeline import MAX_ROWS, Row, SpanTree, find_row, span_tree
from agent.surfaces.web.word_diff import word_diff
from agent.tracing.differences import Difference, differences
from agent.tracing.render.export import markdown, trace_json
from agent.tracing.render.text import harmless, json_text
from agent.tracing.render.trace import warnings
from agent.tracing.render.tree import drawn
from agent.tracing.store.traces import Traces
from agent.tracing.trace import TURN, Trace, TraceWithJobs, span_json
from agent.tracing.why.gates import Asked
from agent.tracing.why.messages import explain
from memory.errors import NotFound

FIRST = "0.0"
"""The root span of the trace itself."""
MAX_DIFFERENCES = 100
"""Differences on a page."""

router = APIRouter(dependencies=[Depends(require_visit)])


@router.get("/traces/{id}")
async def show(request: Request, id: str) -> HTMLResponse:
    """Show one trace with its background jobs."""
    trees = await _trees(request, id)
    trace = trees[0].trace
    return page(
        request,
        "trace.html",
        trace=trace,
        summary=trace.summary,
        trees=trees,
        max_rows=MAX_ROWS,
        warnings=warnings(trace),
        chosen=_chosen(request, trees),
        is_turn=trace.summary.kind == TURN,
    )


@router.get("/traces/{id}/pane")
async def show_pane(request: Request, id: str) -> HTMLResponse:
    """The pane alone, for scripts that replace it."""
    trees = await _trees(request, id)
    return page(request, "pane.html", trace=trees[0].trace, chosen=_chosen(request, trees))


@router.get("/traces/{id}/text")
async def span_as_text(request: Request, id: str) -> Response:
    """The chosen span and all below it, uncut."""
    chosen = _chosen(request, await _trees(request, id))
    return _text("\n".join(map(str, drawn(chosen.node))))


@router.get("/traces/{id}/value")
async def span_as_json(request: Request, id: str) -> Response:
    """The chosen span and all below it."""
    span = _chosen(request, await _trees(request, id)).node.span
    return _json(span_json(span) if span else {})


@router.get("/traces/{id}/json")
async def as_json(request: Request, id: str) -> Response:
    """As `hachi traces export` writes it."""
    return _json(trace_json(await _with_jobs(request, id)))


@router.get("/traces/{id}/markdown")
async def as_markdown(request: Request, id: str) -> Response:
    """As `hachi traces export --format md` writes it."""
    return _text(harmless(markdown(await _with_jobs(request, id))))


@router.get("/traces/{id}/why")
async def why_given(request: Request, id: str) -> HTMLResponse:
    """`?text=…`: why the model was given the memories that fit, or was not."""
    trace, text = (await _with_jobs(request, id)).trace, request.query_params.get("text", "").strip()[:500]
    pet, visitor = request.app.state.pet, visitor_of(request)
    asked = Asked(pet.clock(), None if visitor.admin else visitor.user, trace)
    wrong = ""
    try:
        found = await explain(pet.components.database, pet.traces, asked, text) if text else []
    except NotFound as error:
        found, wrong = [], str(error)
    return page(request, "why.html", summary=trace.summary, found=found, text=text, wrong=wrong)


@router.post("/traces/{id}/replay")
async def replay_turn(request: Request, id: str) -> HTMLResponse:
    """Replay the turn, and show beside it what went otherwise. One at a time."""
    from agent.replay.replay import replay

    whole = await _with_jobs(request, id)
    async with request.app.state.test_lock:
        found = await replay(request.app.state.pet, whole)
    return _compared(request, whole.trace, found.after, found.differences, replayed=True)


@router.post("/traces/{id}/test")
async def as_test(request: Request, id: str) -> Response:
    """What `hachi traces to-test` writes; with `file` in the form, that file as a download."""
    from agent.replay.testing import make_test

    whole, name = await _with_jobs(request, id), await field_of(request, "file")
    async with request.app.state.test_lock:  # each searches again: one at a time
        files = await make_test(whole)
    if not name:
        return page(request, "test.html", trace=whole.trace, summary=whole.trace.summary, files=files)
    if name not in files:
        raise NotFound(f"there is no file {name[:100]!r} for this trace")
    headers = {"content-disposition": f'attachment; filename="{name}"'}  # made of the id alone
    return Response(
        files[name].encode("utf-8", "replace"), media_type="application/octet-stream", headers=headers
    )


@router.get("/compare")
async def compare(request: Request) -> HTMLResponse:
    """`?id=…&id=…`: the earlier of the two first."""
    ids = [id.strip() for id in request.query_params.getlist("id") if id.strip()]
    if len(ids) != 2:
        raise BadInput("choose two traces to compare")
    chosen = [(await _with_jobs(request, id)).trace for id in ids]
    before, after = sorted(chosen, key=lambda trace: trace.summary.started_at)
    return _compared(request, before, after, differences(before, after))


def _compared(
    request: Request, before: Trace, after: Trace, found: Sequence[Difference], *, replayed: bool = False
) -> HTMLResponse:
    return page(
        request,
        "compare.html",
        before=before.summary,
        after=after.summary,
        shown=[(one, word_diff(one.before, one.after)) for one in found[:MAX_DIFFERENCES]],
        number=len(found),
        replayed=replayed,
    )


def _text(text: str) -> Response:
    return Response(text.encode(), media_type="text/plain; charset=utf-8")


def _json(value: object) -> Response:
    return Response(json_text(value, indent=2).encode(), media_type="application/json")


async def _with_jobs(request: Request, id: str) -> TraceWithJobs:
    traces: Traces = request.app.state.traces
    found = await traces.get_with_jobs(id[:100], request.app.state.clock())
    visitor = visitor_of(request)
    if not visitor.admin and found.trace.summary.user != visitor.user:
        raise NotFound(f"there is no trace {id[:100]!r}")
    return found


async def _trees(request: Request, id: str) -> Sequence[SpanTree]:
    """Return the span trees of a trace and of its background jobs."""
    found = await _with_jobs(request, id)
    await request.app.state.traces.add_left_out_texts(found.trace, request.app.state.clock())
    try:
        return [span_tree(trace, number) for number, trace in enumerate((found.trace, *found.jobs))]
    except RecursionError as error:
        raise BadInput("the spans of this trace are nested too deeply to be shown") from error


def _chosen(request: Request, trees: Sequence[SpanTree]) -> Row:
    try:
        return find_row(trees, request.query_params.get("span", FIRST))
    except LookupError as error:
        raise NotFound("there is no such span in this trace") from error
