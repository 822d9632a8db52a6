"""What a request may hold."""

from collections.abc import Iterator
from typing import Any

import pytest

BOUNDED = {"maxLength", "enum", "const", "pattern", "format"}


def unbounded(schema: Any, name: str = "") -> Iterator[str]:
    """The fields of a schema that may hold any amount."""
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if kind == "string" and not BOUNDED & schema.keys():
        yield name
    if kind == "array" and "maxItems" not in schema:
        yield f"{name}[]"
    if kind == "object" and "properties" not in schema and "maxProperties" not in schema:
        yield f"{name}{{}}"
    for part, inner in schema.get("properties", {}).items():
        yield from unbounded(inner, f"{name}.{part}")
    for inner in (*schema.get("anyOf", ()), schema.get("items")):
        yield from unbounded(inner, name)


def used_by(schema: Any, parts: dict[str, Any]) -> set[str]:
    """The names of the schemas that a schema leads to."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, list):
            waiting += here
        elif isinstance(here, dict):
            name = str(here.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.add(name)
                waiting.append(parts[name])
            waiting += here.values()
    return found


async def test_every_field_of_every_body_and_query_has_a_limit(site: Any) -> None:
    described = (await site.client.get("/openapi.json")).json()
    parts, loose = described["components"]["schemas"], list[str]()
    for address, methods in described["paths"].items():
        for operation in methods.values():
            asked = operation.get("requestBody", {}).get("content", {})
            for body in asked.values():
                for name in used_by(body["schema"], parts):
                    loose += unbounded(parts[name], name)
            for one in operation.get("parameters", ()):
                if one["in"] == "query":
                    loose += unbounded(one["schema"], f"{address}?{one['name']}")
    assert sorted(set(loose)) == []


async def test_what_could_not_be_sent_on_to_the_model_is_refused(site: Any) -> None:
    headers = await site.headers("ana") | {"content-type": "application/json"}
    for more in (b'"top_k": 1e400', b'"metadata": {"a": NaN}'):
        body = b'{"messages": [{"role": "user", "content": "Hello"}], %b}' % more
        answer = await site.client.post("/v1/chat/completions", content=body, headers=headers)
        assert (answer.status_code, "none in JSON" in answer.text) == (400, True)


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "file:///etc/passwd", "data:text/html,a", "a.png", " https://a"]
)
async def test_an_image_is_a_picture_or_https(site: Any, url: str) -> None:
    """The model's server fetches it."""
    headers = await site.headers("ana")
    for given in (url, {"url": url}):
        part = [{"type": "image_url", "image_url": given}]
        answer = await site.client.post(
            "/v1/chat/completions", json={"messages": [{"role": "user", "content": part}]}, headers=headers
        )
        assert answer.status_code == 400
        assert "begins with https:// or data:image/" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("messages", "tools", "where"),
    [
        ([{"role": "user", "content": "Hello"}], ["a" * 390_000, "b" * 20_000], "tools"),
        (
            [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "look"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "a" * 399_999},
            ],
            ["b" * 1_000],
            "results of tools",
        ),
    ],
)
async def test_the_model_is_given_so_much_of_a_client_and_no_more(
    scripted: Any, messages: Any, tools: list[str], where: str
) -> None:
    offered = [
        {"type": "function", "function": {"name": f"look{at}", "description": text}}
        for at, text in enumerate(tools)
    ]
    answer = await scripted.client.post(
        "/v1/chat/completions",
        json={"messages": messages, "tools": offered},
        headers=await scripted.headers("ana"),
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(f"{where}: ")
    assert "400,000 at most" in answer.json()["error"]["message"]
