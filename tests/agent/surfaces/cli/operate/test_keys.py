import re
from typing import Any


def test_keys_are_made_listed_and_revoked(hachi: Any) -> None:
    assert hachi("keys", "list").complaint.startswith("hachi: there is no key yet")
    ran = hachi("keys", "create", "laptop", "--user", "ana")
    [secret] = ran.out.splitlines()
    assert secret.startswith("hachi-")
    assert "not shown again" in ran.complaint
    assert secret not in hachi("keys", "list").out
    [listed] = hachi("keys", "list", "--json").json
    assert re.search(rf"{listed['id'][:8]}\s+laptop\s+user\s+ana", hachi("keys", "list").out)
    revoked = hachi("keys", "revoke", listed["id"][:8])
    assert revoked.out == f"revoked {listed['id'][:8]}: laptop\n"
    assert hachi("keys", "list", "--json").json[0]["revoked_at"]
    again = hachi("keys", "revoke", listed["id"][:8])
    assert (again.code, "hachi keys list" in again.complaint) == (1, True)


def test_the_json_of_a_new_key(shared: Any) -> None:
    made = shared("keys", "create", "web", "--service", "--admin", "--json").json
    assert made.pop("key").startswith("hachi-")
    assert made.pop("id")
    assert made.pop("created_at")
    assert made == {
        "name": "web",
        "kind": "service",
        "user": None,
        "admin": True,
        "last_used_at": None,
        "revoked_at": None,
    }
