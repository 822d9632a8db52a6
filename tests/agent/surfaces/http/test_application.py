"""The application as a whole."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Serve = Callable[..., Awaitable[Any]]


async def test_requests_are_reported_to_nobody_whatever_is_set_around_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """FastAPI would send traces, whose addresses name people, to what these say; or tell that it cannot."""
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    site = await serve()
    assert (await site.client.get("/healthz")).status_code == 200
    assert "telemetry" not in caplog.text
