"""Documents over HTTP: a person's own, a place's, everybody's. Whose key may do what proves
`test_who_acts.py`."""

from typing import Any

TRAVEL = {"name": "travel.md", "text": "# Travel\n\nThe office pays for train tickets."}
MINE, ALL, ACME = "/api/users/ana/knowledge", "/api/knowledge", "/api/knowledge?place=acme"


async def test_a_document_is_added_listed_found_replaced_and_removed(serve: Any) -> None:
    site = await serve()
    ana = await site.headers("ana")
    made = await site.client.post(MINE, json=TRAVEL, headers=ana)
    assert made.status_code == 201
    added = made.json()
    assert added.pop("action") == "added"
    assert (added["path"], added["title"], added["owner"]) == ("travel.md", "Travel", "user:ana")
    assert (await site.client.get(MINE, headers=ana)).json() == [added]
    found = await site.client.get(f"{MINE}/search", params={"query": "who pays for trains?"}, headers=ana)
    assert [chunk["source"] for chunk in found.json()] == ["travel.md"]
    same = await site.client.post(MINE, json=TRAVEL, headers=ana)
    assert (same.status_code, same.json()["action"]) == (200, "unchanged")
    other = await site.client.post(MINE, json=TRAVEL | {"text": "Ferries are yours."}, headers=ana)
    assert (other.status_code, other.json()["action"], other.json()["id"]) == (200, "replaced", added["id"])
    assert (await site.client.delete(f"{MINE}/{added['id']}", headers=ana)).status_code == 204
    assert (await site.client.get(MINE, headers=ana)).json() == []


async def test_a_file_is_the_body_whatever_its_media_type(site: Any) -> None:
    gus, mine = await site.headers("gus"), "/api/users/gus/knowledge"
    page = b"<title>Boats</title><body><script>x()</script><p>Oars are of ash.</p>"
    for kind in ("application/json", None):
        headers = gus | ({"content-type": kind} if kind else {})
        made = await site.client.put(f"{mine}/files/boats.html", content=page, headers=headers)
        assert made.status_code in (200, 201), made.text
        assert (made.json()["title"], made.json()["path"]) == ("Boats", "boats.html")
    named = await site.client.put(f"{mine}/files/%C3%9Cber%20uns.txt", content=b"We row.", headers=gus)
    assert named.json()["path"] == "Über uns.txt"


async def test_an_unreadable_document_is_400_and_says_why(site: Any) -> None:
    eve, mine = await site.headers("eve"), "/api/users/eve/knowledge"
    for name, content, status, why in (
        ("old.pdf", b"%PDF-1.4 cut off", 400, "broken PDF"),
        ("..%5Ca.md", b"hello", 400, "such as notes.md"),
        ("a.txt", b"x" * 400_001, 413, "too_large"),
        ("..%2F..%2Fetc%2Fpasswd", b"hello", 404, "nothing at this address"),
    ):
        answer = await site.client.put(f"{mine}/files/{name}", content=content, headers=eve)
        assert (answer.status_code, why in answer.text) == (status, True), name
    for body in ({"name": "a.md"}, {"name": "", "text": "x"}, {"name": "a/b", "text": "x"}, {"text": " "}):
        assert (await site.client.post(mine, json=body, headers=eve)).status_code == 400
    assert (await site.client.get(mine, headers=eve)).json() == []


async def test_everybodys_documents_are_changed_by_admins_and_read_by_all(serve: Any) -> None:
    site = await serve()
    admin, ana = await site.headers(admin=True), await site.headers("ana")
    claims = await site.headers() | {"x-openwebui-user-id": "ana", "x-openwebui-user-role": "admin"}
    refused = await site.client.post(ALL, json=TRAVEL, headers=claims)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    made = await site.client.post(ALL, json=TRAVEL, headers=admin)
    assert (made.status_code, made.json()["owner"]) == (201, "global")
    for path in (ALL, MINE):
        assert [one["path"] for one in (await site.client.get(path, headers=ana)).json()] == ["travel.md"]
    found = await site.client.get(f"{ALL}/search", params={"query": "train tickets"}, headers=ana)
    assert [chunk["title"] for chunk in found.json()] == ["Travel"]
    id = made.json()["id"]
    assert (await site.client.delete(f"{MINE}/{id}", headers=ana)).status_code == 404
    assert (await site.client.delete(f"{ALL}/{id}", headers=admin)).status_code == 204
    assert (await site.client.get(ALL, headers=ana)).json() == []


async def test_a_places_documents_are_read_inside_it_and_changed_there_alone(site: Any) -> None:
    service = await site.headers()
    made = await site.client.post(ACME, json=TRAVEL, headers=service)
    assert (made.status_code, made.json()["owner"]) == (201, "place:acme")
    id = made.json()["id"]
    refused = await site.client.get(ACME, headers=await site.headers("ana", admin=True))
    assert refused.status_code == 403, "an admin who is a person"
    inside = await site.client.get("/api/knowledge?place=acme/general", headers=service)
    assert [one["id"] for one in inside.json()] == [id]
    gone = await site.client.delete(f"/api/knowledge/{id}?place=acme/general", headers=service)
    assert gone.status_code == 404  # it is acme's
    for elsewhere in (ALL, "/api/knowledge?place=acmes", MINE):
        assert (await site.client.get(elsewhere, headers=service)).json() == []
    assert (await site.client.delete(f"/api/knowledge/{id}?place=acme", headers=service)).status_code == 204
    for place in ("", "dm", "a%00b"):
        answer = await site.client.post(f"/api/knowledge?place={place}", json=TRAVEL, headers=service)
        assert answer.status_code == 400
