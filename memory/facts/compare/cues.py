"""Closed lists of function words, compared without case.

They can only call for caution or meet a condition; they never prove what a text means. If several languages
spell a word alike, one entry covers them all.
"""

import re
from functools import cache

from memory.text.names import fold

_NEGATES = """
no not never n nor neither none nobody nothing nowhere without cannot cant ne pas non ni jamais sans nao
nunca jamas sin sem mai senza nicht kein keine keinen nie niemals ohne niet geen nooit ikke ikkje inte icke
ej aldrig aldri ei neni nem nu не ни нет без δεν μην χωρις לא אל אין בלי ללא ليس لا لم لن بدون नहीं tidak
"""
_TURNS = """
when whenever while condition least did was were had joke theorie teoria quand cuando quando hardly barely
scarcely rarely seldom almost nearly half less except unless if whether or but however though although
instead rather than maybe perhaps probably possibly might could would should must used once former formerly
previously ex until till before only just merely all every each always everything everyone anything anyone
any some few most much many too so such same stop stopped stops quit gave given up hate hates hated dislike
dislikes avoid avoids refuse refuses deny denies lack lacks fail fails forgot pretend pretends want wants
hope hopes wish wishes plan plans try tries tried say says said tell tells told claim claims think thinks
believe believes supposedly allegedly temporarily currently soon yet still anymore longer off out over away
back apart theory dream dreams mind training remission spirit name vain principle long provided unlike free
closed open available alone fake past
plus rien personne aucun aucune guere presque peu moins sauf sinon si ou mais pourtant quoique bien que peut
etre probablement pourrait devrait voudrait aimerait ancien ancienne autrefois avant jusqu jusque seulement
juste seul seule tout tous toute toutes chaque toujours trop arrete cesse deteste evite veut espere dit
dirait croit pense bientot encore reve reves passe
nada nadie ninguno ninguna tampoco apenas casi quase poco pouco menos excepto salvo se o pero sino mas
aunque embora quiza quizas talvez tal vez antes hasta ate solo somente todo todos toda todas siempre sempre
cada odia evita quiere dice ninguem nenhum suenos sonho sonhos
niente nulla nessuno quasi meno tranne eccetto oppure ma forse prima fino soltanto tutto tutti ogni vuole
sogno sogni
keinem keiner keines nichts niemand kaum fast selten weder ausser wenn falls ob oder aber sondern doch
vielleicht wohl ehemals fruher bis nur alle alles jede jeder jeden immer mehr auf ab aus weg vor los wurde
konnte sollte mochte hasst will sagt traum vergangenheit
niets zonder nauwelijks bijna behalve als maar misschien vroeger tot alleen altijd
ingen inget ingenting uden utan uten knapt nastan nesten undtagen om eller men kanske kanskje maske tidigare
indtil kun bara bare alltid altid
eivat kukaan koskaan ilman mutta ehka jos tai ennen asti
ani nigdy nic nikt bez prawie rzadko oprocz jesli albo lub ale moze kiedys do tylko zawsze
nikdy nikdo skoro malokdy krome pokud nebo mozna drive jen vzdy nije nikad nema osim ako ili
niciodata nimic nimeni fara aproape doar sau dar daca poate inainte pana
soha semmi senki nelkul alig kiveve vagy talan korabban csak mindig
degil hic asla yok olmadan haric ama fakat eger belki veya sadece
никогда ничего никто едва почти редко кроме если или но а хотя может раньше до только все всегда бы ли ні
ніколи нічого ніхто майже якщо або але тільки
ουτε ποτε τιποτα κανεις σχεδον εκτος αν η αλλα ισως πριν μεχρι μονο
אינו אינה אינם אינן אף מעולם כמעט בקושי רק אם או אבל אלא אולי לשעבר בעבר עד לפני פעם חוץ למעט כל תמיד כבר
עדיין במקום בתנאי שונא שונאת נמנע נמנעת הפסיק הפסיקה רוצה אומר אומרת חושב חושבת פחות יותר בלבד חלום
ليست ما دون ابدا الا او لكن اذا ربما قبل حتى فقط كل
न मत बिना कभी लेकिन या अगर शायद केवल सिर्फ
bukan tanpa jangan belum tapi atau jika mungkin hanya hapana bila lakini
"""
"""Words that negate, limit, weaken, report or end something, in many languages; without accents."""

_GOES_ON = "still currently presently עדיין 아직 여전히"
_GOES_ON_OR_MORE = """
immer_noch noch_immer noch weiterhin encore todavía aún ancora ainda nog_steeds nog fortfarande stadig
fortsatt vielä nadal wciąż jeszcze ještě всё_ещё все_еще ещё еще досі ще ακόμα ακόμη halen hâlâ अभी_भी
"""
"""Before "one" or a number these say "one more"."""
_ONE = r"(?!\s+(?:\d|(?:ein|une?|uno|una|uma?|een|ett|yksi|jed[ne]|один|одн|ένα|μία|bir)\w*))"
CONTINUING = re.compile(
    rf"\b(?:{_GOES_ON.replace(' ', '|')})(?!\w)\s*"
    rf"|\b(?:{'|'.join(_GOES_ON_OR_MORE.split()).replace('_', ' ')})(?!\w){_ONE}\s*"
    "|まだ|仍然|仍旧|依然|还",
    re.IGNORECASE,
)
"""Words that say of a state only that it goes on."""

_CONNECTORS = """
in at on with since called named near
dans avec depuis chez appelé appelée nommé nommée à au aux en
con desde llamado llamada com em chamado chamada da dal chiamato chiamata
mit seit namens im
ב עם בשם מאז ליד
"""
"""Words that may begin an addition of a place, time, companion or name, with accents: "à" is not "a"."""

CONNECTORS = frozenset(_CONNECTORS.split())
EXPLAINING = frozenset("who which whose because qui parce quien porque che perché weil כי".split())
"""Words that may begin a newer addition that explains who, what or why."""
AND = frozenset("and & et y e und ו".split())
DATED = frozenset("le el il am den".split())
"""Articles that stand before the day of a month."""


@cache
def negations() -> frozenset[str]:
    return frozenset(map(fold, _NEGATES.split()))


@cache
def turning_words() -> frozenset[str]:
    return negations() | frozenset(map(fold, _TURNS.split()))
