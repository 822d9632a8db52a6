"""Every fault is an answer in the one shape."""

from collections.abc import Iterator
from typing import Any

import pytest

import memory.errors
import memory.people.tasks
import memory.sql.engine
import memory.sql.keys
from agent.errors import AnswerMisfit, HachiError, ModelUnavailable
from agent.services.memories import MemoryService
from agent.surfaces.http.errors import PUBLIC_MESSAGES, fault_response
from memory.errors import NotFound, StoreUnavailable


def kinds(parent: type[HachiError]) -> Iterator[type[HachiError]]:
    yield parent
    for kind in parent.__subclasses__():
        yield from kinds(kind)


ALL = sorted(set(kinds(HachiError)), key=lambda kind: kind.__name__)


def made(kind: type[Exception]) -> Exception:
    return kind("why", []) if kind is memory.people.tasks.Unclear else kind("a secret\npath")  # type: ignore[call-arg]


def test_every_fault_has_a_status_and_a_line() -> None:
    for kind in ALL:
        status, answer = fault_response(made(kind), operator=True)
        assert 400 <= status < 600
        assert answer["error"].keys() == {"message", "type", "param", "code"}
        assert "\n" not in answer["error"]["message"]
        if status >= 500 and kind is not AnswerMisfit:  # it tells of the client's own form alone
            assert "secret" not in fault_response(made(kind), operator=False)[1]["error"]["message"]
    assert PUBLIC_MESSAGES.keys() <= {kind.code for kind in ALL}


async def test_no_fault_escapes(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    headers, operator = await site.headers("ana"), await site.headers("ana", admin=True)
    coming: list[Exception] = []

    async def failing(*_: Any, **__: Any) -> Any:
        raise coming.pop()

    monkeypatch.setattr(MemoryService, "list", failing)
    for kind in ALL:
        coming.append(made(kind))
        answer = await site.client.get("/api/users/ana/memories", headers=headers)
        assert answer.status_code == kind.status, kind
        assert answer.json()["error"]["code"] == kind.code
    for who, shown in ((headers, False), (operator, True)):
        coming.append(StoreUnavailable("/srv/hachi.db: the disk is full"))
        answer = await site.client.get("/api/users/ana/memories", headers=who)
        assert (answer.status_code, "/srv" in answer.text) == (503, shown)


def test_a_fault_names_its_turn() -> None:
    error = ModelUnavailable("nobody there")
    error.trace_id = "trace_1"
    for in_full, line in (
        (True, "nobody there (trace_1)"),
        (False, f"{PUBLIC_MESSAGES['model_unavailable']} (trace_1)"),
    ):
        assert fault_response(error, operator=in_full)[1]["error"]["message"] == line
    assert fault_response(NotFound("no task 'x'"), operator=False)[1]["error"]["message"] == "no task 'x'"


async def test_an_address_that_is_none_is_told_so(site: Any) -> None:
    for method, path, status in (
        ("GET", "/../../etc/passwd", 404),
        ("GET", "//v1/models", 404),
        ("DELETE", "/healthz", 405),
    ):
        answer = await site.client.request(method, path)
        assert answer.status_code == status
        assert answer.json()["error"]["type"] in ("not_found_error", "invalid_request_error")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\xff\xfe\x00",
        b'{"messages": [{"role": "\\ud800"}]}',
        b'{"n": 1e999, "messages": []}',
        b'{"n": ' + b"9" * 5_000 + b', "messages": []}',
        b"null",
    ],
    ids=range(6),
)
async def test_a_body_that_is_no_request_is_400_in_the_typed_shape(site: Any, content: bytes) -> None:
    headers = await site.headers("ana") | {"content-type": "application/json"}
    answer = await site.client.post("/v1/chat/completions", content=content, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


CHAT, ANA = "/v1/chat/completions", "/api/users/ana"
SAID = {"messages": [{"role": "user", "content": "hello"}]}
BAD_NAME = {"type": "function", "function": {"name": "bad name"}}
WHOLE = "the body must be an object in JSON, sent with content-type: application/json"


@pytest.mark.parametrize(
    ("method", "path", "given", "said"),
    [
        ("POST", CHAT, {"content": b'{"messages": []}'}, WHOLE),
        ("POST", CHAT, {"json": []}, WHOLE),
        ("PATCH", f"{ANA}/tasks/milk", {"json": {"status": "done"}}, "id: this is not an id"),
        ("GET", f"{ANA}/memories?limit=many", {}, "limit: 'many' is not a whole number from 1 to 10000"),
        ("GET", f"{ANA}/memories?offset=2", {}, "offset: there is no such parameter"),
        ("POST", f"{ANA}/memories", {"json": {"content": "x", "a": 1}}, "a: there is no such argument"),
        ("POST", "/v1/embeddings", {"json": {"input": ["a", ""]}}, "input.1: string should have at least 1"),
        ("POST", "/v1/responses", {"json": {"input": [{"type": "x"}]}}, "input.0.type: 'x' is not one of"),
        ("POST", CHAT, {"json": SAID | {"stop": ["", "x"]}}, "stop.0: string should have"),
        ("POST", CHAT, {"json": SAID | {"stop": ["x"] * 5}}, "stop: list should have"),
        ("POST", CHAT, {"json": SAID | {"tool_choice": "required"}}, "tool_choice: a call"),
        ("POST", CHAT, {"json": SAID | {"tools": [BAD_NAME]}}, "tools.0.function.name: lett"),
    ],
)
async def test_what_is_wrong_with_a_request_is_told_in_words(site, method, path, given, said) -> None:
    answer = await site.client.request(method, path, headers=await site.headers("ana"), **given)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["message"].startswith(said)
    assert error["param"] == (None if said == WHOLE else said.partition(":")[0])
