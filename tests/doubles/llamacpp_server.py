"""A llama.cpp server as a child process, and a proxy in front of it that records requests and answers."""

import http.client
import json
import re
import socket
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SERVE = Path(__file__).parents[1] / "llamacpp" / "serve.py"
STARTS = 60.0
"""Seconds until the server must answer after its start."""
FIGURES: list[str] = []
"""Measurements, one line each, shown at the end of the run."""


@dataclass(frozen=True)
class Exchange:
    """A request and its answer, as they went over the wire."""

    asked: dict[str, Any]
    answer: str
    status: int
    first: float
    """Seconds until the first piece of the answer."""

    @property
    def timings(self) -> dict[str, Any]:
        """Return llama.cpp's counts: `prompt_n` tokens were evaluated, `cache_n` reused, `predicted_n`
        written. Empty for a refusal."""
        found = re.findall(r'"timings":(\{[^{}]*\})', self.answer)
        return dict(json.loads(found[-1])) if found else {}

    @property
    def finish(self) -> str:
        return (re.findall(r'"finish_reason":"(\w+)"', self.answer) or [""])[-1]

    @property
    def text(self) -> str:
        """Return the text of the model, whole or joined from a stream."""
        events = re.findall(r"^data: (\{.*\})$", self.answer, re.M) or [self.answer]
        with suppress(ValueError):
            choices = [choice for event in events for choice in json.loads(event).get("choices", ())]
            parts = [choice.get("message") or choice.get("delta") or {} for choice in choices]
            return "".join(part.get("content") or "" for part in parts)
        return ""

    @property
    def prompt(self) -> str:
        return json.dumps(self.asked, ensure_ascii=False)


class Llama:
    """A running server. `kill` ends it at once; `start` starts it again at the same port."""

    def __init__(self, python: Path, model: Path, **options: Any) -> None:
        self._command = [str(python), str(SERVE), str(model)]
        self._options = {"n_ctx": 4096, "n_predict": 48} | options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.exchanges: list[Exchange] = []
        self.answering = threading.Event()
        """Set with the first piece of an answer."""
        self.start()
        self._proxy = _proxy(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._proxy.server_port}/v1"

    def start(self) -> None:
        command = [*self._command, str(self.port), json.dumps(self._options)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + STARTS
        while time.monotonic() < until:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2):
                return
            time.sleep(0.1)
        raise RuntimeError(f"no llama.cpp server after {STARTS:g} s")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._proxy.shutdown()
        self._proxy.server_close()


@contextmanager
def llama(python: Path, model: Path, **options: Any) -> Iterator[Llama]:
    running = Llama(python, model, **options)
    try:
        yield running
    finally:
        running.close()


def _proxy(server: Llama) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            self._forward(b"")

        def do_POST(self) -> None:
            self._forward(self.rfile.read(int(self.headers["content-length"])))

        def _forward(self, body: bytes) -> None:
            began, first, answer, status = time.monotonic(), 0.0, b"", 0
            headers = {"content-type": "application/json"}
            if key := self.headers.get("authorization"):
                headers["authorization"] = key
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
            with suppress(OSError, http.client.HTTPException):
                connection.request(self.command, self.path, body, headers)
                reply = connection.getresponse()
                status = reply.status
                self.send_response(status)
                self.send_header("content-type", reply.headers.get("content-type", "application/json"))
                self.send_header("connection", "close")
                self.end_headers()
                while piece := reply.read1(65_536):
                    first = first or time.monotonic() - began
                    server.answering.set()
                    answer += piece
                    self.wfile.write(piece)
                    self.wfile.flush()
            connection.close()
            self.close_connection = True
            if body:
                text = answer.decode("utf-8", "replace")
                server.exchanges.append(Exchange(json.loads(body), text, status, first))

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    return proxy


def figures(what: str, values: list[float], unit: str) -> None:
    """Show the median and the 90th percentile at the end of the run."""
    ordered = sorted(values)
    p90 = ordered[min(len(ordered) - 1, round(0.9 * (len(ordered) - 1)))]
    FIGURES.append(f"{what}: p50 {statistics.median(values):.4g} {unit}, p90 {p90:.4g} {unit}")
