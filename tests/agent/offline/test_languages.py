import pytest

from agent.offline.languages import english_name, own_language


@pytest.mark.parametrize(
    ("wish", "language"),
    [
        ("French", "fr"), ("français", "fr"), ("FRANCAIS", "fr"), ("צרפתית", "fr"), ("fr", "fr"),
        ("fr-CA", "fr"), ("fr_FR", "fr"), ("Canadian French", "fr"), ("en français", "fr"),
        ("English", "en"), ("British English", "en"), ("anglais", "en"), ("אנגלית", "en"), ("en-GB", "en"),
        ("Hebrew", "he"), ("עברית", "he"), ("בעברית", "he"), ("hébreu", "he"), ("iw", "he"), ("he-IL", "he"),
        ("Spanish", None), ("es", None), ("de-AT", None), ("Klingon", None), ("", None),
    ],
)  # fmt: skip
def test_its_own_languages_are_known_by_any_name(wish: str, language: str | None) -> None:
    assert own_language(wish) == language


@pytest.mark.parametrize(
    ("name", "english"),
    [
        ("espagnol", "Spanish"),
        ("日本語", "Japanese"),
        ("הולנדית", "Dutch"),
        ("ברוסית", "Russian"),
        ("music", None),
    ],
)
def test_other_languages_are_named_in_english(name: str, english: str | None) -> None:
    assert english_name(name) == english
