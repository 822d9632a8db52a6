"""Who may look at traces."""

import httpx
import jwt

from agent.surfaces.links import NOTHING, VALID, forget_page, link_to, read_link
from agent.surfaces.web.application import app
from agent.surfaces.web.sign_in import COOKIE, LINK_VISIT


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
    said = jwt.decode(cookie, options={"verify_signature": False})
    body, signature = cookie.rsplit(".", 1)
    ben, longer, others = {"sub": "ben"}, {"exp": said["exp"] + 1}, {"key": other.id}
    forged = [jwt.encode(said | change, secret, "HS256") for change in (ben, longer, others)]
    forged += [
        f"{jwt.encode(said | ben, secret, 'HS256').rsplit('.', 1)[0]}.{signature}",
        jwt.encode(said, None, "none"),
        jwt.encode({"sub": "ben", "page": "/memories", "exp": said["exp"]}, secret, "HS256"),
        *(f"{body}.", body, "...", "a.nan.b.c", ""),
    ]
    for one in forged:
        found = await ask(person="ana").get("/memories", headers={"cookie": f"{COOKIE}={one}"})
        assert found.status_code == 401
    assert said["key"] == made.id


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


async def test_a_link_opens_its_persons_pages_for_ten_minutes_and_no_others(pet, ask, clock):
    await pet.remember("Zoé keeps bees", user="zoé")
    link = await link_to(pet, "zoé", "http://localhost:8020/")
    assert link.startswith("http://localhost:8020/enter?link=")
    token = link.partition("=")[2]
    client = ask(person="ana")
    opened = await client.get(link)
    assert (opened.status_code, opened.headers["location"]) == (303, "/memories")
    page = (await client.get("/memories")).text
    assert "Zoé keeps bees" in page
    assert (await client.get("/traces")).status_code == 200
    clock.advance(seconds=VALID.total_seconds() + 1)
    assert (await client.get("/memories")).status_code == 200  # what was forgotten may be brought back
    assert (await ask(person="ana").get(link)).status_code == 401
    assert await read_link(pet, token) is None
    clock.advance(seconds=LINK_VISIT.total_seconds())
    client.cookies.jar.clear_expired_cookies()
    cookie = {"cookie": f"{COOKIE}={opened.cookies[COOKIE]}"}
    assert "Zoé keeps bees" not in (await ask(person="ana").get("/memories", headers=cookie)).text


async def test_a_link_ends_with_its_person_and_opens_no_page_of_traces(pet, ask):
    link = await link_to(pet, "zoé", "http://localhost:8020")
    assert (await ask().get(link)).status_code == 401  # the server of traces alone
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
    asks = await client.get((await client.get(text.partition("](")[2].partition(")")[0])).headers["location"])
    assert f'name="memory" value="{told.id}" checked' in asks.text
    assert len(await pet.memories.list(user="zoé")) == 2
    done = await client.post("/forget", data={"asked": "", "memory": told.id})
    assert "Forgotten" in done.text
    assert [memory.id for memory in await pet.memories.list(user="zoé")] == [kept.id]
    assert await forget_page(pet, "zoé", "http://localhost:8020", ()) == NOTHING
