"""Languages by their names: "French", "français", "צרפתית" and "fr-CA" are one."""

import re

from agent.offline.words import Language, words

# The English name, then how it is called in English, French, Hebrew and by those who speak it.
_NAMES = (
    "English: anglais anglaise אנגלית",
    "French: français française צרפתית",
    "Hebrew: hébreu עברית ivrit",
    "Spanish: espagnol espagnole ספרדית español castellano",
    "German: allemand allemande גרמנית deutsch",
    "Italian: italien italienne איטלקית italiano",
    "Portuguese: portugais portugaise פורטוגזית português",
    "Dutch: néerlandais néerlandaise הולנדית nederlands",
    "Russian: russe רוסית русский",
    "Ukrainian: ukrainien ukrainienne אוקראינית українська",
    "Polish: polonais polonaise פולנית polski",
    "Romanian: roumain roumaine רומנית română",
    "Hungarian: hongrois hongroise הונגרית magyar",
    "Czech: tchèque צכית čeština",
    "Greek: grec grecque יוונית ελληνικά",
    "Turkish: turc turque טורקית türkçe",
    "Arabic: arabe ערבית العربية",
    "Persian: persan פרסית farsi فارسی",
    "Swedish: suédois suédoise שוודית svenska",
    "Norwegian: norvégien norvégienne נורווגית norsk",
    "Danish: danois danoise דנית dansk",
    "Finnish: finnois finlandais פינית suomi",
    "Hindi: हिन्दी הינדי",
    "Chinese: chinois chinoise סינית mandarin 中文",
    "Japanese: japonais japonaise יפנית 日本語",
    "Korean: coréen coréenne קוריאנית 한국어",
    "Vietnamese: vietnamien וייטנאמית",
    "Thai: thaï תאילנדית",
    "Yiddish: יידיש",
    "Amharic: amharique אמהרית",
    "Catalan: català קטלאנית",
)
_ENGLISH_NAME: dict[str, str] = {}
for _row in _NAMES:
    _english, _others = _row.split(": ")
    for _name in (_english, *_others.split()):
        _ENGLISH_NAME[" ".join(words(_name))] = _english

_CODE = re.compile(r"\s*([a-z]{2,3})(?:[-_][a-z0-9]{2,8})*\s*", re.I)
_BY_CODE: dict[str, Language] = {
    "en": "en", "eng": "en", "fr": "fr", "fra": "fr", "fre": "fr", "he": "he", "heb": "he", "iw": "he",
}  # fmt: skip
_BY_NAME: dict[str, Language] = {"English": "en", "French": "fr", "Hebrew": "he"}


def english_name(name: str) -> str | None:
    """The English name of one language, called by it in any of the tongues above; None for anything else."""
    low = " ".join(words(name))
    return _ENGLISH_NAME.get(low) or (_ENGLISH_NAME.get(low[1:]) if low[:1] in ("ב", "ה") else None)


def own_language(wish: str) -> Language | None:
    """The language of the stand-in's own that a wish names ("British English", "he-IL"), None for others."""
    if found := _CODE.fullmatch(wish[:100]):
        return _BY_CODE.get(found[1].lower())
    named = (english_name(word) for word in re.findall(r"\w+", wish[:100]))
    return next((_BY_NAME.get(name) for name in named if name), None)
