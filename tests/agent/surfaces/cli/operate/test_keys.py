"""`hachi keys`."""

import re
from collections.abc import Callable
from typing import Any

import pytest

Hachi = Callable[..., Any]


def test_a_key_is_printed_once_alone_on_stdout(hachi: Hachi) -> None:
    ran = hachi("keys", "create", "laptop", "--user", "ana")
    assert ran.code == 0
    [secret] = ran.out.splitlines()
    assert secret.startswith("hachi-")
    assert "not shown again" in ran.complaint
    assert secret not in hachi("keys", "list").out


def test_json_tells_the_key_with_what_it_is(hachi: Hachi) -> None:
    made = hachi("keys", "create", "web", "--service", "--admin", "--json").json
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


def test_keys_are_listed_without_their_secrets(hachi: Hachi) -> None:
    assert hachi("keys", "list").complaint.startswith("hachi: there is no key yet")
    made = hachi("keys", "create", "laptop", "-u", "ana", "--json").json
    [listed] = hachi("keys", "list", "--json").json
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert re.search(rf"{made['id'][:8]}\s+laptop\s+user\s+ana", hachi("keys", "list").out)


def test_a_revoked_key_is_shown_as_such(hachi: Hachi) -> None:
    made = hachi("keys", "create", "laptop", "-u", "ana", "--json").json
    ran = hachi("keys", "revoke", made["id"][:8])
    assert ran.out == f"revoked {made['id'][:8]}: laptop\n"
    assert hachi("keys", "list", "--json").json[0]["revoked_at"]
    again = hachi("keys", "revoke", made["id"][:8])
    assert (again.code, "hachi keys list" in again.complaint) == (1, True)


@pytest.mark.parametrize("options", [(), ("--service", "--user", "ana")])
def test_a_key_is_somebodys_or_a_services(hachi: Hachi, options: tuple[str, ...]) -> None:
    ran = hachi("keys", "create", "laptop", *options)
    assert ran.code == 2
    assert "--service" in ran.complaint
