"""Words for the stand-in: which language a text is in, what it is about, which words go together.

Small tables, no grammar: what a sentence means is read in `agent.offline.grammar`.
"""

import re
import unicodedata
from collections import Counter
from typing import Literal

Language = Literal["en", "fr", "he", "es", "de", "other"]


def bag(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())


SAMPLE = 2_000
"""Characters of a text that are looked at to tell its language."""

# Words that are frequent in one language and rare in the others. "other" is Italian, Portuguese and Dutch:
# known well enough not to be taken for English.
TELLING_WORDS: dict[Language, frozenset[str]] = {
    "en": bag(
        "the i my is are am was of to and in that it you what where when who how do does did have has with "
        "at this for your his her he she we lives called broke hello hi hey thanks thank yes please "
        "remember remind"
    ),
    "fr": bag(
        "je j le les une des du est suis ai mon ma mes et dans que qui quoi où quand comment pourquoi quel "
        "quelle qu tu te toi moi c ça pas avec pour sur sais souviens bonjour salut merci rappelle à habite "
        "vit vis aime adore déteste appelle préfère"
    ),
    "es": bag(
        "yo el los las una es soy estoy tengo mi mis y que qué dónde cuándo quién cómo vivo llamo gusta por "
        "con del hola gracias buenos buenas recuerdas sabes"
    ),
    "de": bag(
        "ich der die das ein eine ist bin habe mein meine und wo wann wer wie warum du dich mich mir nicht "
        "mit im in auf hallo danke heiße wohne weißt was"
    ),
    "other": bag(
        "io il gli sono mio mia che dove chi ciao grazie abito chiamo anche eu meu minha não onde quem olá "
        "obrigado obrigada moro tenho ik het een mijn wie waar hoi dank woon niet"
    ),
}

STOP_WORDS = bag(
    "a an the i me my mine myself am is are was were be been do does did have has had can could will would "
    "should shall may might must of to and or but in on at for from with about by as that this these those "
    "it its you your yours we our us he she his her him they them their what who whom whose where when why "
    "how which there here not no so if than then any some all again please tell told say said know remember "
    "remind think talk talked talking mention mentioned discuss discussed last time before earlier "
    "yesterday anything everything something ever still user s m ve re d ll t je j tu il elle on nous vous "
    "ils elles me moi te toi se le la les l un une des de du d et ou mais dans en sur pour avec par que qu "
    "qui quoi est es suis ai as a sont ce c ça cette mon ma mes ton ta tes son sa ses où quand comment "
    "pourquoi quel quelle quels quelles ne n pas plus sais souviens rappelles dis dit parlé y to "
    "utilisateur אני אתה את הוא היא אנחנו הם הן של שלי שלך על עם אל מה מי מתי איפה היכן למה מדוע איך כמה "
    "האם איזה איזו לי לך זה זאת יש אין לא כן גם או אבל כי אם זוכר זוכרת יודע יודעת עליי עלי אמרתי דיברנו "
    "משתמש yo mi el los las una es soy que qué dónde cuándo quién cómo del al ich mein meine der die das "
    "ein eine ist bin was wo wann wer wie"
)

# A question and its answer seldom share a word: "where do I live?", "moved to Lyon".
GROUPS = (
    "live lives living home address moved move city town house stay habite vis vit déménagé ville adresse "
    "maison גר גרה גרים עברתי כתובת עיר בית vivo vive wohne wohnt",
    "job work works working worked living profession career employed travail travaille métier boulot עובד "
    "עובדת עבודה מקצוע trabajo arbeite beruf",
    "name called call goes nom prénom appelle surnom שם שמי קוראים nombre llamo heiße heißt",
    "happened happen happening accident broke broken fell hurt injured injury lost crashed died ill sick "
    "burned arrivé passé cassé tombé perdu blessé malade accident קרה קרתה שברתי נפלתי איבדתי חולה נפצעתי "
    "pasó rompí passiert gebrochen",
    "food eat eats eating drink drinks favourite favorite vegetarian vegan mange boit manger végétarien "
    "אוכל אוכלת שותה",
    "born birthday birth old age turned né née anniversaire âge ans נולדתי יום־הולדת הולדת גיל בן בת",
    "family sister brother mother father mum mom dad wife husband son daughter sibling siblings parents "
    "partner sœur frère mère père femme mari fils fille famille אחות אח אמא אבא אשתי בעלי אחותי אחי משפחה",
    "pet pets dog cat animal chien chat כלב כלבה חתול חתולה",
    "love like likes loves enjoy enjoys favourite favorite prefer hobby hobbies aime adore préfère אוהב "
    "אוהבת",
    "hate hates dislike dislikes déteste שונא שונאת",
    "allergic allergy allergies allergique allergie אלרגי אלרגית אלרגיה",
    "health doctor hospital ill sick broke allergic santé malade בריאות",
)


def _folded(word: str) -> str:
    """Without case or accents, so that "Où" finds "ou" and "ETE" finds "été"."""
    return "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))


_STOP = frozenset(map(_folded, STOP_WORDS))
_GROUPS_OF: dict[str, set[int]] = {}
for _number, _group in enumerate(GROUPS):
    for _member in _group.split():
        _GROUPS_OF.setdefault(_folded(_member), set()).add(_number)


def clean(text: str) -> str:
    """Without NUL and lone surrogates, which neither JSON nor a database takes gladly."""
    return text.replace("\0", " ").encode("utf-8", "ignore").decode("utf-8")


def straight(text: str) -> str:
    """With plain apostrophes."""
    return text.replace("\u2019", "'")


def words(text: str) -> list[str]:
    """The words and numbers of a text, folded; an elision ("j'ai") gives two.

    Where words are not spaced apart, each two neighbouring signs stand for one.
    """
    found: list[str] = []
    for word in re.findall(r"\w+", text):
        pairs = [word[i : i + 2] for i in range(len(word) - 1)] if word[0] >= "\u3040" else []
        found += pairs or [_folded(word)]
    return found


def key_words(text: str) -> list[str]:
    """What a text is about: its words without the small ones, each once, in order."""
    return [word for word in dict.fromkeys(words(text)) if word not in _STOP]


def _script(text: str) -> str:
    counts = Counter(
        "he" if "\u0590" <= c <= "\u05ff" else "latin" if c < "\u0250" else "other"
        for c in text
        if c.isalpha()
    )
    return counts.most_common(1)[0][0] if counts else "none"


def language_of(text: str) -> Language | None:
    """The language of a text, None where nothing in it tells."""
    sample = text[:SAMPLE]
    script = _script(sample)
    if script == "he":
        return "he"
    if script != "latin":
        return None if script == "none" else "other"
    found = Counter(re.findall(r"[^\W\d_]+", sample.lower()))
    scores = {language: sum(found[word] for word in telling) for language, telling in TELLING_WORDS.items()}
    best = max(scores, key=scores.__getitem__)  # the first of equals: English
    return best if scores[best] else None


def alike(one: str, other: str) -> bool:
    """Whether two folded words are forms of one word: "live" and "lives", "כתף" and "הכתף"."""
    if one == other:
        return True
    if min(len(one), len(other)) < 4:
        return min(len(one), len(other)) >= 3 and (_bare(one) == other or one == _bare(other))
    shared = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    shared = min(len(one), len(other)) if shared is None else shared
    return shared >= max(4, max(len(one), len(other)) - 3) or _bare(one) == other or one == _bare(other)


def _bare(word: str) -> str:
    """A Hebrew word without the article or preposition that is written onto it."""
    return word[1:] if word[0] in "הבלמוש" else word


def relatives(word: str) -> list[str]:
    """The other words of a folded word's groups, as they are written."""
    return [other for number in sorted(_GROUPS_OF.get(word, ())) for other in GROUPS[number].split()]


def related(one: str, other: str) -> bool:
    """Whether two folded words belong to one group: "live" and "moved"."""
    return not _GROUPS_OF.get(one, set()).isdisjoint(_GROUPS_OF.get(other, set()))
