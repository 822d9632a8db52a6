import pytest

from agent.offline.person import quoted, second_person, third_person
from agent.offline.person_en import is_past, is_verb


@pytest.mark.parametrize(
    ("said", "remembered", "told"),
    [
        ("I broke my shoulder", "Mickael broke their shoulder", "You broke your shoulder"),
        ("I'm allergic to nuts", "Mickael is allergic to nuts", "You are allergic to nuts"),
        ("I’ve been to Rome", "Mickael has been to Rome", "You have been to Rome"),
        ("I'll be 40 in May", "Mickael will be 40 in May", "You will be 40 in May"),
        ("I'd been a cook", "Mickael had been a cook", "You had been a cook"),
        ("I'd love a dog", "Mickael would love a dog", "You would love a dog"),
        ("I don't eat meat", "Mickael doesn't eat meat", "You don't eat meat"),
        ("I wasn't there", "Mickael wasn't there", "You weren't there"),
        ("I really love jazz", "Mickael really loves jazz", "You really love jazz"),
        ("I study law", "Mickael studies law", "You study law"),
        ("I play chess", "Mickael plays chess", "You play chess"),
        ("I teach and write", "Mickael teaches and writes", "You teach and write"),
        ("I miss my sister", "Mickael misses their sister", "You miss your sister"),
        ("I need a bike", "Mickael needs a bike", "You need a bike"),
        ("I can swim", "Mickael can swim", "You can swim"),
        ("I never", "Mickael never", "You never"),
        ("my dog is called Rex", "Mickael's dog is called Rex", "Your dog is called Rex"),
        ("my sister says she skis", "Mickael's sister says she skis", "Your sister says she skis"),
        ("When I was 5, I moved", "When Mickael was 5, they moved", "When you were 5, you moved"),
        ("Last year my cat died", "Last year Mickael's cat died", "Last year your cat died"),
        ("I think I am late", "Mickael thinks they are late", "You think you are late"),
    ],
)  # fmt: skip
def test_english_is_remembered_in_the_third_person_and_told_in_the_second(
    said: str, remembered: str, told: str
) -> None:
    assert third_person(said, "Mickael", "en") == remembered
    assert second_person(remembered, ("Mickael",), "en") == told


@pytest.mark.parametrize(
    ("said", "remembered", "told"),
    [
        ("je me suis cassé l'épaule", "Léa s'est cassé l'épaule", "Tu t'es cassé l'épaule"),
        ("J’ai un chat", "Léa a un chat", "Tu as un chat"),
        ("j'habite à Lyon", "Léa habite à Lyon", "Tu habites à Lyon"),
        ("je n'aime pas mon travail", "Léa n'aime pas son travail", "Tu n'aimes pas ton travail"),
        ("je finis mes études à Nice", "Léa finit ses études à Nice", "Tu finis tes études à Nice"),
        ("je vivais à Lyon", "Léa vivait à Lyon", "Tu vivais à Lyon"),
        ("j'irai à Rome avec ma tante", "Léa ira à Rome avec sa tante", "Tu iras à Rome avec ta tante"),
        ("mon chien s'appelle Rex", "Le chien de Léa s'appelle Rex", "Ton chien s'appelle Rex"),
        ("ma sœur Ana habite à Rome", "Ana, la sœur de Léa, habite à Rome", "Ana, ta sœur, habite à Rome"),
        ("mes parents sont à Nice", "Les parents de Léa sont à Nice", "Tes parents sont à Nice"),
        ("mon ami est là", "L'ami de Léa est là", "Ton ami est là"),
        ("ma couleur préférée est le bleu", "La couleur préférée de Léa est le bleu",
         "Ta couleur préférée est le bleu"),
    ],
)  # fmt: skip
def test_french_too(said: str, remembered: str, told: str) -> None:
    assert third_person(said, "Léa", "fr") == remembered
    assert second_person(remembered, ("Léa",), "fr") == told


def test_a_name_that_begins_with_a_vowel_elides() -> None:
    assert third_person("mon chien est là", "Ana", "fr") == "Le chien d'Ana est là"
    assert second_person("Le chien d'Ana est là", ("Ana",), "fr") == "Ton chien est là"


@pytest.mark.parametrize(
    ("said", "language", "remembered"),
    [
        ("we live in Paris", "en", 'Mickael said: "we live in Paris"'),
        ("I visited Ana and her parents in their house", "en",
         'Mickael said: "I visited Ana and her parents in their house"'),
        ("my wife and I ski", "en", 'Mickael said: "my wife and I ski"'),
        ("je suis tombé quand j'étais petit", "fr", "Mickael a dit : « je suis tombé quand j'étais petit »"),
        ("mon vieux vélo rouge", "fr", "Mickael a dit : « mon vieux vélo rouge »"),
        ("je veuf", "fr", "Mickael a dit : « je veuf »"),
        ("שברתי את הכתף", "he", 'Mickael: "שברתי את הכתף"'),
        ("vivo en Madrid", "es", 'Mickael dijo: "vivo en Madrid"'),
        ("ich wohne hier", "de", 'Mickael sagte: "ich wohne hier"'),
    ],
)  # fmt: skip
def test_what_cannot_be_turned_safely_is_kept_as_a_quotation(
    said: str, language: str, remembered: str
) -> None:
    assert third_person(said, "Mickael", language) == remembered  # type: ignore[arg-type]
    assert quoted(remembered, ("Ana", "Mickael")) == said
    assert quoted(remembered, ("Ana",)) is None


@pytest.mark.parametrize(
    "content",
    ["Ana lives in Rome", "Mickaella skis", "Mickael loves his dog", "The boat of Mickael leaks"],
)
def test_what_is_about_others_or_unclear_stays_as_it_is(content: str) -> None:
    assert second_person(content, ("Mickael",), "en") is None


def test_a_french_sentence_about_others_stays_as_it_is() -> None:
    assert second_person("Ana habite à Rome", ("Mickael",), "fr") is None


def test_two_subjects_keep_their_verb() -> None:
    assert second_person("Mickael and Ana live in Rome", ("Mickael",), "en") == "You and Ana live in Rome"


def test_nobody_known_is_the_user() -> None:
    assert third_person("I ski", None, "en") == "The user skis"
    assert third_person("je skie", None, "fr") == "L'utilisateur skie"


def test_the_past_is_told_from_the_present() -> None:
    assert is_past("I broke my arm today")
    assert is_past("yesterday I finished it")
    assert not is_past("I need a bike")
    assert not is_past("I'm ill")
    assert not is_past("Ana broke her arm")
    assert is_verb("lives")
    assert is_verb("broke")
    assert not is_verb("house")
