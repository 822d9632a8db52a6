import pytest

FIELDS = {
    *("profile", "preferences", "long_term_facts", "open_tasks"),
    *("conversation_themes", "memory_summary", "last_updated"),
}


def test_what_is_set_is_shown(hachi):
    assert hachi("context", "set", "name", "Mickael").out == "profile.name: Mickael\n"
    assert hachi("context", "set", "Prefers bullets", "no").out == "preferences.prefers_bullets: no\n"
    hachi("context", "set", "timezone", "europe/paris")
    hachi("context", "set", "theme", "snow")
    hachi("context", "set", "memory_summary", "Loves the mountains.")
    hachi("tasks", "update", "new", "--description", "buy skis")
    hachi("memories", "add", "Mickael skis")
    shown = hachi("context", "show").out
    for text in ("mickael, 20", "profile", "name: Mickael", "timezone: Europe/Paris", "prefers bullets: no"):
        assert text in shown
    for text in ("snow", "Loves the mountains.", "buy skis (open)", "Mickael skis"):
        assert text in shown
    assert "None" not in shown
    assert "level" not in shown


def test_the_json_is_the_whole_document(hachi):
    hachi("tasks", "update", "new", "--description", "buy skis")
    hachi("memories", "add", "Mickael skis")
    known = hachi("context", "set", "language", "עברית", "--json").json
    assert set(known) == FIELDS
    assert known == hachi("context", "show", "--json").json
    assert known["preferences"]["language"] == "עברית"
    assert [task["description"] for task in known["open_tasks"]] == ["buy skis"]
    assert [fact["content"] for fact in known["long_term_facts"]] == ["Mickael skis"]


def test_a_list_grows_and_is_forgotten_as_a_whole(hachi):
    hachi("context", "set", "goal", "ski")
    assert hachi("context", "set", "goals", "swim").out == "profile.goals: swim; ski\n"
    assert hachi("context", "set", "goals", "").out == "profile.goals is forgotten\n"
    assert hachi("context", "show", "--json").json["profile"]["goals"] == []


def test_an_empty_value_forgets(hachi):
    hachi("context", "set", "name", "Mickael")
    assert hachi("context", "set", "name", "").out == "profile.name is forgotten\n"
    assert hachi("context", "show", "--json").json["profile"]["name"] is None


def test_a_field_that_there_is_not_names_those_there_are(hachi):
    ran = hachi("context", "set", "colour", "red")
    assert ran.code == 1
    assert ran.out == ""
    assert "'colour' is no field" in ran.complaint
    assert "native_language" in ran.complaint


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("tone", "sarcastic", "casual or formal"),
        ("timezone", "Mars", "such as Europe/Paris"),
        ("mode", "party", "companion, study"),
    ],
)
def test_a_value_that_cannot_be_says_what_can(hachi, field, value, allowed):
    ran = hachi("context", "set", field, value)
    assert ran.code == 1
    assert value in ran.complaint
    assert allowed in ran.complaint


def test_a_mode_is_set_and_taken_back(hachi):
    assert hachi("context", "set", "mode", "study").out == "mode: study\n"
    assert hachi("context", "set", "Mode", "").out == "mode is forgotten\n"
    assert set(hachi("context", "set", "mode", "work", "--json").json) == FIELDS


def test_of_somebody_who_told_nothing_it_says_how_to_begin(hachi):
    ran = hachi("context", "show", "--user", "lea")
    assert ran.out == ""
    assert "nothing is known of 'lea' here" in ran.complaint
    assert hachi("context", "show", "--user", "lea", "--json").json["last_updated"] is None


def test_what_is_told_in_private_is_not_known_in_a_place(hachi):
    hachi("context", "set", "location", "Lyon")
    hachi("context", "set", "role", "engineer", "--place", "acme")
    there = hachi("context", "show", "--place", "acme/general", "--json").json["profile"]
    assert (there["location"], there["role"]) == (None, "engineer")
    here = hachi("context", "show", "--json").json["profile"]
    assert (here["location"], here["role"]) == ("Lyon", "engineer")


def test_what_is_known_cannot_drive_the_terminal(hachi):
    assert hachi("context", "set", "name", "Mick\x1b[31mael").out == "profile.name: Mick[31mael\n"
    shown = hachi("context", "show").out
    assert "Mick[31mael" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("args", [["set"], ["set", "name"], ["set", "name", "a", "b"], ["sing"]])
def test_a_command_that_is_mistyped_is_wrong_usage(hachi, args):
    assert hachi("context", *args).code == 2
