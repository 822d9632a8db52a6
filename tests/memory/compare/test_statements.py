import pytest

from memory.compare.statements import read, shared_language
from memory.compare.vocabulary import Language


def keys(text: str, language: Language = "english") -> list[str]:
    return [token.key for token in read(text, language)]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("english", "Wei wakes up at 6 a.m.", "Wei gets up at six in the morning."),
        ("english", "Wei sleeps at 9:30 pm.", "Wei sleeps at 21:30."),
        ("english", "Ann was born on March 14th, 1988.", "Ann was born on 14 March 1988."),
        ("english", "Ann has twenty-five cats.", "Ann has 25 cats."),
        ("english", "Ann paid 1,000 euros.", "Ann paid 1000 euros."),
        ("english", "On Mondays, Ann runs.", "Ann runs on Monday."),
        ("english", "In May Ann runs.", "Ann runs in May."),
        ("english", "Thunder scares Ann.", "Ann is afraid of thunder."),
        ("english", "Ann can't stand tea.", "Ann hates tea."),
        ("english", "Ann cannot stand tea.", "Ann dislikes tea."),
        ("english", "Ann is at the 4th gate.", "Ann is at the fourth gate."),
        ("english", "Ann has a five-year-old son.", "Ann has a 5 year old son."),
        ("english", "ANN LIKES TEA", "ann loves tea"),
        ("french", "Luc part à 14 h 30.", "Luc part à 14h30."),
        ("french", "Luc part à 8 h du soir.", "Luc part à 20 h."),
        ("french", "Luc se lève à six heures.", "Luc se réveille à 6 h."),
        ("french", "Luc est né le 1er mai.", "Luc est né le 1 mai."),
        ("french", "L’ami de Luc n’aime pas l’eau.", "L'ami de Luc déteste l'eau."),
        ("hebrew", "דנה קמה בשש בבוקר.", "דנה מתעוררת ב-6 בבוקר."),
        ("hebrew", "לדנה תור ב-4 ביוני.", "לדנה תור ב-4 יוני."),
    ],
)
def test_one_value_has_one_key_however_it_is_written(language: Language, one: str, other: str) -> None:
    assert [key for key in keys(one, language) if key not in {"in", "on", "ב"}] == [
        key for key in keys(other, language) if key not in {"in", "on", "ב"}
    ]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("english", "It lasts 3.5 h.", "It lasts 3.5."),
        ("english", "The gate is 5B.", "The gate is 5C."),
        ("english", "It weighs 3.5 kg.", "It weighs 35 kg."),
        ("english", "It is -5 today.", "It is 5 today."),
        ("english", "It may rain 4 hours.", "In May it rained 4 hours."),
        ("english", "Ann meets Marcos.", "Ann meets Marco."),
        ("english", "It opens at 8:30km.", "It opens at 8:30."),
        ("english", "The code is ②a3.", "The code is ③a3."),
        ("french", "Luc a un cours à 7 h 12.", "Luc a un cours à 17 h 12."),
        ("", "رقم ٣", "رقم ٤"),
        ("", "कि", "की"),
    ],
)
def test_two_values_have_two_keys(language: Language, one: str, other: str) -> None:
    assert keys(one, language) != keys(other, language)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Molly likes tea.", "english"),
        ("Odile a des chats.", "french"),
        ("לעידו יש חתולה.", "hebrew"),
        ("Carmen no come carne en la casa.", ""),
        ("Jonas ist nicht müde.", ""),
        ("Jan is nooit moe.", ""),
        ("Gino non beve il caffè.", ""),
        ("Иван любит чай.", ""),
        ("アンナは肉を食べない。", ""),
        ("Ola", ""),
    ],
)
def test_only_a_language_that_shows_is_taken_for_granted(text: str, language: Language) -> None:
    assert shared_language(text, text) == language


def test_a_name_matches_nothing_but_itself() -> None:
    daniel, daniels = read("Daniel sings.", "english")[0], read("Daniels sings.", "english")[0]
    assert not daniel.matches(daniels)
    assert daniel.matches(read("daniel sings.", "english")[0])


def test_an_inflected_word_matches_its_plain_form_alone() -> None:
    baking, bake, bakery = (read(f"Ann likes {word}", "english")[2] for word in ("baking", "bake", "bakery"))
    assert baking.matches(bake)
    assert not baking.matches(bakery)


def test_hebrew_prefixes_are_seen_through_except_where_names_begin_so() -> None:
    train, by_train, liron, yaron = (
        read(f"דנה {word}", "hebrew")[1] for word in ("רכבת", "ברכבת", "לירון", "ירון")
    )
    assert train.matches(by_train)
    assert not liron.matches(yaron)


def test_subjects_are_names_where_there_are_no_capitals() -> None:
    assert read("עם הראל", "hebrew", frozenset({"הראל"}))[0].kind == "name"
