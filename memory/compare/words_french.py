"""French words for `memory.compare.vocabulary`. One group a line, `name: spelling, another spelling`."""

ARTICLES = """
le la les l' un une son sa ses leur leurs il elle lui ils elles se s' qui que qu' y très aussi ce cet cette
"""
WEAK = """
be: est sont être suis étant c'est |
have: a ont ai avoir |
of: de d' du des |
isnamed: isnamed |
in: en dans à au aux chez |
on: sur |
as: comme
"""
PREPOSITIONS = """
avec sans pour par vers contre avant après depuis pendant entre jusqu' jusque sous devant derrière malgré
dès lors near
"""
NEGATIONS = "pas jamais rien ni aucun aucune sans non personne ne n'"
STARTS_CLAUSE = "et mais car parce donc puisque alors tandis qui quand lorsque"
BECAUSE = "parce car puisque cause"
ADVERBS = """
souvent toujours aussi encore vraiment actuellement régulièrement déjà généralement habituellement
"""
DOUBTS = "ou si sauf hormis peut-être probablement prétend apparemment sinon"
ALTERS = """
ex ancien ancienne futur future feu presque rarement veut voudrait aimerait pourrait espère rêve essaie
essaye refuse évite oublie oublié arrête cesse cessé arrêté déteste pense dit croit doit devrait seulement
quelques moins plusieurs était avait étaient fut sera aura ira va projette pas jamais rien ni aucun aucune
sans non ne n' peu trop
"""
MODIFIES = """
demi beau belle faux fausse apprenti apprentie adjoint adjointe retraité retraitée ancien ancienne
"""
RELATIONS = """
mère maman père papa parents parent frère soeur sœur fils fille enfant enfants bébé mari femme époux épouse
conjoint compagnon compagne copain copine fiancé fiancée ex tante oncle cousin cousine nièce neveu
grand-mère grand-père mamie papi petit-fils petite-fille ami amie voisin voisine patron patronne chef
collègue colocataire propriétaire locataire professeur élève médecin dentiste jumeau jumelle beau-père
belle-mère beau-frère belle-soeur belle-sœur demi-frère demi-soeur demi-sœur parrain marraine famille
"""
NUMBERS = """
0 zéro | 2 deux | 3 trois | 4 quatre | 5 cinq | 6 six | 7 sept | 8 huit | 9 neuf | 10 dix | 11 onze | 12
douze | 13 treize | 14 quatorze | 15 quinze | 16 seize | 17 dix-sept | 18 dix-huit | 19 dix-neuf | 20 vingt
| 30 trente | 40 quarante | 50 cinquante | 60 soixante | 70 soixante-dix | 80 quatre-vingts | 90
quatre-vingt-dix | 100 cent | 1000 mille | ord1 premier première | ord2 deuxième | ord3 troisième | ord4
quatrième | ord5 cinquième | ord6 sixième
"""
MONTHS = """
janvier | février | mars | avril | mai | juin | juillet | août | septembre | octobre | novembre | décembre
"""
WEEKDAYS = "lundi | mardi | mercredi | jeudi | vendredi | samedi | dimanche"
SAME = """
like: aime, adore, supporte, apprécie, raffole de, raffole du, est fan de, est fan du, est amateur de,
 aime bien, aime beaucoup
hate: déteste, ne supporte pas, a horreur de, a horreur du, n' aime pas, ne aime pas, hait, exècre,
 ne aime pas du tout, n' aime pas du tout
fear: a peur de, a peur du, a peur des, craint, redoute, est effrayé par, est effrayée par,
 a la phobie des, a la phobie de
!scare: effraie, effraye, font peur à, fait peur à, terrifie
work: travaille, bosse, est employé, est employée, exerce, gagne sa vie, a un emploi, emploi est, métier est
be: exerce le métier de, exerce la profession de, travaille en tant que, a pour métier, est de métier,
 est de profession
live: habite, vit, réside, loge, demeure, est domicilié, est domiciliée, est installé, est installée
born: est né, est née, date de naissance est, naissance est, date de naissance, est né le, est née le
birthday: anniversaire est, fête anniversaire, anniversaire tombe, anniversaire, a anniversaire
wake: se lève, se réveille, lève, réveille, est debout
bed: se couche, va au lit, couche, va se coucher, va dormir
allergic: est allergique à, est allergique au, est allergique aux, souffre d' une allergie à,
 souffre d' une allergie au, souffre d' une allergie aux, a une allergie à, a une allergie au,
 a une allergie aux, fait une allergie à, fait une allergie au, fait une allergie aux, ne tolère pas,
 allergique à
vegetarian: est végétarien, est végétarienne, ne mange pas de viande, suit un régime végétarien,
 mange végétarien, ne mange jamais de viande, ne consomme pas de viande
vegan: est végane, est vegan, est végan, suit un régime végane, suit un régime végétalien, est végétalien,
 est végétalienne
married: est marié à, est mariée à, est marié avec, est mariée avec, mari est, femme est, a épousé
named: s'appelle, s' appelle, appelle, se nomme, se prénomme, s' appelant, nommé, nommée, appelé, appelée,
 prénommé, prénommée, du nom de, baptisé, baptisée
isnamed: nom est, est nommé, est nommée, prénom est
onlychild: est enfant unique, est fils unique, est fille unique, n' a pas de frère ni soeur,
 n' a ni frère ni soeur, n' a pas de frère et soeur, n' a ni frère ni sœur, n' a pas de frères et soeurs,
 n' a pas de frères et sœurs, n' a ni frères ni soeurs, n' a ni frères ni sœurs,
 n' a pas de frères ni de sœurs
teetotal: ne boit pas d' alcool, ne boit jamais d' alcool, ne consomme pas d' alcool
nonsmoker: ne fume pas, est non-fumeur, est non-fumeuse
lefthanded: est gaucher, est gauchère, écrit de la main gauche
retired: est à la retraite, est retraité, est retraitée, a pris sa retraite
have: est le père de, est la mère de, est père de, est mère de, est papa de, est maman de
possess: possède, détient, est propriétaire de, est propriétaire d'
go: va, se rend
drive: conduit, va en voiture, se déplace en voiture
cycle: va à vélo, va en vélo, se déplace à vélo, fait du vélo, roule à vélo, pédale, circule à vélo
train: prend le train, va en train, voyage en train, en train, se déplace en train
bus: prend le bus, va en bus, en bus
run: court, fait de la course à pied, fait du jogging, pratique la course à pied
swim: nage, fait de la natation, pratique la natation
knit: tricote, tricoter, tricot, fait du tricot
sing: chante, fait du chant
paint: peint, fait de la peinture
garden: jardine, jardiner, jardinage, fait du jardinage
cook: cuisine, fait la cuisine
hike: randonne, fait de la randonnée, fait des randonnées
relax: se détend, se détendre, se relaxe, se relaxer, détendre, détend, relaxer, relaxe
learn: apprend, prend des cours de, prend des leçons de, prend des cours d', suit des cours de, étudie
speak: parle, maîtrise
copain: copain, petit ami
copine: copine, petite amie
small: petit, petite, petits, petites
big: grand, grande, gros, grosse
firm: entreprise, société, compagnie
flat: appartement, appart
car: voiture, auto, bagnole
bike: vélo, bicyclette
soeur: soeur, sœur
maman: mère, maman
papa: père, papa
grandma: grand-mère, mamie, mémé
grandpa: grand-père, papi, pépé
child: enfant, gosse, gamin
doctor: médecin, docteur, toubib
begin: commence, débute
daily: chaque jour, tous les jours, par jour, quotidiennement
weekly: chaque semaine, toutes les semaines, par semaine
every: chaque, tous, toutes
everymorning: chaque matin, tous les matins, le matin
everyevening: chaque soir, tous les soirs, le soir
often: souvent, fréquemment
near: près, à côté, proche
favourite: préféré, préférée, favori, favorite
migraine: souffre de migraines, a des migraines, a souvent des migraines, est sujet aux migraines,
 est sujette aux migraines
insomnia: souffre d' insomnie, a du mal à dormir, dort mal, est insomniaque, fait des insomnies
diabetic: est diabétique, a du diabète, souffre de diabète
asthma: est asthmatique, a de l' asthme, souffre d' asthme
raised: a grandi, a passé enfance, a été élevé, a été élevée
football: foot, football
because: parce que, car, puisque
since: depuis
"""
CHANGES = """
!ended: a arrêté de, a arrêté le, a arrêté la, a arrêté les, a arrêté, a cessé de, a cessé, a quitté,
 a abandonné, a renoncé à, a renoncé au, est mort, est morte, est décédé, est décédée
!moved: a déménagé à, a déménagé, s' est installé à, s' est installée à, est installé désormais,
 habite désormais, vit désormais, habite maintenant, vit maintenant, est parti vivre à, est partie vivre à
!shifted: a été reporté au, a été reportée au, est reporté au, est reportée au, a été décalé au,
 a été décalée au, a été repoussé au, a été repoussée au, a été avancé au, a été avancée au,
 est repoussé au, est décalé au
!now: désormais, maintenant, dorénavant
"""
STATES = """
like work live hate fear play joue mange boit fume learn run swim knit sing paint cook hike drive cycle
prend have va fait vegetarian vegan regarde porte fréquente garden pratique possess
"""
COVERS = """
chien: labrador caniche épagneul teckel beagle berger bouledogue golden retriever chiot
légume: tomate courgette carotte poireau haricot chou oignon poivron
chat: siamois chaton persan chartreux
animal: chien chat hamster lapin perroquet tortue
enfant: fils fille garçon
child: fils fille garçon
alimentaire: crevette moule arachide noix lait oeuf œuf gluten poisson fruit
musique: piano guitare violon flûte batterie
instrument: piano guitare violon violoncelle flûte batterie saxophone accordéon
sport: foot football tennis natation judo handball rugby basket escalade
noix: amande noisette cajou pistache
parfois: weekday souvent every weekly daily
"""
PARTITIVES = """
tasse tasses verre verres bouteille bouteilles tranche tranches bol bols assiette assiettes pied pieds
"""
REGIONS = """
france belgique suisse allemagne italie espagne portugal angleterre irlande écosse canada québec maroc
algérie tunisie sénégal bretagne normandie provence alsace corse bourgogne auvergne occitanie europe afrique
asie amérique chine japon inde russie pologne grèce turquie suède norvège danemark finlande autriche
luxembourg brésil mexique argentine vietnam wallonie flandre dordogne charente gers morbihan finistère lot
var savoie ardèche lorraine picardie vendée bavière catalogne andalousie toscane israël liban
"""
FEATURED = """
est et une le les des du dans avec pour depuis chez sur chaque travaille joue mange boit court prend fait va
promène apprend parle porte vit aime adore a n' cultive tricote fête soir matin an ans année jour jours fume
fumer arrêté cessé quitté déménagé part écrit lit dort connaît l' d' qu' s' j'
"""
