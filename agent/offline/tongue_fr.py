"""The tables for French."""

from agent.offline.tongue import NAME, Tongue, rule, table

FRENCH = Tongue(
    lead=rule(
        r"@?(?:(?P<correction>non|en fait|pardon|désolée?)|bonjour|salut|coucou|bonsoir|hachi|ok|oui|alors|"
        r"bon|ben|ah|oh|et|mais|au fait|merci)(?: hachi)?(?:[,!:.…–-]+\s*|\s+)(?=(?:je|mon|ma|mes|nous|on|"
        r"moi|en fait|qui|que|quoi|où|quand|comment|qu'|tu|rappelle|retiens|note|appelle)\b|j')"
    ),
    requests=table(
        ("greeting", r"(?:bonjour|salut|coucou|bonsoir|hello)(?:,? \w+){0,2}$"),
        ("thanks", r"merci\b.{0,40}$"),
        ("goodbye", r"(?:au revoir|bonne nuit|bonne journée|à bientôt|à demain|à plus|adieu)\b.{0,30}$"),
        ("well", r"(?:comment (?:ça va|vas-tu|tu vas|allez-vous)|ça va|quoi de neuf)\b.{0,20}$"),
        (
            "who",
            r"(?:qui|qu')\s?(?:es-tu|êtes-vous)|(?:tu es|t'es) (?:qui|quoi)|es-tu (?:un|une)\b|que (?:sais|"
            r"peux)-tu faire|comment t'appelles-tu|aide$",
        ),
        (
            "cannot",
            r"(?:peux-tu |tu peux )?(?:écris|écrire|traduis|traduire|calcule|calculer|dessine|chante|"
            r"explique|expliquer|résume|résumer|raconte-moi une (?:blague|histoire))\b",
        ),
        ("todo", r"(?:rappelle[- ]moi|n'oublie pas)(?P<when>(?: [\w-]+){0,3}?) (?:de |d')(?P<rest>.+)"),
        ("todo", r"(?:à faire|tâche|rappel)\s*:\s*(?P<rest>.+)"),
        ("todo", r"ajoute (?P<rest>.+?) à (?:ma|la) liste"),
        ("done", r"(?:marque|note) (?P<rest>.+?) comme (?:faite?|terminée?)$"),
        ("done", r"(?:fait|terminé)\s*:\s*(?P<rest>.+)"),
        (
            "remember",
            r"(?:souviens[- ]toi|retiens|note|n'oublie pas|rappelle[- ]toi)(?: bien)?(?: que |\s?: | "
            r"qu')(?P<rest>.+)",
        ),
        ("nickname", rf"(?:tu peux m'appeler|appelle-moi|on m'appelle) {NAME}"),
    ),
    question=rule(
        r"(?:qui|que|qu'|quoi|quels?|quelles?|où|quand|comment|pourquoi|combien|est-ce|lequel|"
        r"laquelle)(?:\b|(?<='))|(?:tu te souviens|te souviens-tu|tu sais|sais-tu|dis-moi|parle-moi|"
        r"rappelle-moi (?:qui|ce|où|quand))\b"
    ),
    statements=table(
        (
            "listening",
            r"(?:oui|non|d'accord|ok|super|génial|parfait|cool|bien|mdr|haha\w*|ah bon|tant mieux)(?: \w+)?$",
        ),
        (
            "listening",
            r"(?:je vais (?:très )?bien|ça va|je (?:ne )?sais pas|je (?:pense|crois|comprends|vois|"
            r"sais)\b.*|je (?:t'aime|te déteste)|je suis (?:là|désolée?|de retour))$",
        ),
        ("ask", r"j'aimerais savoir|je (?:veux|voudrais) savoir"),
        ("done?", r"j'ai (?:fini|terminé|déjà fait|fait) (?:de |d')?(?P<rest>.+)"),
        ("done", r"(?P<rest>.{1,80}?) (?:est|sont) (?:faite?s?|terminée?s?|finie?s?)$"),
        ("todo", r"(?:il faut que je|je dois|il me faut|j'ai besoin d[e']) ?(?P<rest>(?!dire\b|avouer\b).+)"),
        ("name", rf"(?:je m'appelle|mon (?:pré)?nom (?:est|c'est)|moi c'est|moi, c'est) {NAME}"),
        ("name", r"je suis (?-i:(?P<rest>[A-ZÀ-Ý][\w'-]+(?: [A-ZÀ-Ý][\w'-]+)?)$)"),
        ("self", r"(?:je |j'|mon |ma |mes )\S"),
        (
            "quote",
            r"(?:nous|on|notre|nos|moi)\b \S|(?:hier|demain|aujourd'hui|en|le|la|ce|cette|depuis|quand|"
            r"chaque)\b.{0,40}?\b(?:je |j'|mon |ma |mes )\S",
        ),
        (
            "other",
            r"(?-i:[A-ZÀ-Ý])[\w-]+ (?:ne |n'|s'|se |s'est )?(?:est|a|habite|vit|travaille|aime|adore|"
            r"déteste|était|fait|va|vient|étudie|parle|joue|appelle|préfère|cassé)\b",
        ),
    ),
    cut=rule(
        r"(?:,? (?:et|mais|donc)|,|;) (?=(?:je |j'|nous |(?P<whom>il|elle) )|(?:mon|ma|mes) (?:[\w'-]+ "
        r"){1,3}?(?:est|a|s'appelle|habite|vit|travaille|aime|sont)\b)"
    ),
    subordinate=rule(
        r"(?:quand|si|parce|comme|puisque|après|avant|hier|en|le|depuis|je (?:pense|crois|sais) que)\b"
    ),
)
