"""What people state for the companion in English, clause by clause; read by `agent.offline.stating`.

Rows are (key, value, pattern); without a value it is what the group "v" names. A pattern must fit the whole
clause, which `LEAD` and `TAIL` were taken off.
"""

_ANSWER = r"(?:answer|reply|respond|speak|talk|chat|continue|write back|write to me|text me)"
_ANSWERS = r"(?:answers|replies|responses|messages)"
_MY = r"(?:(?:with |to )?me|(?:all |any of )?my (?:questions|messages))"
_IN = r"(?:only |always )?in (?P<v>[^\W\d_]+)"
_LIKE = r"i(?:'d)? (?:would )?(?:prefer|like|love|want|rather have)"
_LISTS = r"(?:bullet ?points?|bullets|(?:bullet(?:ed)? )?lists)"

ENGLISH = (
    # How they want to be answered.
    ("language", "", rf"{_ANSWER}(?: {_MY})? {_IN}(?: {_MY})?"),
    ("language", "", r"speak (?:to me |with me )?(?P<v>[^\W\d_]+)(?: to me| with me)?"),
    ("language", "", r"switch (?:back )?to (?P<v>[^\W\d_]+)"),
    ("language", "", rf"let'?s (?:speak|talk|chat|continue|switch to)(?: {_IN}| (?P<w>[^\W\d_]+))"),
    ("language", "", rf"(?:{_LIKE}|i'd rather) (?:you to |that you |to be )?(?:{_ANSWER}(?:ed)?|"
     "{_ANSWERS}) {_IN}"),
    ("language", "", r"(?:i(?:'d)? (?:would )?prefer to|i'd rather) (?:speak|talk|chat)(?: in)? "
     r"(?P<v>[^\W\d_]+)"),
    ("language", "", rf"(?:i want|i'd like|i would like|i need) you to {_ANSWER}(?: {_MY})? {_IN}"),
    ("language", "", r"my preferred language is (?P<v>[^\W\d_]+)"),
    ("answer_length", "short",
     rf"(?:keep (?:it|things|(?:your|the) {_ANSWERS}) (?:very )?(?:short(?:er)?|brief|concise|"
     rf"to the point)|be (?:more |very )?(?:brief(?:er)?|concise|succinct|short(?:er)?)|(?:give me |use |"
     rf"{_LIKE} )?(?:short(?:er)?|brief(?:er)?|concise) {_ANSWERS}|shorter|answer (?:me )?(?:briefly|"
     rf"concisely|shortly|in (?:a )?few words)|your {_ANSWERS} are too long|(?:don't|do not) (?:write|"
     rf"talk|say) so much)"),
    ("answer_length", "long",
     rf"(?:be more (?:detailed|thorough|verbose|elaborate)|(?:in )?more details?|more detailed|"
     rf"(?:give me |{_LIKE} )?(?:more detailed|detailed|long|longer|thorough) {_ANSWERS}|(?:give|"
     rf"tell) me more details?|answer (?:me )?in (?:more |full |great )?detail|"
     rf"your {_ANSWERS} are too short)"),
    ("answer_length", "medium",
     rf"(?:give me |{_LIKE} )?(?:medium|medium[- ]length|normal[- ]length|average[- ]length) {_ANSWERS}|"
     rf"(?:make it )?not too short,? (?:and |but )?not too long"),
    ("tone", "casual",
     r"(?:be|sound|stay) (?:a bit |a little )?(?:more )?(?:casual|informal|relaxed)|(?:be|"
     r"sound) less formal|keep (?:it|things) (?:casual|informal|relaxed)|(?:talk|speak|"
     r"write)(?: to me)? (?:more )?(?:casually|informally)|(?:don't be|no need to be|you (?:don't have|"
     r"needn't) to be) (?:so |that |too )?formal|(?:use|i (?:prefer|like)) an? (?:casual|informal|"
     r"relaxed) (?:tone|style)"),
    ("tone", "formal",
     r"(?:be|sound|stay) (?:a bit |a little )?(?:more )?(?:formal|professional)|(?:be|sound) less casual|"
     r"keep (?:it|things) (?:formal|professional)|(?:talk|speak|write)(?: to me)? (?:more )?formally|"
     r"(?:don't be|do not be) (?:so |that |too )?(?:casual|informal)|(?:use|i (?:prefer|"
     r"like)) an? (?:formal|professional) (?:tone|style)"),
    ("prefers_bullets", "false",
     rf"(?:no(?: more)?|without|(?:don't|do not|stop) (?:use|using|give me|giving me|write|writing)|"
     rf"avoid|i (?:don't like|do not like|hate|dislike)) (?:any )?{_LISTS}"),
    ("prefers_bullets", "true",
     rf"(?:use|give me|i(?:'d| would)? prefer|i want|{_ANSWER}(?: me)? (?:with|in|using)|write (?:in|"
     rf"with)|format your {_ANSWERS} (?:as|in|with)) {_LISTS}"),
    ("code_examples", "none",
     r"(?:no(?: more)?|without|skip (?:the )?|leave out (?:the )?|(?:don't|do not) (?:give me|show me|"
     r"use|include)(?: any)?)\s?code(?: (?:examples?|samples?|snippets?))?"),
    ("code_examples", "simple",
     rf"(?:(?:give me|show me|use|{_LIKE}) )?(?:simple|short|basic|easy) code (?:examples|samples|"
     rf"snippets)|keep (?:the |your )?code (?:examples |samples )?(?:simple|short|basic)"),
    ("code_examples", "detailed",
     rf"(?:(?:give me|show me|use|{_LIKE}) )?(?:detailed|full|complete|long) code (?:examples|samples|"
     rf"snippets)"),
    # Who they are.
    ("name", "", r"my (?:first |full |real )?name(?:'s| is) (?P<v>.+)|i(?:'m| am) (?:called|named) "
     r"(?P<w>.+)|call me (?P<x>(?-i:[A-ZÀ-Ý])[\w'’-]+(?: (?-i:[A-ZÀ-Ý])[\w'’-]+)?)"),
    ("native_language", "",
     r"my (?:native|first|mother) (?:language|tongue) is (?P<v>[^\W\d_]+)|i(?:'m|"
     r" am) a native (?P<w>[^\W\d_]+) speaker|(?P<x>[^\W\d_]+) is my (?:native|first|mother) (?:language|"
     r"tongue)"),
    ("level", "beginner", r"(?:i(?:'m| am) (?:just |only )?an? (?:absolute |complete )?|my level is "
     r")beginner"),
    ("level", "intermediate", r"my level is intermediate"),
    ("level", "advanced", r"my level is advanced|i(?:'m| am) an advanced (?:learner|user)"),
    ("level", "expert", r"my level is expert"),
    ("location", "",
     r"i(?:'m| am)? (?:now |currently )?(?:live|living) in (?P<v>.+)|i(?:'m| am) based in (?P<w>.+)|"
     r"i(?:'ve| have)? (?:just |recently )?moved to (?P<x>.+)"),
    ("role", "",
     r"i(?:'m| am) (?:now |also )?an? (?P<v>.+)|i (?:now )?work as an? (?P<w>.+)|my (?:job|profession|"
     r"occupation) is (?:an? )?(?P<x>.+)"),
    ("timezone", "",
     r"my time ?zone(?:'s| is) (?P<v>.+)|i(?:'m| am) (?:in|on) (?:the )?(?P<w>.+) time(?: ?zone)?"),
    ("goals", "", r"my (?:main |big |current |new )?(?:goal|aim)(?: for (?:the |this |"
     r"next )?[a-z]+)?(?:'s| is) (?:to (?P<v>.+)|"
     r"(?P<w>\w+ing\b.*))"),
    ("goals", "", r"my (?:main |current )?goals are to (?P<list>.+)"),
)  # fmt: skip

LEAD = (
    r"hi|hello|hey|hachi|ok|okay|so|well|oh|yes|no(?=[,.!])|actually|also|and|but|by the way|btw|"
    r"good morning|thanks|please|just|kindly|you can|you may|feel free to|let me introduce myself|there"
)
POLITE = r"(?:can|could|would|will) you"
STANDING = r"from now on|in (?:the )?future|in general|generally|always|every time"
TAIL = (
    r"please|thanks|thank you|ok|okay|then|instead|again|hachi|now|too|as well|by the way|if possible|"
    r"with me"
)

REPORTED = (
    r"said|says|saying|told|tells|asked|asks|wrote|writes|shouted|replied|quote|imagine|suppose|pretend|"
    r"if(?! possible)|unless|in (?:the|my|a|this) (?:story|novel|dream|game|film|movie|book|play)|"
    r"character|used to"
)
"""Words of somebody else, or of what is not so: a sentence with one of these states nothing."""
ABOUT_A_TEXT = (
    r"rewrite|draft|translate|summari[sz]e|proofread|shorten|rephrase|paraphrase|compose|(?:write|make|"
    r"give|tell|explain|describe|generate|correct|edit|fix|improve|review)(?: me| us)? (?:this|that|it\b|"
    r"these|the|an?|my|some)|explain|describe|e-?mail|essay|letter|poem|article|paragraph|speech|cv|résumé"
)
"""A wish beside one of these is for that text alone."""
PASTE = r"translate|correct|proofread|rewrite|summari[sz]e|rephrase|paraphrase|edit|improve|fix|check|review"
"""A request that begins so may be followed by the text it is for."""

JOBS = (
    "accountant actor actress analyst anaesthetist animator apprentice archaeologist architect archivist "
    "artist astronaut astronomer athlete attorney author baker banker barber barista bartender biologist "
    "bookkeeper bookseller botanist brewer bricklayer broker builder butcher caregiver caretaker carpenter "
    "cartographer cashier chef chemist chiropractor choreographer cleaner clerk coach composer consultant "
    "contractor cook counsellor counselor courier curator dancer dentist designer detective developer "
    "dietitian director diver doctor driver economist editor electrician engineer entrepreneur farmer "
    "filmmaker firefighter fisherman florist freelancer gardener geographer geologist goldsmith guide "
    "hairdresser historian illustrator interpreter investigator jeweller jeweler joiner journalist judge "
    "juggler laborer labourer lawyer lecturer librarian linguist locksmith magician manager mason "
    "mathematician mechanic meteorologist midwife miner musician nanny neurologist novelist nurse "
    "nutritionist officer optician optometrist painter paramedic pastor pediatrician pharmacist "
    "philosopher photographer physician physicist physiotherapist pianist pilot plumber podiatrist poet "
    "policeman policewoman politician porter postman potter priest producer professor programmer "
    "psychiatrist psychologist psychotherapist rabbi radiologist realtor receptionist recruiter reporter "
    "researcher roofer sailor salesman saleswoman salesperson scientist sculptor secretary seamstress "
    "shepherd shopkeeper singer sociologist soldier statistician stockbroker stonemason student supervisor "
    "surgeon surveyor tailor teacher technician therapist trainer translator trucker tutor undertaker "
    "veterinarian vet violinist waiter waitress watchmaker weaver welder writer zoologist retiree "
    "pensioner administrator assistant planner tester sysadmin trader"
)
NOT_OF_A_JOB = (
    "not bad good great terrible lousy better big huge former ex would-be future failed such real true "
    "natural born lazy happy sad tired poor rich careful terrific excellent mediocre decent worse slow "
    "fast fellow secret"
)
NO_PLACE = (
    "a an the my our your his her their this that these those fear peace hope pain constant town here "
    "there denial sin luxury poverty hiding exile harmony one two three sync style with near on at where "
    "which what"
)
NO_NAME = (
    "not very too so hard important long short weird common difficult unusual rare on in the a an my your "
    "pronounced spelled written none nobody secret private irrelevant easy changing still also"
)
