import pytest

FIELDS = {
    *("profile", "preferences", "long_term_facts", "open_tasks"),
    *("conversation_themes", "memory_summary", "last_updated"),
}


def test_what_is_set_is_shown_and_forgotten(hachi):
    assert hachi("context", "set", "name", "Mick\x1b[31mael").out == "profile.name: Mick[31mael\n"
    assert hachi("context", "set", "Prefers bullets", "no").out == "preferences.prefers_bullets: no\n"
    hachi("context", "set", "timezone", "europe/paris")
    hachi("context", "set", "theme", "snow")
    hachi("context", "set", "memory_summary", "Loves the mountains.")
    hachi("tasks", "update", "new", "--description", "buy skis")
    hachi("memories", "add", "Mickael skis")
    shown = hachi("context", "show").out
    for text in (
        *("mickael, 20", "profile", "name: Mick[31mael", "timezone: Europe/Paris", "prefers bullets: no"),
        *("snow", "Loves the mountains.", "buy skis (open)", "Mickael skis"),
    ):
        assert text in shown
    for text in ("None", "level", "\x1b"):
        assert text not in shown
    known = hachi("context", "set", "language", "עברית", "--json").json
    assert set(known) == FIELDS
    assert known == hachi("context", "show", "--json").json
    assert known["preferences"]["language"] == "עברית"
    assert [task["description"] for task in known["open_tasks"]] == ["buy skis"]
    assert [fact["content"] for fact in known["long_term_facts"]] == ["Mickael skis"]
    hachi("context", "set", "goal", "ski")
    assert hachi("context", "set", "goals", "swim").out == "profile.goals: swim; ski\n"
    assert hachi("context", "set", "goals", "").out == "profile.goals is forgotten\n"
    assert hachi("context", "set", "mode", "study").out == "mode: study\n"
    assert hachi("context", "set", "Mode", "").out == "mode is forgotten\n"
    assert hachi("context", "show", "--place", "acme", "--json").json["profile"]["name"] is None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("colour", "red", "'colour' is no field"),
        ("tone", "sarcastic", "casual or formal"),
        ("timezone", "Mars", "such as Europe/Paris"),
        ("mode", "party", "companion, study"),
    ],
)
def test_a_wrong_field_or_value_is_told_with_what_is_possible(shared, field, value, message):
    ran = shared("context", "set", field, value)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.complaint


def test_where_nothing_is_known_it_says_how_to_begin(shared):
    ran = shared("context", "show", "--user", "lea")
    assert ran.out == ""
    assert "nothing is known of 'lea' here" in ran.complaint
    assert shared("context", "show", "--user", "lea", "--json").json["last_updated"] is None
