"""How much a sentence of a conversation is worth keeping, by what it does: decide, plan, tell, ask, chat."""

import re
from enum import IntEnum

from agent.offline.grammar import LONGEST, Fact, Question, Todo, read
from agent.offline.words import Language, key_words, straight


class Worth(IntEnum):
    """The lower, the longer it is kept."""

    DECISION = 0
    PLAN = 1
    FACT = 2
    REMARK = 3
    """Says something, in words that no table knows."""
    QUESTION = 4
    NOTHING = 5
    """Greetings, thanks, small talk."""


# What a conversation settles. French and Hebrew give the person by the verb's form, English needs none.
_DECISIONS = (
    r"\b(?:decided|settled on|agreed (?:on|to|that)|made up (?:my|our) minds?|opted for|chose to)\b",
    r"\b(?:it'?s|it is|that'?s|that is) (?:decided|settled|agreed|a deal)\b",
    r"\blet'?s (?:go|stick|settle) (?:with|for|on)\b|"
    r"\blet'?s (?:do it|do that|rent|buy|take|meet|use|book)\b|"
    r"\bwe(?:'ll| will|'re| are|'re going to| are going to) (?:go|going|stick|sticking) (?:with|for)\b",
    r"\b(?:the|our|my|final) (?:\w+ )?decision (?:is|was)\b",
    r"\bdécid[ée]e?s?\b|\b(?:ai|a|as|avons|avez|ont|est) decide\b|\bva pour\b|"
    r"\bc'est (?:entendu|convenu|tranché|acté)\b|\b(?:la|notre) décision\b.{0,20}\best\b",
    r"\b(?:on|nous) (?:a|avons) (?:finalement |donc )?(?:choisi|opté)\b|"
    r"\bj'ai (?:finalement )?(?:choisi|opté)\b|"
    r"\b(?:on|nous) (?:part|partons|reste|restons) sur\b|\b(?:on|nous) (?:opte|optons) pour\b|"
    r"\b(?:on|nous) (?:prend|prenons) (?:le|la|les|un|une|l')\b",
    r"(?<!\w)(?:ו|ש)?(?:החלטנו|החלטתי|החליטו|הוחלט|סיכמנו|סגרנו על|בחרנו|בחרתי|הולכים על|נלך על)(?!\w)",
    r"\b(?:hemos decidido|decidimos|he decidido|queda decidido|haben\b.{0,40}\b(?:entschieden|"
    r"beschlossen)|abgemacht|abbiamo deciso|ho deciso|we hebben besloten)\b",
)
_DECISION = re.compile("|".join(_DECISIONS), re.I)
_UNDECIDED = re.compile(
    r"(?:n't|\bnot|\bnever|\bnobody|\byet to) (?:\w+ ){0,2}(?:decided|settled|agreed|chose|opted)|"
    r"\bif\b.{0,40}\bdecided\b|"
    r"\b(?:haven'?t|hasn'?t|hadn'?t|have not|has not)\b.{0,20}\b(?:decided|settled|agreed)\b|"
    r"\b(?:pas|jamais|rien) (?:\w+ ){0,2}décidé|\bundecided\b|\bindécise?\b|"
    r"לא (?:החלט|הוחלט|סיכמ|בחרנו|בחרתי)",
    re.I,
)
_OF_OTHERS = re.compile(
    r"(?:my|his|her|their|mon|ma|mes|son|sa|ses|leur) [\w'-]+(?: [\w'-]+)? (?:has |have |a |ont )?d[ée]cid",
    re.I,
)
_PLAN = re.compile(
    r"\b(?:my|our|the) (?:\w+ )?(?:goals?|plans?|aims?|dream) (?:is|are)\b|"
    r"\b(?:i|we)(?:'ll| will| shall|'m going to|'re going to| am going to| are going to)\b|"
    r"\b(?:i|we)(?:'m| am|'re| are) (?:planning|aiming|hoping|saving|moving|getting|starting)\b|"
    r"\b(?:i|we) (?:really )?(?:want|plan|intend|aim|hope) to\b|\b(?:i|we)'?d (?:would )?(?:like|love) to\b|"
    r"\b(?:mon|ma|mes|notre|nos|le) (?:objectifs?|buts?|projets?|plans?|rêve) (?:est|sont)\b|"
    r"\b(?:je|nous|on) (?:vais|allons|va|veux|voulons|veut|compte|comptons|prévois|prévoyons) "
    r"(?!bien\b|très\b|mieux\b|mal\b)|\bj'(?:aimerais|espère|ai l'intention)\b|\bje (?:voudrais|souhaite)\b|"
    r"(?:המטרה|התוכנית|התכנית) שלי|(?<!\w)(?:אני|אנחנו) (?:רוצ|מתכנ|מתכוו|הולכ|עומד|עומדים)\w* ל|"
    r"(?<!\w)(?:נעבור|ננסה|אעבור|אתחיל|נתחיל)(?!\w)",
    re.I,
)
# "I'll have a coffee", "I'm going to bed": a plan only for the next hour.
_PASSING = re.compile(
    r"\b(?:i|we)(?:'ll| will|'m going| am going) (?:just |to )*(?:see|think|check|look|let you|bed\b|"
    r"be (?:back|right|there|fine|off)|make (?:some |a )?(?:tea|coffee)|have (?:a|another|some)|sleep|go now|"
    r"talk|tell|try|show|remember|ask|say|know|do (?:it|that))|"
    r"\bje (?:vais|veux) (?:me coucher|dormir|manger|voir|essayer|te|vous|y aller|prendre un café|dire|"
    r"savoir)|"
    r"\b(?:right now|in a (?:minute|second|moment|bit)|tonight|later today|tout de suite|ce soir|"
    r"tout à l'heure)\b|עוד רגע|הולכ\w* לישון",
    re.I,
)
_LISTED: frozenset[Language] = frozenset({"en", "fr", "he"})
"""Languages whose grammar tells facts from chat."""
_KEYS = 4
"""Words that matter in a sentence which is informative by its words alone; of signs, pairs."""


def worth(sentence: str, language: Language) -> Worth:
    """Of one sentence, without the name of who said it."""
    text = straight(sentence.strip())
    if text.endswith(("?", "？", "؟", "?!", "?”", '?"')):
        return Worth.QUESTION if _says_something(text) else Worth.NOTHING
    if _DECISION.search(text) and not _UNDECIDED.search(text):
        return Worth.FACT if _OF_OTHERS.match(text) else Worth.DECISION
    told = read(text[:LONGEST], language)
    if any(isinstance(thing, Question) for thing in told):
        return Worth.QUESTION if _says_something(text) else Worth.NOTHING
    tells = any(isinstance(thing, Fact | Todo) for thing in told)
    if told and not tells:
        return Worth.NOTHING
    if language in _LISTED and (tells or _PLAN.search(text)):
        return Worth.REMARK if _PASSING.search(text) else Worth.PLAN if _PLAN.search(text) else Worth.FACT
    return Worth.REMARK if _says_something(text) else Worth.NOTHING


def _says_something(text: str) -> bool:
    return len(key_words(text)) >= _KEYS
