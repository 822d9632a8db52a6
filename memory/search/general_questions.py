"""Recognises questions without a search term: "what did we talk about?", "what do you know about me?".

They resemble no memory. The newest statements answer them, or those from the time that they name.
"""

import re

from memory.text.names import fold

_EMPTY = frozenset(
    fold(word)
    for word in (
        # question words, pronouns and function words
        """what which who when where why how whats what's about of in on at to the a an any anything
        something everything all so and or but just again else more other there here then it this that
        these those things thing stuff topic topics subject subjects i me my mine myself we us our ours
        you your yours them they together is are was were be been do does did done have has had can
        could would will shall please tell give show summarize summarise summary recap list remind catch
        up bring hey hi hello ok okay hachi memory memories
        """
        # verbs of conversation
        """talk talked talking speak spoke spoken discuss discussed discussing discussion chat chatted
        chatting conversation conversations say said saying mention mentioned tell told know known learn
        learned learnt remember remembered recall happened happen happening going on been new news
        latest recent recently lately last time times earlier before previously past ago today yesterday
        tonight morning evening week weeks month months year years day days since
        """
        # French
        """que quoi qu quel quelle quels quelles qui quand où comment de du des d la le les l un une en
        dans sur à au aux a t il on nous je j tu te moi toi vous me m mon ma mes ton ta tes notre nos
        votre est ce c était été ont avons as ai avez avait s se sont y encore tout toute tous chose
        choses sujet sujets dit dire disait parlé parler parlait parle parlions discuté discuter
        conversation conversations sais sait savez souviens souvient souvenez rappelle rappeler raconte
        raconté dernièrement récemment dernier dernière derniers dernières fois hier aujourd hui semaine
        mois année jour jours passé passée avant il y quoi nouveau neuf résume résumé ensemble et
        """
        # Hebrew
        """מה מי מתי איפה איך על של את ה ב ל אני אתה אתם אנחנו לי לך לנו שלי שלך שלנו עלי עליי עליך היה היו
        יש עוד כל הכל דבר דברים נושא נושאים דיברנו דברנו דיברת דיברתי לדבר שוחחנו אמרתי אמרת אמרנו
        סיפרתי סיפרת יודע יודעת זוכר זוכרת זכור תזכיר תזכירי לאחרונה אתמול היום השבוע שבוע שעבר החודש
        חודש שנה פעם האחרונה קודם חדש קרה זה זאת זו הוא היא
        """
        # Spanish, German
        """qué que de sobre hablamos hablado hablar dijimos dije dijiste sabes recuerdas mí nosotros hemos
        ayer hoy semana pasada última vez últimamente was wovon worüber haben habe hast wir ich du mich
        mir uns über geredet gesprochen gesagt weißt erinnerst gestern heute letzte letzten woche mal
        zuletzt
        """
        # months and days of the week, which name a time and no topic
        """january february march april may june july august september october november december monday
        tuesday wednesday thursday friday saturday sunday janvier février mars avril mai juin juillet
        août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi samedi dimanche
        ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר
        """
    ).split()
)


def is_general(question: str) -> bool:
    """Whether the question has no word to search for. Unknown words are search terms, numbers are not."""
    words = re.findall(r"\w+", fold(question).replace("'", " ").replace("’", " "))
    return any(word in _EMPTY for word in words) and all(
        word in _EMPTY or word.isdigit() or len(word) == 1 for word in words
    )
