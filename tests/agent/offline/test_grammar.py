import pytest

from agent.offline.facts import corrected, draft
from agent.offline.grammar import LONGEST, READ, Courtesy, Fact, Question, Todo, read
from agent.offline.words import alike, clean, language_of, related, words


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("my name is Mickael and I broke my shoulder", ["my name is Mickael", "I broke my shoulder"]),
        ("I met Dr. Brown. I like J. R. R. Tolkien.", ["I met Dr. Brown", "I like J. R. R. Tolkien"]),
        ("I pay 10.5 euros, my rent is 900", ["I pay 10.5 euros", "my rent is 900"]),
        ("I love my dog and my cat", ["I love my dog and my cat"]),
        ("When I was 5, I moved to Rome", ["When I was 5, I moved to Rome"]),
        ("my wife and I live in Rome", ["my wife and I live in Rome"]),
        ("Well, hi Hachi, I ski", ["I ski"]),
        ("Ana broke her leg. She is in Rome.", ["Ana broke her leg", "Ana is in Rome"]),
        ("The sea is cold on Monday, and she swims", ["The sea is cold on Monday, and she swims"]),
        ("We ski\nOur dog barks", ["We ski", "Our dog barks"]),
        ("I ski. I ski.", ["I ski"]),
        ("The meeting is on Monday", ["The meeting is on Monday"]),
        ("Dev is really called Mickael", ["Dev is really called Mickael"]),
        ("Ana's brother works in Rome", ["Ana's brother works in Rome"]),
        ("remember that the key is under the mat", ["the key is under the mat"]),
        ("note: I ski", ["I ski"]),
        ("The weather is nice. It rains. This is fun.", []),
        ("I am French. I'm not sure.", ["I am French"]),
        ("Hier, mon chat est tombé", ["Hier, mon chat est tombé"]),
        ("אני גר בחיפה ואני עובד בבנק", ["אני גר בחיפה", "אני עובד בבנק"]),
        ("Dr.", ["Dr"][:0]),
    ],
)  # fmt: skip
def test_facts_are_read_clause_by_clause(text: str, facts: list[str]) -> None:
    said = read(text, language_of(text) or "en")
    assert [thing.text for thing in said if isinstance(thing, Fact)] == facts


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("my name is mickael", "mickael"),
        ("I'm Mary Ann", "Mary Ann"),
        ("I am called Bob by the way", "Bob"),
        ("call me Mick", "Mick"),
        ("Je m'appelle Léa", "Léa"),
        ("קוראים לי מיכאל", "מיכאל"),
    ],
)
def test_names_are_read(text: str, value: str) -> None:
    [fact] = read(text, language_of(text) or "en")
    assert isinstance(fact, Fact)
    assert fact.about in ("name", "nickname")
    assert fact.value == value


@pytest.mark.parametrize("text", ["I'm French", "my name is not Bob", "I'm tired"])
def test_not_everything_after_i_am_is_a_name(text: str) -> None:
    [fact] = read(text, "en")
    assert isinstance(fact, Fact)
    assert fact.about == "self"


@pytest.mark.parametrize(
    "text",
    ["what is my name", "where do I live?", "do you remember me", "tell me about Ana",
     "is she ill", "I'd like to know who Ana is",
     "when is my exam", "où est Ana", "tu te souviens de moi", "איפה אני גר", "האם אנה בבית",
     "I live in Lyon?"],
)  # fmt: skip
def test_questions_are_questions_with_or_without_their_mark(text: str) -> None:
    [thing] = read(text, language_of(text) or "en")
    assert isinstance(thing, Question)


@pytest.mark.parametrize(
    ("text", "description", "status"),
    [
        ("remind me to call mum tomorrow", "call mum tomorrow", "open"),
        ("can you remind me tomorrow to call mum?", "call mum tomorrow", "open"),
        ("remind me about the party", "the party", "open"),
        ("don't forget to buy milk", "buy milk", "open"),
        ("remember to buy milk", "buy milk", "open"),
        ("remember that I need to buy milk", "buy milk", "open"),
        ("add milk to my list", "milk", "open"),
        ("I have to renew my passport", "renew my passport", "open"),
        ("done: the milk", "the milk", "done"),
        ("the milk is done", "milk", "done"),
        ("N'oublie pas d'acheter du pain", "acheter du pain", "open"),
        ("Il faut que je dorme", "dorme", "open"),
        ("משימה: לקנות חלב", "לקנות חלב", "open"),
    ],
)
def test_tasks_are_read(text: str, description: str, status: str) -> None:
    assert read(text, language_of(text) or "en") == [Todo(description, status)]  # type: ignore[arg-type]


def test_a_correction_is_marked() -> None:
    assert read("No, actually I live in Lyon", "en") == [Fact("I live in Lyon", "self", correction=True)]
    assert read("Non, en fait j'habite à Lyon", "fr") == [Fact("j'habite à Lyon", "self", correction=True)]
    assert read("לא, אני גר בחיפה", "he") == [Fact("אני גר בחיפה", "self", correction=True)]


def test_several_things_in_one_message_are_each_read() -> None:
    kinds = [type(thing) for thing in read("Hi! I ski. Where is Ana? todo: buy milk", "en")]
    assert kinds == [Courtesy, Fact, Question, Todo]


def test_a_text_is_no_fact_and_a_book_is_read_to_its_limit() -> None:
    assert read("I " + "very " * LONGEST + "much", "en") == []
    said = read("I own a boat. " * READ + "I ski.", "en")
    assert [thing.text for thing in said if isinstance(thing, Fact)] == ["I own a boat"]


@pytest.mark.parametrize(
    ("text", "ttl"),
    [
        ("I'm ill", "7d"),
        ("I have a bad cold", "7d"),
        ("I'm tired", "1d"),
        ("I'm on holiday", "14d"),
        ("I'm in Rome this week", "7d"),
        ("I have a party tonight", "1d"),
        ("I have an exam tomorrow", "2d"),
        ("I broke my arm this morning", None),
        ("I had the flu in 2019", None),
        ("I'm sick of olives", None),
        ("I live in Lyon", None),
        ("Je suis malade", "7d"),
        ("j'ai cassé mon vélo ce matin", None),
        ("J'ai un examen demain", "2d"),
        ("אני חולה", "7d"),
    ],
)
def test_passing_states_hold_for_a_while_and_events_for_good(text: str, ttl: str | None) -> None:
    language = language_of(text) or "en"
    [fact] = read(text, language)
    assert isinstance(fact, Fact)
    assert draft(fact, "Mickael", language).ttl == ttl


def test_what_is_liked_is_a_preference() -> None:
    for text, kind in (("I love tea", "preference"), ("I would like tea", "fact"), ("I own a boat", "fact")):
        [fact] = read(text, "en")
        assert isinstance(fact, Fact)
        assert draft(fact, "Mickael", "en").type == kind


def test_a_nickname_and_another_name_are_kept_beside_the_known_one() -> None:
    [nickname] = read("call me Mick", "en")
    [name] = read("my name is Mickael", "en")
    assert isinstance(nickname, Fact)
    assert isinstance(name, Fact)
    assert draft(nickname, "Mickael", "en").content == "Mickael is also called Mick"
    assert draft(name, "mick42", "en").content == "Mick42's name is Mickael"
    assert draft(name, None, "en").content == "The user's name is Mickael"


def test_only_the_same_statement_with_another_value_is_corrected() -> None:
    close = [
        {"id": "1", "content": "Ana lives in Rome"},
        {"id": "2", "content": "Mickael lives in Paris"},
        {"id": "3", "content": "Mickael lives in Lyon"},
        {"id": "4", "content": "Mickael"},
    ]
    assert corrected("Mickael lives in Lyon", close) == "2"
    assert corrected("Tea is good", close) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I live here", "en"), ("je suis là", "fr"), ("אני כאן", "he"), ("yo vivo aquí", "es"),
        ("ich bin hier", "de"),
        ("io sono qui", "other"), ("我在这里", "other"), ("привет", "other"), ("xyzzy", None),
        ("123 😀", None), ("", None),
    ],
)  # fmt: skip
def test_languages_are_told_apart(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_words_are_compared_by_their_forms() -> None:
    assert words("J'étais à Lyon") == ["j", "etais", "a", "lyon"]
    assert words("私の名") == ["私の", "の名"]
    assert alike("live", "lives")
    assert alike("כתפ", "הכתפ")
    assert alike("bord", "board") is False
    assert not alike("no", "not")
    assert not alike("cat", "car")
    assert alike("בית", "הבית")
    assert not alike("ab", "abc")
    assert related("live", "moved")
    assert not related("live", "shoulder")
    assert clean("a\0b\ud800c") == "a bc"
