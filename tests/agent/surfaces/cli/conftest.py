"""The command, run in this process or as a process of its own, and a model server for it."""

import functools
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent.surfaces.cli import main
from memory.index.embedders import bundled

COMMAND = (sys.executable, "-m", "agent.surfaces.cli")
LOAD_ONCE = functools.cache(bundled._load)
SETTINGS = ("DATABASE_URL", "QDRANT_URL", "QDRANT_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on stderr; more lines fail the test."""
        [line] = self.err.splitlines()
        return line


class TypedInput(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Hachi:
    """`hachi("memories", "list", stdin=b"…")` in this process, with settings such as `HACHI_TRACES="no"`."""

    home: Path

    def __call__(
        self, *args: str, stdin: bytes = b"", typed: bool = False, screen: bool = False, **settings: str
    ) -> Ran:
        """`typed` input comes from a terminal; with `screen` the output goes to one."""
        kind = TypedInput if typed else io.TextIOWrapper
        out, err = Screen() if screen else io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "stdin", kind(io.BytesIO(stdin), encoding="utf-8"))
            use_home(patch, self.home)
            for name, value in settings.items():
                patch.setenv(name, value)
            code = main(args)
        return Ran(code, out.getvalue(), err.getvalue())


def use_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    for name, value in {
        "HACHI_HOME": str(home),
        "LOGNAME": "mickael",
        "COLUMNS": "200",
        "TZ": "UTC",
    }.items():
        patch.setenv(name, value)
    patch.setattr(bundled, "_load", LOAD_ONCE)
    time.tzset()


@pytest.fixture
def home(empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder in which nothing has been said, and no setting but that."""
    for name in [name for name in os.environ if name in SETTINGS or name.startswith("HACHI_")]:
        monkeypatch.delenv(name)
    folder = Path(shutil.copytree(empty_home, tmp_path / "home"))
    use_home(monkeypatch, folder)
    return folder


@pytest.fixture
def hachi(home: Path) -> Hachi:
    return Hachi(home)


@pytest.fixture(scope="module")
def shared(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Hachi:
    """With one data folder for all tests of a module."""
    return Hachi(Path(shutil.copytree(empty_home, tmp_path_factory.mktemp("shared") / "home")))


@pytest.fixture
def process(home: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """`process("chat")` as a process of its own, with pipes."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*args: str, **options: Any) -> "subprocess.Popen[bytes]":
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen([*COMMAND, *args], **pipes | options))
        return started[-1]

    yield run
    for one in started:
        one.kill()
        one.wait()
        for pipe in (one.stdin, one.stdout, one.stderr):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


@dataclass
class ModelServer:
    """Answers as an OpenAI-compatible server does."""

    address: str
    answer: str = "Hello there, how are you?"
    status: int = 200
    pause: float = 0.0
    """Seconds between two words."""
    asked: list[str] = field(default_factory=list)

    def interrupt_once_asked(self, after: float = 0.0) -> threading.Thread:
        """Presses Ctrl-C that many seconds after the first question; at the latest after half a minute."""

        def press() -> None:
            end = time.monotonic() + 30
            while not self.asked and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(after)
            os.kill(os.getpid(), signal.SIGINT)

        waiting = threading.Thread(target=press)
        waiting.start()
        return waiting


@pytest.fixture
def model(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(
                {
                    "object": "list",
                    "data": [{"id": "small", "object": "model", "created": 0, "owned_by": "us"}],
                }
            )

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            server.asked.append(body.decode())
            if server.status == 200 and json.loads(body).get("stream"):
                self.stream()
            else:
                ended.wait(server.pause)
                message = {"role": "assistant", "content": server.answer}
                self.reply(completion("chat.completion", message=message, finish_reason="stop"))

        def reply(self, body: dict[str, Any]) -> None:
            data = json.dumps(body if server.status == 200 else {"error": {"message": "no"}}).encode()
            self.send_response(server.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def stream(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            words = server.answer.split(" ")
            for number, word in enumerate(words):
                ended.wait(server.pause)
                delta = {"role": "assistant", "content": word if number == 0 else f" {word}"}
                last = "stop" if number + 1 == len(words) else None
                chunk = completion("chat.completion.chunk", delta=delta, finish_reason=last)
                self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")

        def handle(self) -> None:
            with suppress(OSError):  # whoever asked has gone
                super().handle()

        def log_message(self, *_: Any) -> None:
            pass

    def completion(kind: str, **choice: Any) -> dict[str, Any]:
        return {"id": "1", "object": kind, "created": 0, "model": "small", "choices": [{"index": 0} | choice]}

    ended = threading.Event()
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = ModelServer(f"http://127.0.0.1:{http.server_port}/v1")
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.address)
    monkeypatch.setenv("HACHI_MODEL", "small")
    monkeypatch.setenv("HACHI_MODEL_RETRIES", "0")
    yield server
    ended.set()
    http.shutdown()
    http.server_close()
    thread.join()
