"""`hachi serve`, as a process of its own."""

import json
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

Hachi = Callable[..., Any]
Process = Callable[..., "subprocess.Popen[bytes]"]


def until_it_listens(process: "subprocess.Popen[bytes]") -> tuple[str, str]:
    """Its address, and what it said before."""
    said = ""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(rb"listening on (http://\S+);", line):
            return found[1].decode(), said
        said += line.decode()
    raise AssertionError(said)


def ask(address: str, path: str, key: str | None = None) -> Any:
    request = urllib.request.Request(address + path)
    if key:
        request.add_header("authorization", f"Bearer {key}")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_ends_well(process: Process, number: signal.Signals) -> None:
    running = process("serve", "--port", "0")
    address, said = until_it_listens(running)
    assert "no key yet" in said
    assert ask(address, "/healthz") == {"status": "ok"}
    assert ask(address, "/v1/models")["data"][0]["id"] == "hachi"

    running.send_signal(number)
    assert running.wait(20) == 0
    assert running.stderr is not None
    assert running.stderr.read() == b"hachi: stopped\n"


def test_with_a_key_it_says_nothing_and_asks_for_it(process: Process, hachi: Hachi) -> None:
    key = hachi("keys", "create", "web", "--service", "--json").json["key"]
    address, said = until_it_listens(process("serve", "--port", "0", "--host", "localhost"))
    assert said == ""
    assert ask(address, "/v1/models", key)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(address, "/v1/models")


@pytest.mark.parametrize(
    "command",
    [("serve", "--port", "0"), ("mcp", "--http", "0"), ("traces", "serve", "--port", "0")],
    ids=" ".join,
)
def test_other_machines_are_refused_while_there_is_no_key(shared: Hachi, command: tuple[str, ...]) -> None:
    ran = shared(*command, "--host", "0.0.0.0")
    assert ran.code == 1
    assert "hachi keys create" in ran.complaint


def test_an_address_that_cannot_be_listened_on_is_named(shared: Hachi) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = shared("serve", "--port", str(port))
        other = shared("mcp", "--http", str(port))
    assert ran.code == 1
    assert f"127.0.0.1:{port} cannot be listened on" in ran.complaint
    assert ran.complaint.endswith("choose another --port")
    assert other.complaint.endswith("choose another --http")
    assert "300.1.1.1:8000 cannot be listened on" in shared("serve", "--host", "300.1.1.1").complaint


def test_the_pages_of_traces_are_served(process: Process) -> None:
    running = process("traces", "serve", "--port", "0")
    address, said = until_it_listens(running)
    assert "no key yet, so whoever is on this machine may look" in said
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=20) as answer:
        assert b"There is no trace yet" in answer.read()
    running.send_signal(signal.SIGTERM)
    assert running.wait(20) == 0
