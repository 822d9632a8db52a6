import json
import sqlite3
from contextlib import closing

import pytest


@pytest.fixture
def filled(hachi):
    hachi("chat", "--user", "ana", stdin=b"I broke my shoulder\n")
    hachi("memories", "add", "Ana skis", "--user", "ana", "--place", "acme/general")
    hachi("memories", "add", "Mickael rows")
    return hachi


def test_at_a_terminal_it_shows_what_goes_asks_and_prints_a_receipt(filled, home):
    ran = filled("memories", "erase", "--user", "ana", stdin=b"n\n", typed=True)
    assert ran.code == 1
    assert "messages" in ran.out
    assert "Erase all of this of ana for good?" in ran.out
    assert "nothing was erased" in ran.err
    assert filled("memories", "list", "--user", "ana", "--json").json != []
    ran = filled("memories", "erase", "--user", "ana", stdin=b"y\n", typed=True)
    assert ran.code == 0
    assert "verified: nothing of theirs is left" in ran.out
    assert json.loads(filled("memories", "export", "--user", "ana").out)["memories"] == []
    assert [memory["content"] for memory in filled("memories", "list", "--json").json] == ["Mickael rows"]
    assert "ana" not in (home / "hachi.log").read_text()


def test_without_a_terminal_it_needs_yes(filled):
    ran = filled("memories", "erase", "--user", "ana")
    assert ran.code == 2
    assert ran.err.startswith("hachi: ")
    assert ran.err.count("\n") == 1
    assert "--yes" in ran.err
    assert filled("memories", "list", "--user", "ana", "--json").json != []


def test_the_receipt_as_json_and_the_words_that_others_said_too(filled):
    filled("chat", "--user", "lea", stdin=b"I broke my shoulder\n")
    receipt = filled("memories", "erase", "--user", "ana", "--yes", "--json").json
    assert (receipt["user"], receipt["verified"]) == ("ana", True)
    assert receipt["removed"]["messages"] == 2
    assert receipt["at"].endswith("+00:00")
    assert "messages" in [left["kind"] for left in receipt["left"]]
    assert all(left["expected"] for left in receipt["left"])


def test_an_erasure_that_is_not_verified_exits_with_1(filled, home):
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        database.execute(
            "CREATE TRIGGER back AFTER DELETE ON users "
            "BEGIN INSERT INTO users VALUES ('ana', OLD.created_at); END"
        )
    ran = filled("memories", "erase", "--user", "ana", "--yes")
    assert ran.code == 1
    assert "STILL THERE: 1 in users" in ran.out
    assert "not verified" in ran.out
