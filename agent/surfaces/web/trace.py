"""One trace: its page, the pane of a span, and the whole of a value that the page cuts."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.errors import BadInput
from agent.surfaces.web.entrance import from_our_own_page
from agent.surfaces.web.pane import Pane, pane
from agent.surfaces.web.rendering import page
from agent.surfaces.web.visible import in_json, pointed, visible
from agent.surfaces.web.waterfall import span_at, tree
from agent.tracing.store import Traces
from agent.tracing.trace import TURN, Trace, TraceWithJobs, span_json
from memory.errors import NotFound

FIRST = "0.0"
"""The root of the trace itself."""

router = APIRouter()


@router.get("/open")
async def open_one(request: Request) -> RedirectResponse:
    """From a form: the trace whose id, or beginning of an id, was typed."""
    traces: Traces = request.app.state.traces
    found = await traces.find(request.query_params.get("id", "")[:100], request.app.state.clock())
    return RedirectResponse(f"/traces/{found.id}", 303)


@router.get("/traces/{id}")
async def show(request: Request, id: str) -> HTMLResponse:
    trees = await _trees(request, id)
    trace = trees[0]
    chosen = _pane(trees, request.query_params.get("span", FIRST))
    return page(
        request,
        "trace.html",
        trace=trace,
        summary=trace.summary,
        trees=[tree(one, number) for number, one in enumerate(trees)],
        chosen=chosen,
        is_turn=trace.summary.kind == TURN,
    )


@router.get("/traces/{id}/pane")
async def show_pane(request: Request, id: str) -> HTMLResponse:
    """The pane alone, for a page that is there already."""
    trees = await _trees(request, id)
    chosen = _pane(trees, request.query_params.get("span", FIRST))
    return page(request, "pane.html", trace=trees[0], chosen=chosen)


@router.get("/traces/{id}/value")
async def value(request: Request, id: str) -> Response:
    """Whole: a text as text, anything else as JSON. Without `at`, the span and all below it."""
    trees = await _trees(request, id)
    _, span = _span(trees, request.query_params.get("span", FIRST))
    try:
        found = pointed(_as_json(span), request.query_params.get("at", ""))
    except (LookupError, ValueError) as error:
        raise NotFound("there is no such value in this trace") from error
    if isinstance(found, str):
        return Response(visible(found).encode(), media_type="text/plain; charset=utf-8")
    return Response(in_json(found), media_type="application/json")


@router.get("/traces/{id}/json")
async def as_json(request: Request, id: str) -> Response:
    """As `hachi traces export` writes it."""
    from agent.tracing.export import trace_json

    trace, *after = await _trees(request, id)
    return Response(in_json(trace_json(TraceWithJobs(trace, after))), media_type="application/json")


@router.get("/traces/{id}/markdown")
async def as_markdown(request: Request, id: str) -> Response:
    """As `hachi traces export --format md` writes it."""
    from agent.tracing.export import markdown

    trace, *after = await _trees(request, id)
    text = visible(markdown(TraceWithJobs(trace, after)))
    return Response(text.encode(), media_type="text/plain; charset=utf-8")


@router.post("/traces/{id}/test", dependencies=[Depends(from_our_own_page)])
async def as_test(request: Request, id: str) -> Response:
    """What `hachi traces to-test` writes; with `file` in the form, that file to be kept. Nothing real is
    written, but the turn is taken again for it: so it is asked for by a button, and done one at a time."""
    from agent.replay.pytest_file import make_test

    trace = await _trace(request, id)
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    async with _one_at_a_time(request):
        files = await make_test(request.app.state.pet, trace)
    if "file" in form:
        return _kept(files, form["file"][0])
    return page(request, "test.html", trace=trace, summary=trace.summary, files=files)


def _one_at_a_time(request: Request) -> asyncio.Lock:
    lock: asyncio.Lock = request.app.state.making
    return lock


def _kept(files: Mapping[str, str], name: str) -> Response:
    if name not in files:
        raise NotFound(f"there is no file {name[:100]!r} for this trace")
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)
    return Response(
        files[name].encode("utf-8", "replace"),
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{plain}"'},
    )


async def _trace(request: Request, id: str) -> Trace:
    traces: Traces = request.app.state.traces
    return await traces.get(id[:100], request.app.state.clock())


async def _trees(request: Request, id: str) -> Sequence[Trace]:
    """The trace, and what was done after it."""
    trace = await _trace(request, id)
    traces: Traces = request.app.state.traces
    return [trace, *await traces.after(trace.id, request.app.state.clock())]


def _span(trees: Sequence[Trace], address: str) -> Any:
    try:
        return span_at(trees, address)
    except LookupError as error:
        raise NotFound("there is no such span in this trace") from error


def _pane(trees: Sequence[Trace], address: str) -> Pane:
    trace, span = _span(trees, address)
    return pane(trace, span, address)


def _as_json(span: Any) -> Mapping[str, Any]:
    try:
        return span_json(span)
    except RecursionError as error:
        raise BadInput("this span is nested too deeply to be shown whole") from error
