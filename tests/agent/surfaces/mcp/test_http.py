"""Over HTTP: who gets in, and for whom the tools then act."""

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from memory.errors import IndexUnavailable

USER = "x-openwebui-user-id"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_key_decides_for_whom_the_tools_act(site: Any, mode: str) -> None:
    user = f"ana-{mode}"
    (_, anas), (_, bens), (_, service) = await site.key(user), await site.key("ben"), await site.key()
    async with (
        site.agent(anas, mode=mode) as ana,
        site.agent(bens, mode=mode) as ben,
        site.agent(service | {USER: user}, mode=mode) as named,
        site.agent(service, mode=mode) as anonymous,
    ):
        await ana.call("remember", content="Ana has a red boat")
        assert await ana.knows() == await named.knows() == ["Ana has a red boat"]
        assert await ben.knows() == []
        assert len((await anonymous.client.list_tools()).tools) == 9
        assert "header x-openwebui-user-id" in await anonymous.refused("get_recent_memories")
    assert [memory.user_id for memory in await site.pet.memories.list(user=user)] == [user]


async def test_a_client_without_a_key_is_told_what_to_show(site: Any) -> None:
    """`test_who_acts.py` proves whose key is let in."""
    _, ana = await site.key("ana", admin=True)
    assert (await site.post(headers=ana | {USER: "ben"})).status_code == 403, "an admin who is a person"
    answer = await site.post()
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    with pytest.raises(ExceptionGroup) as refused:
        async with site.agent({}):
            pass
    assert refused.group_contains(MCPError, match="error response")


async def test_a_page_elsewhere_that_has_a_key_is_not_let_in(serve: Any) -> None:
    site = await serve()
    assert (await site.post(headers={"host": "evil.example"})).status_code == 403  # before the first key too
    _, key = await site.key("ana")
    headers: dict[str, str]
    for headers, status in (
        ({}, 200),
        ({"host": "localhost:8001"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:8001"}, 421),
        ({"origin": "http://localhost:5173"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ):
        assert (await site.post(headers=key | headers)).status_code == status
        assert (await site.post(headers=key | headers | MODERN)).status_code in (status, 400)


MODERN = {"mcp-protocol-version": "2026-07-28"}
"""Such a request is served by another part of the SDK; without more it is no good one (400)."""


@pytest.mark.parametrize(("host", "names"), [("0.0.0.0", ()), ("192.168.1.4", ("hachi.example",))])
async def test_on_every_address_any_name_is_answered_and_elsewhere_only_known_ones(
    serve: Any, host: str, names: tuple[str, ...]
) -> None:
    site = await serve(host=host, names=names)
    assert (await site.post()).status_code == 401
    _, key = await site.key("ana")
    for name in ("hachi.example", host):
        assert (await site.post(headers=key | {"host": name})).status_code == 200


async def test_there_is_nothing_else_at_this_server(site: Any) -> None:
    _, key = await site.key("ana")
    async with site.http(key) as http:
        for method in ("GET", "DELETE", "PUT"):  # a stream that nothing comes on is not kept open
            assert (await http.request(method, site.url)).status_code == 405
        for path in ("/", "/mcp/", "/docs", "/openapi.json", "/api/users/ana/memories"):
            assert (await http.get(site.url.removesuffix("/mcp") + path)).status_code == 404


async def test_before_the_first_key_this_machine_may_ask_for_anybody_and_reads_faults_in_full(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await serve()

    async def away(*_: Any, **__: Any) -> Any:
        raise IndexUnavailable("the index in /srv/secret is held by another process")

    async with site.agent({USER: "ana"}) as ana:
        await ana.call("remember", content="Ana has a red boat")
        assert await ana.knows() == ["Ana has a red boat"]
        monkeypatch.setattr("memory.search.recall.Recall.recent", away)
        assert "/srv/secret" in await ana.refused("get_recent_memories")
    _, headers = await site.key("ana", admin=True)
    async with site.agent(headers) as ana:
        assert "try again later" in await ana.refused("get_recent_memories")
    assert (await site.post(headers={USER: "ana"})).status_code == 401
