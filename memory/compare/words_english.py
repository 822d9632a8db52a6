"""English words for `memory.compare.vocabulary`. One group a line, `name: spelling, another spelling`."""

ARTICLES = "a an the his her their its he she they him them that which who it there very also just really"
WEAK = """
be: is are being am |
have: has having got |
of: of |
in: at |
on: on |
as: as |
isnamed: isnamed
"""
PREPOSITIONS = """
to from with without by for about into onto over under above below before after near behind beside between
against through across toward towards during until till since like than inside outside off up down out
around via despite
"""
NEGATIONS = "not no never n't nobody nothing neither nor none cannot without hardly barely"
STARTS_CLAUSE = "and but so because while since who which although though when whenever"
BECAUSE = "because since"
ADVERBS = """
often usually also still always really now regularly currently typically actually already generally
"""
DOUBTS = """
or if unless maybe perhaps probably possibly allegedly supposedly except instead pretends pretended formerly
"""
ALTERS = """
ex former late future almost nearly rarely seldom hardly lot want wants wanted would could might may should
must hope hopes hoped plan plans planned dream dreams dreamed try tries tried refuse refuses refused avoid
avoids avoided fail fails failed forgot forget forgets stop stops stopped quit wish wishes hate hates
dislikes think thinks thought say says said told tells believe believes heard suspects only all some few
less more fewer most any was were had will used going once until too again not no never without plus
"""
MODIFIES = """
half step great grand god fake toy stuffed imaginary student assistant deputy vice retired trainee aspiring
amateur oat almond soy soya coconut peanut bass guinea electric decaf herbal non-alcoholic vegan plastic ex
former late future
"""
RELATIONS = """
mother mom mum father dad parent parents brother sister sibling siblings son daughter child children kid
kids baby husband wife partner spouse fiancé fiancée fiance fiancee boyfriend girlfriend ex aunt uncle
cousin niece nephew grandmother grandfather grandma grandpa granny grandson granddaughter grandparents
friend neighbour neighbor boss manager colleague coworker roommate flatmate housemate landlord landlady
tenant teacher student doctor dentist stepmother stepfather stepson stepdaughter stepsister stepbrother
godmother godfather family in-law client
"""
NUMBERS = """
0 zero | 1 one | 2 two | 3 three | 4 four | 5 five | 6 six | 7 seven | 8 eight | 9 nine | 10 ten | 11 eleven
| 12 twelve | 13 thirteen | 14 fourteen | 15 fifteen | 16 sixteen | 17 seventeen | 18 eighteen | 19 nineteen
| 20 twenty | 30 thirty | 40 forty | 50 fifty | 60 sixty | 70 seventy | 80 eighty | 90 ninety | 100 hundred
| 1000 thousand | 1000000 million | ord1 first | ord2 second | ord3 third | ord4 fourth | ord5 fifth | ord6
sixth | ord7 seventh | ord8 eighth | ord9 ninth | ord10 tenth
"""
MONTHS = """
january jan | february feb | march mar | april apr | may | june jun | july jul | august aug | september sep
sept | october oct | november nov | december dec
"""
WEEKDAYS = """
monday mon | tuesday tue | wednesday wed | thursday thu | friday fri | saturday sat | sunday sun
"""
SAME = """
like: like, love, enjoy, adore, be fond of, be keen on, be crazy about, be a fan of, be a big fan of,
 be fan of, have a soft spot for, be into, be really into
hate: hate, dislike, detest, loathe, can not stand, can not bear, do not like, do not enjoy, do not love,
 despise
fear: be afraid of, be scared of, fear, be frightened of, be terrified of, dread, be terrified by,
 be scared by, have a fear of, have a phobia of
!scare: scare, frighten, terrify
work: work, have a job, be employed, job be, job be being, profession be, occupation be, earn a living,
 make a living
live: live, reside, be living, home be, be based, make home, has lived, have lived, dwell
born: be born, was born, year of birth be, date of birth be, was born on, birthdate be, date of birth
birthday: birthday be, birthday fall, birthday
wake: wake up, get up, wake, be up, rise
bed: go to bed, go to sleep, turn in, bedtime be, fall asleep
allergic: be allergic to, have an allergy to, suffer from an allergy to, have a allergy to, allergic to,
 allergy be to, react badly to
vegetarian: be vegetarian, be a vegetarian, follow a vegetarian diet, eat vegetarian, eat no meat,
 do not eat meat, have a vegetarian diet, never eat meat, vegetarian
vegan: be vegan, be a vegan, follow a vegan diet, eat vegan, have a vegan diet, vegan
married: be married to, married to, husband be, wife be, spouse be
named: named, called, by the name of, go by the name of, whose name be
isnamed: be named, be called, name be
onlychild: be an only child, have no brother or sister, have no sibling, do not have any sibling,
 have no sister or brother, have neither brother nor sister, do not have any brother or sister
teetotal: do not drink alcohol, drink no alcohol, never drink alcohol, be teetotal, be a teetotaler,
 be a teetotaller, do not drink any alcohol, abstain from alcohol
nonsmoker: do not smoke, be a non-smoker, be a nonsmoker, never smoke
lefthanded: be left-handed, write with left hand, be a left-hander, be left handed
righthanded: be right-handed, write with right hand, be right handed
retired: be retired, be in retirement, no longer work
single: be single, be not in a relationship, have no partner
have: be the father of, be father of, be the mother of, be mother of, be a father of, be a mother of,
 be the parent of, be parent of, be a parent of
own: own, possess, be owner of, be the owner of
drive: drive, go by car, travel by car, commute by car
cycle: cycle, bike, ride a bike, go by bike, travel by bike, commute by bike, ride a bicycle,
 go by bicycle, take a bike, bicycle
walk: walk, go on foot
train: take the train, travel by train, go by train, ride the train, by train
bus: take the bus, travel by bus, go by bus, ride the bus, by bus
swim: swim, go swimming
jog: jog, go jogging
run: run, be a runner, go running, go for a run
hike: hike, go hiking
cook: cook, do the cooking
study: study, be studying, be a student of, major in
speak: speak, be a speaker of, be able to speak, know how to speak
learn: learn, be learning, take lesson in
relax: relax, unwind, wind down, chill out
small: small, little, tiny
big: big, large
firm: firm, company, business, office
film: film, movie
flat: flat, apartment
car: car, automobile
mum: mum, mom, mother
dad: dad, father
grandma: grandma, granny, grandmother
grandpa: grandpa, grandad, granddad, grandfather
bike: bike, bicycle
child: child, kid, children, kids
job: job, occupation, profession
begin: begin, start, commence
finish: finish, complete, end
buy: buy, purchase
whenever: whenever, every time, each time, when
every: every, each
daily: every day, daily, each day, per day
weekly: every week, weekly, each week, once a week, per week
everymorning: every morning, each morning, in the morning every day
atnight: at night, during the night
doctor: doctor, physician, gp
lawyer: lawyer, attorney
tv: tv, television
phone: phone, telephone
photo: photo, photograph, picture
switch: switch on, turn on, be switched on, be turned on, be switch on, be turn on
near: near, close to, not far from, next to, beside, nearby
cilantro: cilantro, coriander
colour: colour, color
favourite: favourite, favorite, preferred
neighbour: neighbour, neighbor
grey: grey, gray
ill: ill, sick, unwell
migraine: suffer from migraine, get migraine, have migraine, be prone to migraine
insomnia: suffer from insomnia, have insomnia, have trouble sleeping, sleep badly, have difficulty sleeping
diabetic: be diabetic, have diabetes, be a diabetic, suffer from diabetes
asthma: be asthmatic, have asthma, suffer from asthma
lactose: be lactose intolerant, be lactose-intolerant, can not digest lactose, can not tolerate lactose
coeliac: be coeliac, be celiac, have coeliac disease, have celiac disease
glasses: wear glasses, wear spectacles
prefer: prefer, would rather have, rather have
often: often, frequently, regularly
rarely: rarely, seldom
raised: grow up, grew up, was raised, spent childhood, be raised
collect: collect, have a collection of, be a collector of
volunteer: volunteer, do volunteer work, do voluntary work
holiday: holiday, vacation
doughnut: doughnut, donut
yoghurt: yoghurt, yogurt
pyjamas: pyjamas, pajamas
commute: commute, travel to work, go to work, get to work
"""
CHANGES = """
!ended: no longer, any more, anymore, any longer, give up on, give up, gave up on, gave up, gave up the,
 quit, stopped, has stopped, have stopped, passed away, has passed away, died, has died, has quit, stop,
 resigned from, has given up, has given up on, dropped out of
!moved: moved to, has moved to, have moved to, relocated to, has relocated to, now live in, live now in,
 live in now
!shifted: was postponed to, be postponed to, has been postponed to, was moved to, has been moved to,
 be now on, was rescheduled to, has been rescheduled to, was rescheduled for, has been rescheduled for,
 was postponed until, has been postponed until, was brought forward to, has been brought forward to,
 was put off until, be now at
!now: now
"""
STATES = """
like work live play drink eat smoke study learn train teach drive cycle run swim jog take have go hate own
vegetarian vegan fear date sing dance collect volunteer speak cook practise practice use wear attend hike
"""
COVERS = """
dog: beagle labrador retriever poodle terrier spaniel dachshund corgi collie husky bulldog greyhound puppy
 dalmatian pug boxer shepherd whippet chihuahua
cat: siamese tabby kitten persian tomcat ragdoll
pet: dog cat hamster rabbit parrot goldfish beagle labrador retriever guinea budgie canary tortoise ferret
 gecko
bird: parrot canary budgie cockatiel
child: son daughter boy girl
sibling: brother sister
medication: pill tablet insulin antibiotic antihistamine inhaler ibuprofen
nut: almond walnut cashew pistachio hazelnut
vegetable: tomato bean pumpkin carrot courgette potato onion cucumber pepper spinach leek cabbage
fruit: apple pear mango strawberry banana peach plum
instrument: piano guitar violin cello flute drum saxophone clarinet accordion trumpet
sport: football tennis basketball handball rugby volleyball badminton hockey
coffee: espresso cappuccino latte espressos
tree: apple oak pear plum cherry
bread: sourdough baguette focaccia
vehicle: car van truck motorbike motorcycle
language: french german spanish italian arabic hebrew russian japanese korean portuguese chinese
sometimes: weekday often daily every weekly
"""
PARTITIVES = """
cup cups glass glasses bottle bottles slice slices bowl bowls mug mugs pot pots plate plates pinch
"""
REGIONS = """
argentina australia austria belgium brazil bulgaria canada chile china colombia croatia cyprus denmark egypt
england estonia europe finland france germany ghana greece hungary iceland india indonesia iran iraq ireland
israel italy japan kenya korea latvia lebanon lithuania luxembourg malaysia mexico morocco netherlands
nigeria norway pakistan peru poland portugal romania russia scotland senegal serbia singapore slovakia
slovenia spain sweden switzerland syria taiwan thailand tunisia turkey ukraine vietnam wales africa asia
america usa us uk texas california florida bavaria provence catalonia tuscany brittany normandy galilee
andalusia sicily quebec ontario scandinavia alberta manitoba devon cornwall kent sussex surrey essex
yorkshire norfolk suffolk dorset somerset cumbria lancashire wiltshire oregon nevada utah colorado arizona
ohio michigan virginia georgia alabama alaska hawaii maine vermont massachusetts pennsylvania illinois
wisconsin minnesota iowa kansas montana saxony hesse tyrol piedmont lombardy umbria galicia valais victoria
queensland tasmania connacht munster ulster
"""
FEATURED = """
works plays eats drinks runs sleeps reads bakes walks drives cooks teaches wears takes keeps makes needs
knows goes grows sings swims gets wants visits supports collects studies speaks writes uses buys owns rides
practises paints every because year years old new today tomorrow yesterday morning evening and with from
does did this when smokes weighs longer stopped smoke weigh take teach keep dance practise train paint write
travel meet help call spend hold feel find send sleep wear start end love hate enjoy like collect attend
grow bake knit sew ski surf hike climb fish garden allergic scared afraid favourite favorite married born
moved doctor dentist meeting appointment birthday kids email phone address number password bought got went
made took saw met gave told came was had were house school their woman man people bank money
"""
