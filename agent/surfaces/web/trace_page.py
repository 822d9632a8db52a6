"""Show a trace, the pane of a span, downloads in other formats, and two traces side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, Response

from agent.errors import BadInput
from agent.surfaces.web.pages import field_of, page
from agent.surfaces.web.sign_in import require_visit, visitor_of
from agent.surfaces.web.word_diff import word_diff
from agent.tracing.differences import Difference, differences
from agent.tracing.render.export import markdown, trace_json
from agent.tracing.render.text import harmless, json_text
from agent.tracing.render.trace import tree, warnings
from agent.tracing.render.tree import Node, drawn, walk
from agent.tracing.trace import TURN, Trace, TraceWithJobs, span_json
from agent.tracing.why.explain import explain
from agent.tracing.why.gates import Question
from memory.errors import NotFound

FIRST = "0.0"
"""The root span of the trace itself."""
FROM_PLACES = "this trace shows what others said elsewhere; whoever runs this server can open it"
MAX_DIFFERENCES = 100
"""Maximum number of differences on a page."""
WIDTH = 1_000.0
"""The full width of a bar's drawing, in its own units."""
MIN_BAR = 4.0
"""The minimum width of a bar, in the same units, so that it stays visible."""
MAX_ROWS = 400
"""Maximum number of rows of one trace on a page."""

router = APIRouter(dependencies=[Depends(require_visit)])


@dataclass(frozen=True, slots=True)
class Row:
    address: str
    """``trace.span``: the number of the trace on the page, and the number of the span by start time."""
    node: Node
    branch: str
    """The lines of the tree that are drawn before the text."""
    start: float
    width: float
    """The width of its bar, in units of `WIDTH`."""


@dataclass(frozen=True, slots=True)
class SpanTree:
    trace: Trace
    number: int
    """0 is the trace itself; background jobs have higher numbers."""
    length: float
    """Seconds that the whole width represents."""
    rows: Sequence[Row]

    @property
    def ticks(self) -> list[tuple[float, float]]:
        """Return the position and seconds of each mark on the scale."""
        return [(WIDTH * part, self.length * part) for part in (0.0, 0.25, 0.5, 0.75)]


def span_tree(trace: Trace, number: int) -> SpanTree:
    length = max([1e-6, *(span.at + (span.took or 0.0) for span in trace.spans())])
    rows = [
        _row(f"{number}.{index}", node, branch, length)
        for index, (node, branch, _) in enumerate(walk(tree(trace), _with_spans))
    ]
    return SpanTree(trace, number, length, rows)


def _with_spans(node: Node) -> list[Node]:
    return [one for one in node.nodes if one.span]


def _row(address: str, node: Node, branch: str, length: float) -> Row:
    at, took = (node.span.at, node.span.took) if node.span else (0.0, 0.0)
    start = min(WIDTH - MIN_BAR, WIDTH * at / length)
    lasted = length - at if took is None else took
    return Row(address, node, branch, start, min(WIDTH - start, max(MIN_BAR, WIDTH * lasted / length)))


async def _whole(request: Request, id: str) -> TraceWithJobs:
    whole: TraceWithJobs = await request.app.state.traces.get_with_jobs(id[:100], request.app.state.clock())
    visitor = visitor_of(request)
    if not visitor.admin and whole.trace.summary.user != visitor.user:
        raise NotFound(f"there is no trace {id[:100]!r}")
    if not visitor.admin:
        accounts = await request.app.state.pet.people.accounts(user=visitor.user) if visitor.user else []
        for one in (whole.trace, *whole.jobs):
            if await request.app.state.traces.shows_others(one.summary, accounts):
                raise NotFound(FROM_PLACES)
    return whole


Whole = Annotated[TraceWithJobs, Depends(_whole)]


async def _trees(request: Request, whole: Whole) -> Sequence[SpanTree]:
    """Return the span trees of a trace and of its background jobs."""
    await request.app.state.traces.add_skipped_texts(whole.trace, request.app.state.clock())
    try:
        return [span_tree(trace, number) for number, trace in enumerate((whole.trace, *whole.jobs))]
    except RecursionError as error:
        raise BadInput("the spans of this trace are nested too deeply to be shown") from error


Trees = Annotated[Sequence[SpanTree], Depends(_trees)]


async def _chosen(trees: Trees, span: str = FIRST) -> Row:
    row = next((row for tree in trees for row in tree.rows if row.address == span), None)
    if row is None:
        raise NotFound("there is no such span in this trace")
    return row


Chosen = Annotated[Row, Depends(_chosen)]


@router.get("/traces/{id}")
async def show(request: Request, whole: Whole, trees: Trees, chosen: Chosen) -> HTMLResponse:
    """Show one trace with its background jobs."""
    trace, summary = whole.trace, whole.trace.summary
    shown: dict[str, Any] = {
        "trace": trace,
        "summary": summary,
        "trees": trees,
        "chosen": chosen,
        "max_rows": MAX_ROWS,
    }
    shown |= {"max_rows": MAX_ROWS, "warnings": warnings(trace), "is_turn": summary.kind == TURN}
    return page(request, "trace.html", **shown)


@router.get("/traces/{id}/pane")
async def show_pane(request: Request, whole: Whole, chosen: Chosen) -> HTMLResponse:
    """Return only the pane, for scripts that replace it."""
    return page(request, "pane.html", trace=whole.trace, chosen=chosen)


@router.get("/traces/{id}/text")
async def span_as_text(chosen: Chosen) -> Response:
    """Return the chosen span and its descendants as text, uncut."""
    return _text("\n".join(map(str, drawn(chosen.node))))


@router.get("/traces/{id}/value")
async def span_as_json(chosen: Chosen) -> Response:
    """Return the chosen span and its descendants as JSON."""
    return _json(span_json(chosen.node.span) if chosen.node.span else {})


@router.get("/traces/{id}/json")
async def as_json(whole: Whole) -> Response:
    """Return the trace as `hachi traces export` writes it."""
    return _json(trace_json(whole))


@router.get("/traces/{id}/markdown")
async def as_markdown(whole: Whole) -> Response:
    """Return the trace as `hachi traces export --format md` writes it."""
    return _text(harmless(markdown(whole)))


@router.get("/traces/{id}/why")
async def explain_memories(request: Request, whole: Whole, text: str = "") -> HTMLResponse:
    """Explain why memories that match `?text=…` were in the prompt, or were not."""
    pet, visitor, text, wrong = request.app.state.pet, visitor_of(request), text.strip()[:500], ""
    question = Question(pet.clock(), None if visitor.admin else visitor.user, whole.trace)
    try:
        explanations = await explain(pet.traces, question, text) if text else []
    except NotFound as error:
        explanations, wrong = [], str(error)
    return page(request, "why.html", summary=whole.trace.summary, found=explanations, text=text, wrong=wrong)


@router.post("/traces/{id}/replay")
async def replay_turn(request: Request, whole: Whole) -> HTMLResponse:
    """Replay the turn, and show what differs. Replays run one at a time."""
    from agent.replay.replay import replay

    async with request.app.state.test_lock:
        result = await replay(request.app.state.pet, whole)
    return _compared(request, whole.trace, result.after, result.differences, replayed=True)


@router.post("/traces/{id}/test")
async def as_test(request: Request, whole: Whole) -> Response:
    """Show what `hachi traces to-test` writes; with `file` in the form, download that file."""
    from agent.replay.testing import make_test

    name = await field_of(request, "file")
    async with request.app.state.test_lock:  # each test runs searches, so one at a time
        files = await make_test(whole)
    if not name:
        return page(request, "test.html", trace=whole.trace, summary=whole.trace.summary, files=files)
    if name not in files:
        raise NotFound(f"there is no file {name[:100]!r} for this trace")
    headers = {"content-disposition": f'attachment; filename="{name}"'}  # safe: consists of the id alone
    return Response(files[name].encode("utf-8", "replace"), 200, headers, "application/octet-stream")


@router.get("/compare")
async def compare(request: Request) -> HTMLResponse:
    """Compare the traces `?id=…&id=…`, the earlier one first."""
    ids = [id.strip() for id in request.query_params.getlist("id") if id.strip()]
    if len(ids) != 2:
        raise BadInput("choose two traces to compare")
    chosen = [(await _whole(request, id)).trace for id in ids]
    before, after = sorted(chosen, key=lambda trace: trace.summary.started_at)
    return _compared(request, before, after, differences(before, after))


def _compared(
    request: Request, before: Trace, after: Trace, changes: Sequence[Difference], *, replayed: bool = False
) -> HTMLResponse:
    diffs = [(one, word_diff(one.before, one.after)) for one in changes[:MAX_DIFFERENCES]]
    values: dict[str, Any] = {"shown": diffs, "number": len(changes), "replayed": replayed}
    return page(request, "compare.html", before=before.summary, after=after.summary, **values)


def _text(text: str) -> Response:
    return Response(text.encode(), media_type="text/plain; charset=utf-8")


def _json(value: object) -> Response:
    return Response(json_text(value, indent=2).encode(), media_type="application/json")
