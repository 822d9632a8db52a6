"""Traces sent on to OpenTelemetry: any collector that takes OTLP over HTTP.

Each trace is sent when it has ended, from what is written of it: without secrets, and without content where
none is kept. The exporter's own thread does the sending; where the collector is away it tries again for a
while, then lets go, and no turn hears of it. Headers, time-outs and the resource's attributes are taken from
the usual variables, `OTEL_EXPORTER_OTLP_HEADERS` and so on.
"""

import logging
import os
from collections.abc import Iterator
from hashlib import blake2b
from importlib.metadata import version
from threading import Thread
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from agent.tracing.conventions import attributes_of, error_type, is_client, name_of
from agent.tracing.serialization import read_trace
from agent.tracing.trace import Summary
from agent.types import writable
from memory.spans import Span

log = logging.getLogger("hachi.traces")

PATH = "/v1/traces"
SECONDS = 5.0
"""How long the collector may take, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise; and what is left to be
sent when the companion closes."""
NANO = 1_000_000_000


class Sender:
    """A listener of the recorder."""

    def __init__(self, endpoint: str) -> None:
        """`endpoint` is the collector's, with `/v1/traces` at its end or not."""
        url = endpoint.rstrip("/")
        timeout = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else SECONDS
        exporter = OTLPSpanExporter(url if url.endswith(PATH) else url + PATH, timeout=timeout)
        self._queue = BatchSpanProcessor(exporter)
        named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "hachi"}
        self._resource = Resource.create(named | {"service.version": version("hachi")})
        self._scope = InstrumentationScope("hachi", version("hachi"))

    def __call__(self, summary: Summary, body: bytes) -> None:
        for span in self._spans(summary, read_trace(summary, body).root):
            self._queue.on_end(span)

    def close(self) -> None:
        """Send what waits; what the collector does not take in time is let go."""
        closing = Thread(target=self._queue.shutdown, daemon=True)
        closing.start()
        closing.join(SECONDS)
        if closing.is_alive():
            log.warning("the last spans could not be sent to the collector, and are gone")

    def _spans(self, summary: Summary, root: Span) -> Iterator[ReadableSpan]:
        began = int(summary.started_at.timestamp() * NANO)
        ended = began + _nano(root.took or 0.0)
        links = [Link(_place(summary.turn_id, ""))] if summary.turn_id else []
        for path, span in _descend(root):
            end = ended if span.took is None else began + _nano(span.at + span.took)
            yield ReadableSpan(
                name=writable(name_of(span)),
                context=_place(summary.id, path),
                parent=_place(summary.id, path.rpartition(".")[0]) if path else None,
                resource=self._resource,
                attributes=_sendable(attributes_of(span, None if path else summary)),
                events=_events(span, end),
                links=() if path else links,
                kind=SpanKind.CLIENT if is_client(span) else SpanKind.INTERNAL,
                status=_status(span),
                start_time=began + _nano(span.at),
                end_time=end,
                instrumentation_scope=self._scope,
            )


def _descend(span: Span, path: str = "") -> Iterator[tuple[str, Span]]:
    """Each with where it stands: empty for the root, `.0.2` for the third span of the first."""
    yield path, span
    for number, inner in enumerate(span.spans):
        yield from _descend(inner, f"{path}.{number}")


def _place(trace_id: str, path: str) -> SpanContext:
    """The same for the same span, whoever sends it."""
    whole = int(trace_id.removeprefix("trace_"), 16)
    part = blake2b(f"{trace_id}{path}".encode(), digest_size=8).digest()
    return SpanContext(whole, int.from_bytes(part), is_remote=False, trace_flags=TraceFlags(1))


def _status(span: Span) -> Status:
    if (error := error_type(span)) is None:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, writable(span.error or error))


def _events(span: Span, at: int) -> list[Event]:
    """What was raised inside, where it was not the span's own error: of tools, which answer all the same."""
    told = span.data.get("traceback")
    return [Event("exception", {"exception.stacktrace": writable(str(told))}, at)] if told else []


def _sendable(attributes: dict[str, Any]) -> dict[str, Any]:
    """Half of a surrogate pair would keep back all that is sent with it."""
    return {
        name: writable(value)
        if isinstance(value, str)
        else [writable(one) for one in value]
        if isinstance(value, list)
        else value
        for name, value in attributes.items()
    }


def _nano(seconds: float) -> int:
    return int(seconds * NANO)
