"""Sends traces to a collector as OpenTelemetry spans, by OTLP over HTTP.

Needs the extra `otel`. It sends only stored traces, from which secrets and unwanted content are already
removed. The exporter retries in its own thread; no turn waits for it. Headers and timeouts come from the
standard variables (`OTEL_EXPORTER_OTLP_…`).
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from agent import __version__
from agent.tracing.otlp.attributes import AGENT, attributes_of, error_type, span_name
from agent.tracing.serialization import read_trace
from agent.tracing.trace import Summary, Trace
from memory.process.breaker import Breaker, CircuitOpen
from memory.process.spans import Span
from memory.text import storable

log = logging.getLogger("hachi.traces")

PATH = "/v1/traces"
SECONDS = 5.0
"""Seconds that a request to the collector may take, unless `OTEL_EXPORTER_OTLP_TIMEOUT` is set."""
CLOSE_SECONDS = 2.0
"""Seconds that closing waits for the remaining spans."""
NANO = 1_000_000_000


class Sender:
    """A listener of the recorder that sends every finished trace."""

    def __init__(self, endpoint: str, breaker: Breaker | None = None) -> None:
        """`endpoint` is the collector's URL, with or without `/v1/traces`."""
        url = endpoint.rstrip("/")
        timeout = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else SECONDS
        exporter = OTLPSpanExporter(url if url.endswith(PATH) else url + PATH, timeout=timeout)
        breaker = breaker or Breaker("collector", failures=1)
        self._queue = BatchSpanProcessor(_GuardedExporter(exporter, breaker))
        self._resource = _resource()

    def __call__(self, summary: Summary, body: bytes) -> None:
        for span in _readable_spans(read_trace(summary, body), self._resource):
            self._queue.on_end(span)

    def close(self) -> None:
        """Send the waiting spans, for at most `CLOSE_SECONDS`."""
        closing = Thread(target=self._queue.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        if closing.is_alive():
            log.warning("the last spans could not be sent to the collector and are dropped")


class _GuardedExporter(SpanExporter):
    """Drops spans while the breaker of the collector is open."""

    def __init__(self, inner: SpanExporter, breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            with self._breaker.calling():
                if self._inner.export(spans) is not SpanExportResult.SUCCESS:
                    raise ConnectionError("it did not take the spans; check HACHI_OTLP_ENDPOINT")
        except (ConnectionError, CircuitOpen):
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._inner.shutdown()


def _resource() -> Resource:
    named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": AGENT}
    return Resource.create(named | {"service.version": __version__})


def _readable_spans(trace: Trace, resource: Resource) -> Iterator[ReadableSpan]:
    """Yield every span of a trace. A background job is a separate trace with a link to its turn."""
    summary, root = trace.summary, trace.root
    began, took = summary.started_at.timestamp(), root.took or 0.0
    links = [Link(_context(summary.turn_id, ""))] if summary.turn_id else []
    scope = InstrumentationScope(AGENT, __version__)
    host = _host_of(root)
    for path, span in _descend(root):
        end = _nano(began, took if span.took is None else span.at + span.took)
        yield ReadableSpan(
            name=storable(span_name(span)),
            context=_context(summary.id, path, host),
            parent=_context(summary.id, path.rpartition(".")[0], host) if path else host,
            resource=resource,
            attributes=attributes_of(span, None if path else trace),
            events=_events(span, end),
            links=() if path else links,
            kind=SpanKind.CLIENT if span.kind == "call" else SpanKind.INTERNAL,
            status=_status(span),
            start_time=_nano(began, span.at),
            end_time=end,
            instrumentation_scope=scope,
        )


def _descend(span: Span, path: str = "") -> Iterator[tuple[str, Span]]:
    """Yield each span with its path: empty for the root, `.0.2` for the third child of the first child."""
    yield path, span
    for number, inner in enumerate(span.spans):
        yield from _descend(inner, f"{path}.{number}")


def _host_of(root: Span) -> SpanContext | None:
    """Return the span of the calling program, whose trace the turn joins."""
    host = root.data.get("host")
    if not isinstance(host, Mapping):
        return None
    return SpanContext(int(host["trace"], 16), int(host["span"], 16), True, TraceFlags(1))


def _context(trace_id: str, path: str, host: SpanContext | None = None) -> SpanContext:
    """Return the span's ids. They are derived from the trace's id, so they are always the same."""
    trace = host.trace_id if host else int(trace_id.removeprefix("trace_"), 16)
    span = blake2b(f"{trace_id}{path}".encode(), digest_size=8).digest()
    return SpanContext(trace, int.from_bytes(span), is_remote=False, trace_flags=TraceFlags(1))


def _status(span: Span) -> Status:
    if (error := error_type(span)) is None:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, storable(span.error or error))


def _events(span: Span, at: int) -> list[Event]:
    """Return an event for the exception that a tool raised. The span itself has no error, because the tool
    still returned a result."""
    traceback = span.data.get("traceback")
    return [Event("exception", {"exception.stacktrace": storable(str(traceback))}, at)] if traceback else []


def _nano(began: float, seconds: float) -> int:
    return int(began * NANO) + int(seconds * NANO)
