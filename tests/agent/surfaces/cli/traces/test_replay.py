"""`hachi traces replay` and `to-test`."""

import json

import pytest


@pytest.fixture
def talked(hachi):
    """Two turns with the offline stand-in."""
    hachi("chat", "-m", "I broke my shoulder on January 10")
    hachi("chat", "-m", "what happened to me?")
    return hachi


def test_what_has_not_changed_is_the_same(talked):
    ran = talked("traces", "replay", "last")

    assert ran.code == 0
    assert ran.out.startswith("same ")
    assert talked("traces", "replay", "--newest", "5").out.splitlines()[-1] == "2 replayed: 2 same, 0 changed"


def test_a_corrected_memory_is_named_and_the_exit_code_says_so(talked):
    [memory] = talked("memories", "list", "--json").json
    talked("memories", "update", memory["id"], "I broke my wrist on January 10")

    ran = talked("traces", "replay", "last")

    assert ran.code == 3
    assert "CHANGED" in ran.out
    assert "first difference: search_memories, result differs" in ran.out
    assert '-   "content": "I broke my shoulder on January 10"' in ran.out
    assert '+   "content": "I broke my wrist on January 10"' in ran.out


def test_for_programs_it_is_json(talked):
    [same] = talked("traces", "replay", "last", "--json").json
    assert (same["same"], same["differences"], same["tools"]) == (True, [], "live")

    [stubbed] = talked("traces", "replay", "last", "--tools", "stub", "--json").json
    assert stubbed["differences"][0]["where"] == "search_memories, result"


def test_a_fork_asks_the_model_of_the_settings(talked):
    ran = talked("traces", "replay", "last", "--from", "2", "--model", "live")

    assert ran.code == 0, "the stand-in says the same again"
    assert ran.out.startswith("same ")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "name the turns by their ids, or --newest N"),
        (["last", "--newest", "2"], "name the turns by their ids, or --newest N"),
        (["last", "--from", "2"], "--from N and --model live go together"),
        (["last", "--model", "live"], "--from N and --model live go together"),
    ],
)
def test_options_that_do_not_go_together_are_usage(hachi, options, complaint):
    ran = hachi("traces", "replay", *options)

    assert ran.code == 2
    assert complaint in ran.complaint


def test_where_there_is_no_trace_it_says_so(hachi):
    for command in ("replay", "to-test"):
        ran = hachi("traces", command, "last")
        assert (ran.code, ran.complaint) == (1, "hachi: there is no trace yet")


def test_a_test_goes_where_it_is_told_and_writes_over_nothing(talked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    ran = talked("traces", "to-test", "last", "--into", "checks")

    names = sorted(path.name for path in (tmp_path / "checks").iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["py", "json"]
    assert [line.rpartition("/")[2] for line in ran.out.splitlines()] == names
    assert json.loads((tmp_path / "checks" / names[1]).read_text())["version"] == 1
    again = talked("traces", "to-test", "last", "--into", "checks")
    assert again.code == 1
    assert "--force writes over it" in again.complaint
    assert talked("traces", "to-test", "last", "--into", "checks", "--force").code == 0


def test_a_test_goes_into_tests_where_there_is_such_a_folder(talked, tmp_path, monkeypatch):
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path)

    talked("traces", "to-test")

    assert len(list((tmp_path / "tests").glob("test_trace_*.py"))) == 1
