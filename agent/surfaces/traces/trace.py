"""One trace: its page, the pane of a span, and the whole of a value that the page cuts."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.errors import BadInput
from agent.surfaces.traces import further
from agent.surfaces.traces.pane import Pane, pane
from agent.surfaces.traces.rendering import page
from agent.surfaces.traces.visible import in_json, pointed, visible
from agent.surfaces.traces.waterfall import span_at, tree
from agent.traces.store import Traces
from agent.traces.trace import TURN, Trace, span_json
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
        markdown=further.markdown() is not None,
        testable=further.tests() is not None and trace.summary.kind == TURN,
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


@router.get("/traces/{id}/markdown")
async def as_markdown(request: Request, id: str) -> Response:
    written = further.markdown()
    if written is None:
        raise NotFound("this Hachi does not write traces as Markdown")
    trace, *after = await _trees(request, id)
    return Response(visible(written(trace, after=after)).encode(), media_type="text/plain; charset=utf-8")


@router.get("/traces/{id}/test")
async def as_test(request: Request, id: str) -> HTMLResponse:
    trace = await _trace(request, id)
    return page(request, "test.html", trace=trace, summary=trace.summary, files=_files(trace))


@router.get("/traces/{id}/test/{name}")
async def test_file(request: Request, id: str, name: str) -> Response:
    files = _files(await _trace(request, id))
    if name not in files:
        raise NotFound(f"there is no file {name!r} for this trace")
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)
    return Response(
        files[name].encode("utf-8", "replace"),
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{plain}"'},
    )


def _files(trace: Trace) -> Mapping[str, str]:
    make = further.tests()
    if make is None:
        raise NotFound("this Hachi does not make tests of traces")
    return make(trace)


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


