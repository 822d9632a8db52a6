"""Every route of every server, asked with every kind of key: who may act, and for whom."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import jwt
import pytest
from sites import new_key
from starlette.routing import Mount

from agent.surfaces.http.application import app as api
from agent.surfaces.mcp.http import app as mcp
from agent.surfaces.web.application import app as web
from memory.errors import NotFound

SECRET = "a secret of both servers, 32 bytes at least"
USER, TOKEN = "x-openwebui-user-id", "x-openwebui-user-jwt"
FILLED = {"user": "ben", "sessionId": "ben", "field": "tone", "name": "a.md", "model": "hachi"}
PERSON = "/api/users/{user}"
ROUTES = {
    "open": "GET /openapi.json, GET /docs, GET /healthz, GET /readyz, POST /leave, GET /static/page.css",
    "sign-in": "GET /enter, POST /enter",
    "any key": "POST /v1/chat/completions, POST /v1/responses, POST /v1/embeddings, GET /v1/models, "
    "GET /v1/models/{model}, POST /mcp",
    "person": f"""GET {PERSON}/memories, POST {PERSON}/memories, GET {PERSON}/memories/search,
        GET {PERSON}/memories/{{id}}, PATCH {PERSON}/memories/{{id}}, DELETE {PERSON}/memories/{{id}},
        POST {PERSON}/memories/{{id}}/forget, GET {PERSON}/memories/{{id}}/history,
        POST {PERSON}/memories/{{id}}/undo, POST {PERSON}/forget, POST {PERSON}/forgotten/{{id}}/undo,
        GET {PERSON}/messages, DELETE {PERSON}/messages/{{id}}, GET {PERSON}/tasks, POST {PERSON}/tasks,
        PATCH {PERSON}/tasks/{{id}}, DELETE {PERSON}/tasks/{{id}}, GET {PERSON}/context,
        PUT {PERSON}/context/{{field}}, DELETE {PERSON}/context/{{field}}, GET {PERSON}/export,
        GET {PERSON}/check-ins, PUT {PERSON}/check-ins,
        GET {PERSON}/accounts, POST {PERSON}/accounts, POST {PERSON}/accounts/code, DELETE {PERSON}/accounts,
        DELETE {PERSON}, GET {PERSON}/knowledge, GET {PERSON}/knowledge/search, POST {PERSON}/knowledge,
        PUT {PERSON}/knowledge/files/{{name}}, DELETE {PERSON}/knowledge/{{id}},
        GET {PERSON}/conversations, GET {PERSON}/conversations/{{id:path}},
        DELETE {PERSON}/conversations/{{id:path}},
        GET /api/sessions/{{sessionId}}/memories, POST /api/sessions/{{sessionId}}/memories,
        GET /api/sessions/{{sessionId}}/memories/{{memoryId}},
        DELETE /api/sessions/{{sessionId}}/memories/{{memoryId}}""",
    "place": "GET /api/knowledge?place=acme, GET /api/knowledge/search?place=acme, "
    "POST /api/knowledge?place=acme, PUT /api/knowledge/files/{name}?place=acme, "
    "DELETE /api/knowledge/{id}?place=acme",
    "everybody": "GET /api/knowledge, GET /api/knowledge/search",
    "admin": "POST /api/knowledge, PUT /api/knowledge/files/{name}, DELETE /api/knowledge/{id}, GET /metrics",
    "page": """GET /, POST /talk, GET /messages/{id}/why, GET /memories, POST /keep, POST /memories,
        POST /memories/alias, GET /memories/{id}, POST /memories/{id}, POST /memories/{id}/undo,
        POST /memories/{id}/forget, POST /messages/{id}/forget, GET /forget, POST /forget, POST /restore,
        GET /tasks, POST /tasks, POST /tasks/{id}, GET /documents, POST /documents,
        POST /documents/{id}/remove, GET /traces, GET /live, GET /statistics, GET /traces/{id},
        GET /traces/{id}/pane, GET /traces/{id}/text, GET /traces/{id}/value, GET /traces/{id}/json,
        GET /traces/{id}/markdown, GET /traces/{id}/why, POST /traces/{id}/replay, POST /traces/{id}/test,
        POST /check-ins, GET /compare, GET /conversations,
        GET /conversations/{id:path}, POST /conversations/forget""",
}
KEYS = "none wrong ana's ben's ben's:ana service service:ben token forged operator operator:ben".split()
"""What is shown: whose key, and after the colon whom a header names. Each asks for what is Ben's."""
TELLING = ("none", "ana's", "ben's", "service")
"""What every route is asked with; the first of each kind is asked with all, signed or not."""
EXPECTED = {  # y: done; n: refused; ?: no key that counts. First without the secret of the tokens, then with.
    "open": ("y y y y y y y y y y y", "y y y y y y y y y y y"),
    "sign-in": ("? ? ? ? ? ? ? ? ? ? ?", "? ? ? ? ? ? ? ? ? ? ?"),
    "any key": ("? ? y y n y y ? ? y y", "? ? y y n y n y ? y y"),
    "person": ("? ? n y n y y ? ? y y", "? ? n y n n n y ? y y"),
    "place": ("? ? n n n y n ? ? y n", "? ? n n n n n n ? y n"),
    "everybody": ("? ? y y n y y ? ? y y", "? ? y y n y n y ? y y"),
    "admin": ("? ? n n n n n ? ? y y", "? ? n n n n n n ? y y"),
    "page": ("? ? y y n n y ? ? n y", "? ? y y n n n y ? n y"),
}


def table() -> dict[str, str]:
    """The kind of each route, by its method and address."""
    return {" ".join(route.split()): kind for kind, routes in ROUTES.items() for route in routes.split(",")}


def routes_of(app: Any) -> set[str]:
    found = {"GET /static/page.css" for route in app.router.routes if isinstance(route, Mount)}
    for route in app.router.routes:
        for method in (getattr(route, "methods", None) or set()) - {"HEAD"}:
            found.add(f"{method} {route.path}")
    return found


@pytest.fixture(params=[False, True], ids=["unsigned", "signed"])
async def asked(request: Any, open_pet: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """The companion, its servers by name, each with a client, the headers by kind of key, and whether users
    are signed."""
    signed = {"forward_user_info_header_jwt_secret": SECRET} if request.param else {}
    pet = await open_pet(http_rate=0, **signed)
    ana, ben, service, operator = [
        {"authorization": f"Bearer {(await new_key(pet, user, admin=admin))[1]}"}
        for user, admin in (("ana", False), ("ben", False), (None, False), (None, True))
    ]

    def token(secret: str) -> dict[str, str]:
        return {TOKEN: jwt.encode({"sub": "ben", "exp": 4_000_000_000}, secret, "HS256")}

    named = {"ana": {USER: "ana"}, "ben": {USER: "ben"}}
    shown: list[dict[str, str]] = [{}, {"authorization": "Bearer hachi-wrong"}, ana, ben, ben | named["ana"]]
    shown += [service, service | named["ben"], service | token(SECRET), service | token(SECRET[::-1])]
    shown += [operator, operator | named["ben"]]
    servers = {
        "api": api(pet, pet.settings, console=True),
        "console": web(pet, person="ana", stopping=lambda: True),
        "traces": web(pet, stopping=lambda: True),
        "mcp": mcp(pet, loopback=True),
    }
    async with AsyncExitStack() as leaving:
        clients = {}
        for name, app in servers.items():
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
            clients[name] = await leaving.enter_async_context(client)
        yield pet, servers, clients, dict(zip(KEYS, shown, strict=True)), request.param


async def outcome(client: httpx.AsyncClient, route: str, headers: dict[str, str]) -> str:
    method, address = route.split()
    for part in "user sessionId field name model id memoryId".split():
        address = address.replace(f"{{{part}}}", FILLED.get(part, "0" * 36))
    answer = await client.request(method, address, headers=headers)
    if answer.status_code == 401:
        return "?"
    return "n" if answer.status_code == 403 or "session_not_found" in answer.text else "y"


async def test_each_route_acts_for_whom_the_key_may_name_and_nobody_else(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pet, servers, clients, keys, signed = asked
    await pet.remember("Ben owns a red boat", user="ben")

    async def erase(*_: Any, **__: Any) -> None:
        raise NotFound("whose keys are needed for the other routes")

    monkeypatch.setattr(type(pet.people), "erase", erase)
    wrong, seen, tried = [], set(), set()
    for name, app in servers.items():
        routes = routes_of(app)
        seen |= routes
        async with app.router.lifespan_context(app):
            for route, kind in table().items():
                if route.partition("?")[0] not in routes:
                    continue
                kind = "admin" if (name, kind) == ("traces", "page") else kind
                expected = dict(zip(KEYS, EXPECTED[kind][signed].split(), strict=True))
                first = (name, kind) not in tried
                tried.add((name, kind))
                for key in KEYS if first else () if signed else TELLING:
                    found = await outcome(clients[name], route, keys[key])
                    if found != expected[key]:
                        wrong.append(f"{name}: {route} with {key} is {found}, not {expected[key]}")
    assert seen == {one.partition("?")[0] for one in table()}, "each route has its line in the table"
    assert wrong == []


@pytest.mark.parametrize(
    ("key", "name", "unsigned", "with_secret"),
    [
        ("ben's", "", "ben", "ben"),
        ("ben's", "ana", "ben", "ben"),  # the name is for a service's key
        ("service", "", None, None),
        ("service", "ben", "ben", None),
        ("operator", "ben", "ben", "ben"),
    ],
)
async def test_a_visit_of_the_console_acts_as_its_key_does_elsewhere(
    asked: Any, key: str, name: str, unsigned: str | None, with_secret: str | None
) -> None:
    pet, _, clients, keys, signed = asked
    await pet.remember("Ben owns a red boat", user="ben")
    secret = keys[key]["authorization"].removeprefix("Bearer ")
    answer = await clients["console"].post("/enter", data={"key": secret, "name": name})
    acts = with_secret if signed else unsigned
    assert answer.status_code == (303 if acts else 403)
    page = await clients["console"].get("/memories")
    assert (page.status_code == 200, "red boat" in page.text) == (bool(acts), acts == "ben")


async def test_a_visit_ends_where_its_key_may_not_name_people_any_more(open_pet: Any) -> None:
    pet = await open_pet()
    _, secret = await new_key(pet)
    pages = httpx.AsyncClient(transport=httpx.ASGITransport(web(pet, person="ana")), base_url="http://a")
    async with pages:
        assert (await pages.post("/enter", data={"key": secret, "name": "ben"})).status_code == 303
        cookies = dict(pages.cookies)
    strict = await open_pet(forward_user_info_header_jwt_secret=SECRET)
    transport = httpx.ASGITransport(web(strict, person="ana"))
    async with httpx.AsyncClient(transport=transport, base_url="http://a", cookies=cookies) as pages:
        assert (await pages.get("/memories")).status_code == 403
