"""What the stand-in says, in each of its languages; one it does not know is answered in English."""

import re

from agent.offline.words import Language

PHRASES: dict[str, dict[str, str]] = {
    "en": {
        "greeting": "Hello{name}! Tell me something about you, or ask me what I remember.",
        "thanks": "You're welcome.",
        "goodbye": "See you soon{name}. I'll remember.",
        "well": "I'm well, thank you. What's new with you?",
        "who": "I'm the small rule-based stand-in for a language model: I remember what you tell me and "
               "repeat it "
        "when you ask. I also keep a list of what you have to do.",
        "cannot": "That is beyond me: I can only repeat what I was told. Tell me something to remember, or "
                  "ask me "
        "for it.",
        "listening": "I'm listening.",
        "as you wish": "As you wish.",
        "unclear": "I'm not sure I understood that. I can keep what you tell me (\"remember that …\") and "
                   "repeat it "
        "when you ask.",
        "nice": "Nice to meet you, {}.",
        "sorry": "I'm sorry to hear that.",
        "kept": "I'll remember: {}.",
        "known": "I knew that already: {}.",
        "changed": "I've noted the change: {}.",
        "dropped": "I did not keep that: {}.",
        "many": "That was a lot at once: I kept the first {}.",
        "found": "Here is what I remember: {}",
        "closest": "I don't know that for certain. The closest I remember: {}",
        "nothing": "I don't know that yet. If you tell me, I'll remember it.",
        "knowledge": "In {source} I found: {text}",
        "noted": "I've put that on your list: {}.",
        "finished": "Well done, that is off your list: {}.",
        "tasks": "Still on your list: {}",
        "free": "Nothing is on your list.",
        "failed": "That did not work: {}",
        "you said": "You told me: “{}”",
        "said": "{} said: “{}”",
    },
    "fr": {
        "greeting": "Bonjour{name} ! Parle-moi de toi, ou demande-moi ce que j'ai retenu.",
        "thanks": "Avec plaisir.",
        "goodbye": "À bientôt{name}. Je m'en souviendrai.",
        "well": "Je vais bien, merci. Quoi de neuf de ton côté ?",
        "who": "Je suis un petit remplaçant à base de règles, pas un vrai modèle de langage : je retiens ce "
               "que tu "
        "me dis et je le répète quand tu le demandes. Je tiens aussi la liste de ce que tu as à faire.",
        "cannot": "Cela me dépasse : je sais seulement répéter ce qu'on m'a dit. Dis-moi quelque chose à "
                  "retenir, "
        "ou demande-le-moi.",
        "listening": "Je t'écoute.",
        "as you wish": "Comme tu veux.",
        "unclear": "Je ne suis pas sûr d'avoir compris. Je peux retenir ce que tu me dis (« retiens que … "
                   "») et le "
        "répéter quand tu le demandes.",
        "nice": "Enchanté, {}.",
        "sorry": "J'en suis désolé.",
        "kept": "Je m'en souviendrai : {}.",
        "known": "Je le savais déjà : {}.",
        "changed": "J'ai noté le changement : {}.",
        "dropped": "Je n'ai pas gardé cela : {}.",
        "many": "Cela fait beaucoup d'un coup : j'ai gardé les {} premières choses.",
        "found": "Voici ce dont je me souviens : {}",
        "closest": "Je n'en suis pas certain. Ce qui s'en rapproche le plus : {}",
        "nothing": "Je ne le sais pas encore. Si tu me le dis, je m'en souviendrai.",
        "knowledge": "Dans {source}, j'ai trouvé : {text}",
        "noted": "C'est sur ta liste : {}.",
        "finished": "Bravo, c'est rayé de ta liste : {}.",
        "tasks": "Encore sur ta liste : {}",
        "free": "Il n'y a rien sur ta liste.",
        "failed": "Cela n'a pas marché : {}",
        "you said": "Tu m'as dit : « {} »",
        "said": "{} a dit : « {} »",
    },
    "he": {
        "greeting": "שלום{name}! אפשר לספר לי משהו, או לשאול מה אני זוכר.",
        "thanks": "בשמחה.",
        "goodbye": "להתראות{name}. אני אזכור.",
        "well": "הכול טוב, תודה. מה חדש אצלך?",
        "who": "אני תחליף קטן מבוסס כללים, לא מודל שפה אמיתי: אני זוכר מה שמספרים לי וחוזר על זה כששואלים. "
        "אני גם שומר רשימת משימות.",
        "cannot": "זה גדול עליי: אני יודע רק לחזור על מה שסיפרו לי. אפשר לספר לי משהו לזכור, או לשאול עליו.",
        "listening": "אני מקשיב.",
        "as you wish": "כרצונך.",
        "unclear": "לא בטוח שהבנתי. אפשר לבקש ממני לזכור (\"תזכור ש…\") ולשאול אחר כך.",
        "nice": "נעים להכיר, {}.",
        "sorry": "צר לי לשמוע.",
        "kept": "אני אזכור: {}.",
        "known": "כבר ידעתי: {}.",
        "changed": "רשמתי את השינוי: {}.",
        "dropped": "לא שמרתי את זה: {}.",
        "many": "זה הרבה בבת אחת: שמרתי את {} הדברים הראשונים.",
        "found": "זה מה שאני זוכר: {}",
        "closest": "אני לא בטוח. הכי קרוב שאני זוכר: {}",
        "nothing": "אני עוד לא יודע את זה. אם תספרו לי, אזכור.",
        "knowledge": "מצאתי ב־{source}: {text}",
        "noted": "זה ברשימה שלך: {}.",
        "finished": "כל הכבוד, זה ירד מהרשימה: {}.",
        "tasks": "עוד ברשימה שלך: {}",
        "free": "אין כלום ברשימה שלך.",
        "failed": "זה לא הצליח: {}",
        "you said": "אמרת לי: “{}”",
        "said": "{}: “{}”",
    },
    "es": {
        "greeting": "¡Hola{name}! Cuéntame algo de ti, o pregúntame qué recuerdo.",
        "thanks": "De nada.",
        "goodbye": "Hasta pronto{name}.",
        "kept": "Lo recordaré: {}.",
        "known": "Ya lo sabía: {}.",
        "changed": "He anotado el cambio: {}.",
        "dropped": "No he guardado eso: {}.",
        "found": "Esto es lo que recuerdo: {}",
        "closest": "No estoy seguro. Lo más parecido que recuerdo: {}",
        "nothing": "Todavía no lo sé. Si me lo cuentas, lo recordaré.",
        "knowledge": "En {source} he encontrado: {text}",
        "unclear": "No estoy seguro de haber entendido. Solo puedo recordar lo que me cuentas.",
        "failed": "Eso no ha funcionado: {}",
        "you said": "Me dijiste: «{}»",
        "said": "{} dijo: «{}»",
    },
    "de": {
        "greeting": "Hallo{name}! Erzähl mir etwas von dir, oder frag mich, woran ich mich erinnere.",
        "thanks": "Gern geschehen.",
        "goodbye": "Bis bald{name}.",
        "kept": "Das merke ich mir: {}.",
        "known": "Das wusste ich schon: {}.",
        "changed": "Ich habe die Änderung notiert: {}.",
        "dropped": "Das habe ich nicht behalten: {}.",
        "found": "Daran erinnere ich mich: {}",
        "closest": "Sicher weiß ich das nicht. Am nächsten kommt: {}",
        "nothing": "Das weiß ich noch nicht. Wenn du es mir erzählst, merke ich es mir.",
        "knowledge": "In {source} steht: {text}",
        "unclear": "Ich bin nicht sicher, ob ich das verstanden habe. Ich kann nur behalten, was du mir "
                   "erzählst.",
        "failed": "Das hat nicht geklappt: {}",
        "you said": "Du hast mir gesagt: „{}“",
        "said": "{} sagte: „{}“",
    },
}  # fmt: skip


PROFILE: dict[str, dict[str, str]] = {
    "en": {
        "name": "Your name is {}", "role": "Your job: {}", "lives in": "You live in {}",
        "level": "Your level: {}", "native language": "Your native language is {}",
        "time zone": "Your time zone is {}", "goals": "Your goals: {}",
    },
    "fr": {
        "name": "Tu t'appelles {}", "role": "Ton métier : {}", "lives in": "Tu habites à {}",
        "level": "Ton niveau : {}", "native language": "Ta langue maternelle : {}",
        "time zone": "Ton fuseau horaire : {}", "goals": "Tes objectifs, tes buts : {}",
    },
    "he": {
        "name": "השם שלך: {}", "role": "העבודה שלך: {}", "lives in": "העיר שבה אתם גרים: {}",
        "level": "הרמה שלך: {}", "native language": "שפת האם שלך: {}", "time zone": "אזור הזמן שלך: {}",
        "goals": "המטרות שלך: {}",
    },
}  # fmt: skip
"""What the profile says, told to the person; by its labels."""


def say(language: Language, key: str, *values: object, **named: object) -> str:
    """The phrase, in English where the language has none."""
    phrase = PHRASES.get(language, {}).get(key) or PHRASES["en"][key]
    return phrase.format(*values, **named)


def brief(language: Language, key: str, *values: object, **named: object) -> str:
    """Its first sentence, where the others only go on talking."""
    phrase = PHRASES.get(language, {}).get(key) or PHRASES["en"][key]
    first = re.match(r".+?[.!?](?=\s)", phrase)
    short = phrase if first is None or "{" in phrase[first.end() :] else first[0]
    return short.format(*values, **named)


def told_of_profile(language: Language, label: str, value: str) -> str:
    return PROFILE.get(language, PROFILE["en"])[label].format(value)


def is_own(text: str) -> bool:
    """Whether the stand-in itself said this: its replies are no evidence of anything."""
    openings = (phrase.split("{")[0].strip() for table in PHRASES.values() for phrase in table.values())
    return any(len(opening) > 7 and text.startswith(opening) for opening in openings)
