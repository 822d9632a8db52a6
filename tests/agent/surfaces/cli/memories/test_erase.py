"""`hachi memories erase`."""

import json
import sqlite3
from contextlib import closing

import pytest


@pytest.fixture
def filled(hachi):
    hachi("chat", "--user", "ana", stdin=b"I broke my shoulder\n")
    hachi("memories", "add", "Ana skis", "--user", "ana", "--place", "acme/general")
    hachi("memories", "add", "Mickael rows")


def test_everything_of_a_person_goes_and_a_receipt_says_so(hachi, filled, home):
    ran = hachi("memories", "erase", "--user", "ana")
    assert ran.code == 0
    assert "verified: nothing of theirs is left" in ran.out
    assert json.loads(hachi("memories", "export", "--user", "ana").out)["memories"] == []
    assert [memory["content"] for memory in hachi("memories", "list", "--json").json] == ["Mickael rows"]
    assert "ana" not in (home / "hachi.log").read_text()


def test_the_receipt_as_json(hachi, filled):
    receipt = hachi("memories", "erase", "--user", "ana", "--yes", "--json").json
    assert (receipt["user"], receipt["verified"], receipt["left"]) == ("ana", True, [])
    assert receipt["removed"]["messages"] == 2
    assert receipt["at"].endswith("+00:00")


def test_at_a_terminal_it_shows_what_goes_and_asks(hachi, filled):
    ran = hachi("memories", "erase", "--user", "ana", stdin=b"n\n", typed=True)
    assert ran.code == 1
    assert "messages" in ran.out
    assert "Erase all of this of ana for good?" in ran.out
    assert "nothing was erased" in ran.err
    assert hachi("memories", "list", "--user", "ana", "--json").json != []
    assert hachi("memories", "erase", "--user", "ana", stdin=b"y\n", typed=True).code == 0
    assert hachi("memories", "list", "--user", "ana", "--json").json == []


def test_whom_to_erase_is_always_said(hachi, home):
    ran = hachi("memories", "erase", "--yes")
    assert ran.code == 2
    assert "--user" in ran.err


def test_an_erasure_that_is_not_verified_exits_1(hachi, filled, home):
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        database.execute(
            "CREATE TRIGGER back AFTER DELETE ON users "
            "BEGIN INSERT INTO users VALUES ('ana', OLD.created_at); END"
        )
    ran = hachi("memories", "erase", "--user", "ana")
    assert ran.code == 1
    assert "STILL THERE: 1 in users" in ran.out
    assert "not verified" in ran.out


def test_others_words_that_stay_are_told(hachi, filled):
    hachi("chat", "--user", "lea", stdin=b"I broke my shoulder\n")
    ran = hachi("memories", "erase", "--user", "ana")
    assert ran.code == 0
    assert "in messages: others said or were told the same words" in ran.out
