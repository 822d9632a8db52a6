"""What people state for the companion in French; the same form as `agent.offline.stating_en`."""

_ANSWER = (
    r"(?:réponds|répondez|répondre|réponde|répondes|parle|parlez|parler|parles|écris|écrivez|"
    r"écrire)(?:[- ]moi)?"
)
_ANSWERS = r"(?:réponses|messages)"
_ME = r"(?:me |m')?"
_LIKE = r"(?:je (?:préfère|veux|voudrais|souhaite|souhaiterais)|j'(?:aime|aimerais|aime mieux|préfère))"
_LISTS = r"(?:listes?(?: à puces)?|puces|tirets)"

FRENCH = (
    ("language", "", rf"{_ME}{_ANSWER} (?:plutôt |toujours |désormais )?en (?P<v>[^\W\d_]+)"),
    ("language", "", r"parle(?:z)?(?:[- ]moi)? (?P<v>[^\W\d_]+)"),
    ("language", "", r"(?:parlons|continuons|discutons|passons|continue|passe|on (?:continue|passe))"
     r" (?:en |à l'|au )?(?P<v>[^\W\d_]+)"),
    ("language", "", rf"{_LIKE} (?:que tu |que vous |qu'on |des |tes |vos |les )?{_ME}(?:{_ANSWER}|parle|"
     rf"{_ANSWERS}) en (?P<v>[^\W\d_]+)"),
    ("answer_length", "short",
     rf"(?:sois|soyez|être) (?:plus |très )?(?:brefs?|brève|concise?|courte?)|(?:fais|faites|"
     rf"faire) (?:plus )?court|plus court(?:e|es|s)?|plus bref|{_ME}(?:réponds|répondez|"
     rf"répondre)(?:[- ]moi)? (?:plus )?(?:brièvement|court|en bref|en (?:peu de|quelques) mots)|"
     rf"(?:{_LIKE} )?(?:des |les |tes |vos )?{_ANSWERS} (?:plus )?(?:courtes|brèves|concises|courts|"
     rf"brefs)|(?:tes|vos) {_ANSWERS} sont trop (?:longues|longs)"),
    ("answer_length", "long",
     rf"(?:sois|soyez|être) plus (?:détaillée?|précise?|complète?)|plus (?:de détails|détaillée?|"
     rf"longue?)|(?:{_LIKE} )?(?:des |les |tes )?{_ANSWERS} (?:plus )?(?:longues|détaillées|complètes)|"
     rf"{_ME}(?:réponds|répondez|répondre)(?:[- ]moi)? (?:plus )?en détail|donne[- ]moi plus de détails|"
     rf"(?:tes|vos) {_ANSWERS} sont trop courtes"),
    ("answer_length", "medium", rf"(?:{_LIKE} )?(?:des |les )?{_ANSWERS} (?:de longueur )?moyennes?"),
    ("tone", "formal",
     r"(?:ne me (?:tutoie|tutoyez) pas|(?:vouvoie|vouvoyez)[- ]moi|(?:me |se )?vouvoyer|on se vouvoie|"
     r"vouvoyons-nous|(?:sois|soyez|être) (?:plus )?(?:formel(?:le)?|polie?|professionnel(?:le)?)|(?:un|"
     r"d'un) ton (?:plus )?formel)"),
    ("tone", "casual",
     r"(?:(?:tutoie|tutoyez)[- ]moi|(?:me |se )?tutoyer|on se tutoie|tutoyons-nous|ne me (?:vouvoie|"
     r"vouvoyez) pas|(?:sois|soyez|être) (?:plus )?(?:décontractée?|familière?|familier|informel(?:le)?|"
     r"cool)|(?:sois|soyez) moins formel(?:le)?)"),
    ("prefers_bullets", "false",
     rf"(?:pas de|plus de|sans|évite(?:z)?(?: les)?|arrête(?:z)? (?:les|avec les)|(?:n'utilise|"
     rf"n'utilisez|ne fais|ne faites) pas de|{_LIKE} pas les|je (?:n'aime pas|déteste) les) {_LISTS}"),
    ("prefers_bullets", "true",
     rf"(?:utilise(?:z)?|fais|faites|mets|{_LIKE}|{_ME}{_ANSWER} (?:avec|en|par|sous forme de)) (?:des |"
     rf"les |de )?(?:listes(?: à puces)?|puces|tirets|points)"),
    ("code_examples", "none",
     r"(?:pas de|sans|pas d'|plus de)\s?(?:exemples? de )?code|(?:pas d'|plus d'|sans )exemples? de code"),
    ("code_examples", "simple",
     rf"(?:(?:donne[- ]moi|montre[- ]moi|utilise|{_LIKE}) )?(?:des |les )?exemples de code (?:simples|"
     rf"courts|basiques)"),
    ("code_examples", "detailed",
     rf"(?:(?:donne[- ]moi|montre[- ]moi|utilise|{_LIKE}) )?(?:des |les )?exemples de code (?:détaillés|"
     rf"complets|longs)"),
    (
        "name",
        "",
        r"je m'appelle (?P<v>.+)|mon (?:pré)?nom (?:est|c'est) (?P<w>.+)|moi,? c'est (?P<x>.+)"
        r"|appelle[sz]?-moi (?P<y>(?-i:[A-ZÀ-Ý])[\w'’-]+)",
    ),
    ("native_language", "",
     r"ma langue (?:maternelle|natale) (?:est|c'est) (?:le |l'|la )?(?P<v>[^\W\d_]+)|(?:le |"
     r"l')(?P<w>[^\W\d_]+) est ma langue (?:maternelle|natale)"),
    ("level", "beginner", r"je suis (?:une? )?(?:grande? )?débutante?|mon niveau est débutant|je débute"),
    ("level", "intermediate", r"mon niveau est (?:intermédiaire|moyen)"),
    ("level", "advanced", r"mon niveau est avancé"),
    ("level", "expert", r"mon niveau est expert"),
    ("location", "",
     r"(?:j'habite|je vis|je réside|je suis basée?) (?:maintenant |actuellement )?(?P<v>(?:à|au|aux|en|"
     r"dans|sur) .+)|je viens de (?:déménager|m'installer) (?P<w>(?:à|au|aux|en) .+)|"
     r"j'ai déménagé (?P<x>(?:à|au|aux|en) .+)"),
    ("role", "",
     r"je suis (?:une? )?(?P<v>.+)|je travaille comme (?:une? )?(?P<w>.+)|(?:mon métier|"
     r"ma profession)(?: est|,? c'est) (?:une? )?(?P<x>.+)"),
    ("timezone", "", r"mon fuseau(?: horaire)? est (?P<v>.+)|je suis (?:dans|sur) le fuseau(?: horaire)? "
     r"(?:de )?(?P<w>.+)"),
    ("goals", "",
     r"mon (?:principal )?(?:objectif|but)(?: principal)?(?: est|,? c'est) (?:de |d')(?P<v>.+)"),
    ("goals", "", r"mes (?:objectifs|buts) sont (?:de |d')(?P<list>.+)"),
)  # fmt: skip

LEAD = (
    r"bonjour|salut|coucou|bonsoir|oui|non(?=[,.!…])|alors|bon|ben|en fait|et|mais|au fait|"
    r"s'il te pla[iî]t|s'il vous pla[iî]t|stp|svp|merci de|juste|d'accord"
)
POLITE = (
    r"peux-tu|peut-tu|tu peux|pourrais-tu|tu pourrais|pouvez-vous|vous pouvez|pourriez-vous|"
    r"est-ce que tu peux|on peut"
)
STANDING = r"désormais|dorénavant|à partir de maintenant|à l'avenir|toujours|en général"
TAIL = (
    r"s'il te pla[iî]t|s'il vous pla[iî]t|stp|svp|merci|d'accord|avec moi|maintenant|aussi|plutôt|"
    r"si possible|actuellement"
)

REPORTED = (
    r"dit|disait|disent|disant|dire|demande|demandait|raconte|écrit|imagine|imaginons|suppose|supposons|"
    r"si(?! possible)|dans (?:le|la|mon|ma|un|une|ce|cette) (?:roman|histoire|jeu|film|livre|rêve)|"
    r"personnage|citation"
)
ABOUT_A_TEXT = (
    r"traduis|traduire|traduisez|résume|résumer|corrige|corriger|réécris|reformule|rédige|rédiger|(?:écris|"
    r"écrire|fais|explique|raconte|donne|améliore)(?:[- ]moi)? (?:ce|cet|cette|ça|ces|un|une|le|la|mon|ma|"
    r"l')|explique|courriel|mail|lettre|poème|texte|paragraphe|rédaction|discours"
)
PASTE = r"traduis|traduisez|corrige|corrigez|réécris|reformule|résume|résumez|relis|vérifie|améliore"

JOBS = (
    "acteur actrice aide-soignant aide-soignante agriculteur agricultrice analyste animateur animatrice "
    "apprenti apprentie architecte artiste avocat avocate bibliothécaire biologiste boucher bouchère "
    "boulanger boulangère caissier caissière chanteur chanteuse charpentier chauffeur chef chercheur "
    "chercheuse chimiste chirurgien chirurgienne coach coiffeur coiffeuse comédien comédienne commerçant "
    "commerçante commercial commerciale comptable consultant consultante cuisinier cuisinière danseur "
    "danseuse dentiste designer développeur développeuse directeur directrice documentaliste écrivain "
    "écrivaine économiste éditeur éditrice éducateur éducatrice électricien électricienne enseignant "
    "enseignante entrepreneur entrepreneuse étudiant étudiante facteur factrice fleuriste géologue "
    "graphiste historien historienne illustrateur illustratrice infirmier infirmière informaticien "
    "informaticienne ingénieur ingénieure instituteur institutrice interprète jardinier jardinière "
    "journaliste juge juriste kiné kinésithérapeute libraire maçon magistrat maraîcher mathématicien "
    "mathématicienne mécanicien mécanicienne médecin menuisier menuisière militaire musicien musicienne "
    "notaire ouvrier ouvrière opticien opticienne orthophoniste paysan paysanne peintre pharmacien "
    "pharmacienne photographe physicien physicienne pilote plombier policier policière pompier postier "
    "professeur professeure prof programmeur programmeuse psychiatre psychologue retraité retraitée "
    "sage-femme scientifique secrétaire serrurier serveur serveuse sculpteur sociologue soldat styliste "
    "technicien technicienne traducteur traductrice vendeur vendeuse vétérinaire"
)
NOT_OF_A_JOB = (
    "pas bon bonne mauvais mauvaise grand grande ancien ancienne ex vrai vraie piètre futur future même"
)
NO_PLACE = (
    "un une des le la les mon ma mes son sa ce cette deux trois plein pleine peur couple colocation "
    "famille ville banlieue campagne appartement maison paix harmonie"
)
NO_NAME = "pas très trop un une le la les difficile compliqué rare long court important"
