"""The description of the API, and an API that bears whatever fits it, and what does not."""

import asyncio
from contextlib import suppress
from inspect import iscoroutinefunction
from itertools import product
from typing import Any

import numpy  # noqa: F401 - whole before hypothesis, on its thread, looks for what the server may just import
import pytest
import schemathesis
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

from agent.surfaces.http.application import app as api
from agent.surfaces.web.application import app as web

EXAMPLES = 2
"""Of each operation."""


async def test_a_client_can_be_generated_every_operation_has_an_id_and_a_typed_answer(site: Any) -> None:
    described = (await site.client.get("/openapi.json")).json()
    operations = [one for path in described["paths"].values() for one in path.values()]
    ids = [one["operationId"] for one in operations]
    assert len(ids) == len(set(ids)) > 40
    assert all(id.isidentifier() for id in ids)
    assert not [name for name in described["components"]["schemas"] if "__" in name], "two of one name"
    untyped = set()
    for one in operations:
        for status in ("200", "201"):
            answer = (
                one["responses"].get(status, {}).get("content", {}).get("application/json", {}).get("schema")
            )
            if answer and not ({"$ref", "items"} & answer.keys()):
                untyped.add(one["operationId"])
        assert one["responses"]["4XX"]["content"]["application/json"]["schema"] == {
            "$ref": "#/components/schemas/ErrorBody"
        }
    assert untyped == {"export_person", "healthz"}


@pytest.mark.slow
async def test_nothing_that_is_sent_breaks_the_server(site: Any) -> None:
    headers = await site.headers(admin=True)

    def ask_everything() -> int:
        schema = schemathesis.openapi.from_url(f"{site.url}/openapi.json")
        asked = 0
        for found, mode in product(schema.get_all_operations(), GenerationMode):
            operation = found.ok()

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(mode))
            def ask(case: Any) -> None:
                assume(len(str(case.query)) < 5_000)  # the head of a request has 64 KB
                answer = case.call(headers=headers, timeout=60)  # the first turn loads the agent
                case.validate_response(answer, checks=[not_a_server_error])

            with suppress(Unsatisfiable):  # what takes nothing cannot be given anything wrong
                ask()
                asked += 1
        return asked

    assert await asyncio.to_thread(ask_everything) > 20


async def test_no_request_waits_for_a_thread(site: Any) -> None:
    """FastAPI calls what is not async in one of 40 threads, which costs more than what is called."""

    def waiting(dependant: Dependant) -> list[str]:
        inner = [name for one in dependant.dependencies for name in waiting(one)]
        call = dependant.call
        asynchronous = iscoroutinefunction(call) or iscoroutinefunction(type(call).__call__)
        return inner if asynchronous else [*inner, str(call)]

    servers = api(site.pet, site.pet.settings), web(site.pet, person="ana")
    routes = [one for server in servers for one in server.router.routes if isinstance(one, APIRoute)]
    assert len(routes) > 80
    assert [name for route in routes for name in waiting(route.dependant)] == []
