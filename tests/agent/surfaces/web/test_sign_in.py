"""Who may look at traces."""

import httpx
import pytest
from itsdangerous import URLSafeSerializer

from agent.surfaces.links import NOTHING, VALID, forget_page, link_to, read_link, unverified
from agent.surfaces.web.application import app
from agent.surfaces.web.sign_in import COOKIE, LINK_VISIT
from memory.sql.keys import digest


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
    assert "SameSite=lax" in cookie  # a link in another page may lead here; forms of others are refused
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
    said = unverified(cookie)
    payload, signature = cookie.split(".")
    ben, longer, others = {"who": "ben"}, {"until": said["until"] + 1}, {"key": other.id}

    def signed(claims, secret, purpose=COOKIE):
        return URLSafeSerializer(secret, purpose).dumps(claims)

    forged = [signed(said | change, secret) for change in (ben, longer, others)]
    forged += [
        f"{signed(said | ben, secret).split('.')[0]}.{signature}",
        signed(said | ben, digest(secret), "link"),
        signed({"who": "ben", "until": said["until"]}, secret),
        *(f"{payload}.", payload, "...", "a.nan.b.c", ""),
    ]
    for one in forged:
        found = await ask(person="ana").get("/memories", headers={"cookie": f"{COOKIE}={one}"})
        assert found.status_code == 401
    assert said["key"] == made.id
    assert (await client.get("/memories")).status_code == 200


async def test_logging_in_leads_nowhere_else(pet, ask):
    made, secret = await key(pet)
    client = ask()
    for to in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        answer = await client.post("/enter", data={"key": secret, "to": to})
        assert answer.headers["location"] == "/"
    assert (await client.get("/traces")).status_code == 200
    await pet.admin.keys.revoke(made.id, pet.clock())
    assert (await client.get("/traces")).status_code == 401


async def test_what_another_site_sends_is_not_done_nor_is_anything_by_looking(ask):
    for path, status in (("/enter", 401), ("/leave", 405), ("/traces/last/test", 405)):
        answer = await ask().post(path, headers={"origin": "http://evil.example"})
        assert (answer.status_code, "another site" in answer.text) == (403, True)
        assert (await ask().get(path)).status_code == status


async def test_before_a_key_is_known_little_of_a_form_is_read(pet, ask):
    _, secret = await key(pet)
    client = ask(person="ana")
    answer = await client.post("/memories", data={"content": "kayak" * 200})
    assert (answer.status_code, 'name="key"' in answer.text, "kayak" * 200 in answer.text) == (
        401,
        True,
        True,
    )
    assert (await client.post("/memories", data={"content": "kayak" * 900})).status_code == 413
    entered = await client.post("/enter", data={"key": secret, "name": "ana", "to": "/"})
    assert entered.status_code == 303
    assert (await client.post("/memories", data={"content": "kayak" * 900})).status_code not in (401, 413)


def token_in(link):
    return link.partition("link=")[2]


async def test_a_link_opens_its_persons_pages_for_an_hour_and_no_others(pet, ask, clock):
    await pet.remember("Zoé keeps bees", user="zoé")
    link = await link_to(pet, "zoé", "http://localhost:8020/")
    assert link.startswith("http://localhost:8020/enter?link=")
    client = ask(person="ana")
    opened = await client.post("/enter", data={"link": token_in(link)})
    assert (opened.status_code, opened.headers["location"]) == (303, "/memories")
    assert "Zoé keeps bees" in (await client.get("/memories")).text
    assert (await client.get("/traces")).status_code == 200
    clock.advance(seconds=VALID.total_seconds() + 1)
    assert (await client.get("/memories")).status_code == 200  # what was forgotten may be brought back
    late = await link_to(pet, "zoé", "http://localhost:8020/")
    clock.advance(seconds=VALID.total_seconds() + 1)
    assert (await ask(person="ana").get(late)).status_code == 401
    assert (await ask(person="ana").post("/enter", data={"link": token_in(late)})).status_code == 401
    assert await read_link(pet, token_in(late)) is None
    clock.advance(seconds=LINK_VISIT.total_seconds())
    client.cookies.jar.clear_expired_cookies()
    cookie = {"cookie": f"{COOKIE}={opened.cookies[COOKIE]}"}
    assert "Zoé keeps bees" not in (await ask(person="ana").get("/memories", headers=cookie)).text


async def test_a_link_is_used_by_pressing_once_and_not_by_looking(pet, ask, open_pet):
    link = await link_to(pet, "zoé", "http://localhost:8020")
    for _ in range(2):  # as what makes a preview of it does
        seen = await ask(person="ana").get(link)
        assert (seen.status_code, "set-cookie" in seen.headers) == (200, False)
        assert (f'name="link" value="{token_in(link)}"' in seen.text, "The pages of zoé" in seen.text) == (
            True,
            True,
        )
    client, form = ask(person="ana"), {"link": token_in(link)}
    for _ in range(2):  # pressed twice
        assert (await client.post("/enter", data=form)).status_code == 303
    transport = httpx.ASGITransport(app=app(await open_pet(), person="ana"))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as elsewhere:
        refused = await elsewhere.post("/enter", data=form)
    assert (refused.status_code, "been used" in refused.text) == (401, True)
    assert "set-cookie" not in refused.headers


async def test_a_cookie_is_no_link_and_a_link_no_cookie(pet, ask):
    link = token_in(await link_to(pet, "zoé", "http://localhost:8020"))
    cookie = (await ask(person="ana").post("/enter", data={"link": link})).cookies[COOKIE]
    for token in (cookie, f"hachi-link-{cookie}"):
        assert (await ask(person="ana").post("/enter", data={"link": token})).status_code == 401
        assert (await ask(person="ana").get("/enter", params={"link": token})).status_code == 401
    other = token_in(await link_to(pet, "zoé", "http://localhost:8020")).removeprefix("hachi-link-")
    await key(pet)
    for token, status in ((cookie, 200), (other, 401)):
        page = await ask(person="ana").get("/memories", headers={"cookie": f"{COOKIE}={token}"})
        assert page.status_code == status


async def test_a_link_takes_no_visit_away_unasked(pet, ask):
    """As one that somebody else had made for themselves, and leads a person to."""
    _, secret = await pet.admin.keys.create("ben", "user", "ben", False, now=pet.clock())
    await pet.remember("Ben skis", user="ben")
    client = ask(person="ana")
    await client.post("/enter", data={"key": secret})
    await pet.respond("Hello", user="mallory", author="ben")
    link = await link_to(pet, "mallory", "http://localhost:8020")
    shown = await client.get(link, headers={"sec-fetch-site": "cross-site"})
    assert "You see the pages of ben here. This link opens the pages of ben (mallory) instead" in shown.text
    forced = {"sec-fetch-site": "cross-site", "origin": "http://evil.example"}
    for form in ({"link": token_in(link)}, {"key": secret}):
        assert (await client.post("/enter", data=form, headers=forced)).status_code == 403
    assert "Ben skis" in (await client.get("/memories")).text
    assert (await client.post("/enter", data={"link": token_in(link)})).status_code == 303
    assert "Ben skis" not in (await client.get("/memories")).text


@pytest.mark.parametrize(
    ("base", "headers", "console", "secure"),
    [
        ("http://localhost", {}, None, False),
        ("https://hachi.example", {}, None, True),
        ("http://hachi.example", {"x-forwarded-proto": "https"}, None, True),
        ("http://hachi.example", {}, "https://hachi.example", True),
        ("http://hachi.example", {"x-forwarded-proto": "http"}, "http://hachi.example", False),
    ],
)
async def test_behind_tls_the_cookie_goes_over_tls_alone(open_pet, base, headers, console, secure):
    pet = await open_pet(console_url=console)
    _, secret = await key(pet)
    link = token_in(await link_to(pet, "zoé", base))
    transport = httpx.ASGITransport(app=app(pet, person="ana"))
    async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers) as client:
        for form in ({"link": link}, {"key": secret, "name": "ana"}):
            answer = await client.post("/enter", data=form)
            assert (answer.status_code, "Secure" in answer.headers["set-cookie"]) == (303, secure)
            client.cookies.clear()


async def test_a_link_ends_with_its_person_and_opens_no_page_of_traces(pet, ask):
    link = await link_to(pet, "zoé", "http://localhost:8020")
    assert (await ask().get(link)).status_code == 401  # the server of traces alone
    cookie = (await ask(person="ana").post("/enter", data={"link": token_in(link)})).cookies[COOKIE]
    await key(pet)
    assert (await ask().get("/traces", headers={"cookie": f"{COOKIE}={cookie}"})).status_code == 401
    link = await link_to(pet, "zoé", "http://localhost:8020")
    await pet.people.erase(user="zoé")
    assert (await ask(person="ana").get(link)).status_code == 401
    assert [person.user for person in await pet.admin.statistics.people()] == []  # asking makes nobody


async def test_what_a_link_names_is_asked_for_once_more_and_then_forgotten(pet, ask):
    told = await pet.remember("Zoé keeps bees", user="zoé")
    kept = await pet.remember("Zoé rows", user="zoé")
    found = await pet.memories.find_to_forget("keeps bees", user="zoé")
    text = await forget_page(pet, "zoé", "http://localhost:8020", found)
    assert "- Zoé keeps bees" in text
    client = ask(person="ana")
    used = await client.post("/enter", data={"link": token_in(text).partition(")")[0]})
    asks = await client.get(used.headers["location"])
    assert f'name="memory" value="{told.id}" checked' in asks.text
    assert len(await pet.memories.list(user="zoé")) == 2
    done = await client.post("/forget", data={"asked": "", "memory": told.id})
    assert "Forgotten" in done.text
    assert [memory.id for memory in await pet.memories.list(user="zoé")] == [kept.id]
    assert await forget_page(pet, "zoé", "http://localhost:8020", ()) == NOTHING
