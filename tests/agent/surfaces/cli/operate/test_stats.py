import pytest


@pytest.fixture
def filled(hachi):
    hachi("memories", "add", "Mickael skis", "--subject", "sport", "--at", "2026-01-10")
    hachi(
        "memories",
        "add",
        "Mickael likes tea",
        "--subject",
        "tea",
        "--type",
        "preference",
        "--at",
        "2026-01-11",
    )
    hachi("memories", "add", "Mickael skis")
    hachi("memories", "add", "Lea swims", "--subject", "sport", "--user", "lea", "--at", "2026-01-11")


def test_a_models_looks_back_are_counted_by_what_became_of_them(hachi, home):
    hachi("memories", "add", "Mickael skis")
    with (home / "hachi.log").open("a") as log:
        for user, ok in (("mickael", "true"), ("mickael", "false"), ("lea", "false")):
            log.write(f'{{"event": "memory_extraction", "user_id": "{user}", "ok": {ok}}}\n')
    assert hachi("stats", "--json").json["look_backs"] == {"applied": 1, "failed": 2}
    assert hachi("stats", "--user", "mickael", "--json").json["look_backs"] == {"applied": 1, "failed": 1}
    assert "looked back" in hachi("stats").out


def test_all_that_is_remembered_is_counted(hachi, filled):
    assert hachi("stats", "--json").json == {
        "memories": 3,
        "types": {"fact": 2, "preference": 1},
        "subjects": {"sport": 2, "tea": 1},
        "days": {"2026-01-11": 2, "2026-01-10": 1},
        "decisions": {"add": 3, "merge": 0, "replace": 0, "ignore": 1},
        "look_backs": {"applied": 0, "failed": 0},
    }


def test_one_person_is_counted_alone(hachi, filled):
    counted = hachi("stats", "--user", "lea", "--json").json
    assert (counted["memories"], counted["subjects"]) == (1, {"sport": 1})
    assert counted["decisions"]["add"] == 1


def test_what_was_replaced_is_not_counted(hachi):
    id = hachi("memories", "add", "Mickael lives in Paris", "--json").json["id"]
    hachi("memories", "update", id, "Mickael lives in Lyon")
    assert hachi("stats", "--json").json["memories"] == 1


def test_the_table_shows_the_first_of_many(hachi):
    tags = [part for number in range(12) for part in ("--subject", f"tag{number}")]
    hachi("memories", "add", "Mickael skis", *tags)
    shown = hachi("stats").out
    assert "tag9" in shown
    assert "tag11" not in shown
    assert "… and 2 more" in shown


def test_lines_of_the_log_that_cannot_be_read_are_passed_over(hachi, home, filled):
    log = home / "hachi.log"
    log.rename(home / "hachi.log.1")
    log.write_text(
        '{"event": "memory_dec\n{"event": "other"}\n{"event": "memory_decision", "decisions": [{}]}\n'
    )
    assert hachi("stats", "--json").json["decisions"]["add"] == 3
