"""Who may look at traces."""

from base64 import urlsafe_b64encode
from collections.abc import Callable

import httpx
import pytest

from agent.surfaces.web.application import app
from agent.surfaces.web.visits import COOKIE, VISIT

Ask = Callable[..., httpx.AsyncClient]


async def key(pet, *, admin=True):
    return await pet.admin.keys.create("test", "service", None, admin, now=pet.clock())


PATHS = [
    *("/traces", "/live", "/compare", "/traces/last", "/traces/last/pane"),
    *("/traces/last/value", "/traces/last/text", "/traces/last/json", "/traces/last/markdown"),
]


async def test_without_any_key_only_this_machine_may_look_by_its_own_names(ask):
    for host in ("localhost:8020", "127.0.0.1:8020", "[::1]:8020"):
        assert (await ask(host=host).get("/traces")).status_code == 200
    for path in PATHS:
        assert (await ask(host="evil.example").get(path)).status_code == 403
    answer = await ask(loopback=False, host="hachi.example").get("/traces")
    assert answer.status_code == 401
    assert 'name="key"' in answer.text


async def test_once_there_is_a_key_it_is_needed_here_too(pet, ask):
    await key(pet)
    for path in PATHS:
        assert (await ask().get(path)).status_code == 401


async def test_an_admins_key_lets_in_and_no_other(pet, ask):
    _, admin = await key(pet)
    _, service = await key(pet, admin=False)
    client = ask()
    assert (await client.get("/traces", headers={"authorization": f"Bearer {admin}"})).status_code == 200
    assert (await client.get("/traces", headers={"authorization": f"Bearer {service}"})).status_code == 403
    assert (await client.get("/traces", headers={"authorization": "Bearer hachi-wrong"})).status_code == 401


async def test_logging_in_leaves_a_cookie_that_no_script_reads(pet, ask):
    _, secret = await key(pet)
    client = ask()
    answer = await client.post("/enter", data={"key": secret, "to": "/?user=ana"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?user=ana")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert secret not in cookie
    assert (await client.get("/traces")).status_code == 200
    assert (await ask().get("/traces", headers={"cookie": cookie.partition(";")[0]})).status_code == 200
    await client.post("/leave")
    assert (await client.get("/traces")).status_code == 401


async def test_another_process_on_the_database_knows_who_logged_in(pet, ask, open_pet):
    _, secret = await key(pet, admin=False)
    cookie = (await ask(person="ana").post("/enter", data={"key": secret, "name": "zoé"})).cookies[COOKIE]
    await pet.remember("Zoé keeps bees", user="zoé")
    other = httpx.ASGITransport(app=app(await open_pet(), person="ana"))
    async with httpx.AsyncClient(transport=other, base_url="http://localhost") as client:
        page = await client.get("/memories", headers={"cookie": f"{COOKIE}={cookie}"})
    assert "Zoé keeps bees" in page.text


async def test_a_cookie_that_was_changed_opens_nothing(pet, ask):
    made, secret = await key(pet)
    other, _ = await key(pet)
    client = ask(person="ana")
    cookie = (await client.post("/enter", data={"key": secret, "name": "ana"})).cookies[COOKIE]
    id, until, name, signature = cookie.split(".")
    ben = urlsafe_b64encode(b"ben").decode()
    forged = [
        f"{other.id}.{until}.{name}.{signature}",
        f"{id}.{int(until) + 1}.{name}.{signature}",
        f"{id}.{until}.{ben}.{signature}",
        f"{id}.{until}.{name}.",
        f"{id}.{until}.{name}",
        *("...", "a.nan.b.c", ""),
    ]
    for one in forged:
        found = await ask(person="ana").get("/memories", headers={"cookie": f"{COOKIE}={one}"})
        assert found.status_code == 401
    assert made.id == id


async def test_after_a_wrong_key_the_right_one_still_leads_to_the_page_that_was_asked_for(pet, ask):
    await key(pet)
    answer = await ask().post("/enter", data={"key": "hachi-wrong", "to": "/traces?user=ana"})
    assert answer.status_code == 401
    assert 'name="to" value="/traces?user=ana"' in answer.text


async def test_a_revoked_key_ends_the_visit(pet, ask):
    made, secret = await key(pet)
    client = ask()
    await client.post("/enter", data={"key": secret})
    await pet.admin.keys.revoke(made.id, pet.clock())
    assert (await client.get("/traces")).status_code == 401


async def test_a_visit_ends_by_itself(pet, ask, clock):
    _, secret = await key(pet)
    client = ask()
    cookie = (await client.post("/enter", data={"key": secret})).cookies[COOKIE]
    clock.advance(seconds=VISIT.total_seconds() + 1)
    assert (await client.get("/traces", headers={"cookie": f"{COOKIE}={cookie}"})).status_code == 401


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"]
)
async def test_logging_in_leads_nowhere_else(to, pet, ask):
    _, secret = await key(pet)
    answer = await ask().post("/enter", data={"key": secret, "to": to})
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize(
    "sent",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/enter", "/leave", "/traces/last/test"])
async def test_what_another_site_sends_is_not_done(path, sent, ask):
    answer = await ask().post(path, headers=sent)
    assert answer.status_code == 403
    assert "another site" in answer.text


async def test_before_a_key_is_known_little_of_a_form_is_read(pet, ask):
    """Of many long ones none is kept in memory."""
    _, secret = await key(pet)
    client = ask(person="ana")
    for length, given_back in ((1_000, True), (900_000, False)):
        answer = await client.post("/memories", data={"content": "kayak" * (length // 5)})
        assert answer.status_code == 401
        assert 'name="key"' in answer.text
        assert ("kayak" * (length // 5) in answer.text) is given_back
    long = {"key": secret, "name": "ana", "to": "/" + "x" * 4_096}
    assert (await client.post("/enter", data=long)).status_code == 401
    assert (await client.post("/enter", data=long | {"to": "/"})).status_code == 303
    assert (await client.post("/memories", data={"content": "kayak" * 900})).status_code != 401


async def test_nothing_is_done_by_looking(ask):
    for path in ("/enter", "/leave", "/traces/last/test"):
        assert (await ask().get(path)).status_code == 405
