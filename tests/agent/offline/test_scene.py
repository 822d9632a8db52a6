import pytest

from agent.offline.scene import Scene, scene


def heard(text: str, speaking: str = "", where: str = "", earlier: tuple[str, ...] = ()) -> Scene:
    instructions = f"Speaking now: {speaking}\nWhere: {where}" if speaking else "You are Hachi."
    return scene(instructions, [*(("user", line) for line in earlier), ("user", text)])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("speaking", "name"),
    [
        ("mickael", "Mickael"),
        ("Mickaël B", "Mickaël B"),
        ("`Ana`", "Ana"),
        ("Ana (she/her)", "Ana"),
        ("you", None),
        ("u1", None),
        ("8f3a-22", None),
        ("", None),
    ],
)
def test_who_speaks_is_read_leniently(speaking: str, name: str | None) -> None:
    assert heard("Hi", speaking).asker.name == name


def test_a_name_that_is_stated_comes_before_the_given_one() -> None:
    now = heard("I ski", "mick", earlier=("my name is mickael", "call me Mike"))
    assert now.asker.name == "Mike"
    assert now.named
    assert heard("my name is Mickael. call me Mick", "m").asker.name == "Mickael"


def test_the_name_that_was_told_before_comes_before_the_given_one() -> None:
    known = "## About the person speaking\n> name: Mickael\n\n## This conversation\nSpeaking now: u1"
    now = scene(known, [("user", "I ski")])
    assert (now.asker.name, now.named) == ("Mickael", True)
    now = scene(known, [("user", "call me Mike"), ("user", "I ski")])
    assert now.asker.name == "Mike"


def test_a_message_that_shows_no_language_is_read_in_the_one_they_wish() -> None:
    known = (
        "## About the person speaking\nAnswer them in: français\n\n## This conversation\nSpeaking now: ana"
    )
    now = scene(known, [("user", "Lyon")])
    assert (now.asker.language, now.asker.speaks) == ("fr", "fr")
    now = scene(known, [("user", "where do I live")])
    assert (now.asker.language, now.asker.speaks) == ("en", "fr")


def test_the_name_before_a_message_is_taken_off_in_a_shared_place_only() -> None:
    shared = heard("Ana: I ski", "Ana", "acme/general")
    assert (shared.heard, shared.shared, shared.asker.name) == ("I ski", True, "Ana")
    private = heard("Ana: I ski", "Ana", "a private conversation")
    assert (private.heard, private.shared) == ("Ana: I ski", False)
    assert heard("todo: buy milk", "Ana", "acme").heard == "todo: buy milk"
    assert heard("(Ana) x: I ski", "(Ana) x", "acme").heard == "I ski"


def test_where_everybody_is_named_the_display_name_is_the_speakers() -> None:
    now = heard("Ana B: I ski", "ana", "acme", earlier=("Mike: my name is Mike", "Ana B: I swim"))
    assert (now.heard, now.asker.name, now.before) == ("I ski", "Ana B", ("Ana B swims",))
    assert not heard("Ana: I ski", "u1", "acme").shared


def test_the_language_is_that_of_the_newest_message_that_shows_one() -> None:
    assert heard("Lyon", earlier=("où est mon chat ?", "ok")).asker.language == "fr"
    assert heard("Lyon").asker.language == "en"


def test_what_a_correction_corrects_is_no_longer_known() -> None:
    now = heard("x", "mike", earlier=("I live in Rome. I ski", "No, I live in Lyon"))
    assert now.before == ("Mike skis", "Mike lives in Lyon")
