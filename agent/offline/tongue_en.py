"""The tables for English."""

from agent.offline.tongue import NAME, Tongue, rule, table

_NATIONS = (
    "american australian austrian belgian brazilian british canadian chinese czech danish dutch egyptian "
    "english finnish french german greek hungarian indian irish israeli italian japanese jewish korean "
    "mexican moroccan norwegian polish portuguese romanian russian scottish spanish swedish swiss turkish "
    "ukrainian vegan vegetarian muslim christian catholic buddhist hindu gay".replace(" ", "|")
)

ENGLISH = Tongue(
    lead=rule(
        r"@?(?:(?P<correction>no(?:pe)?|actually|in fact|correction|sorry)|hi|hello|hey|hachi|hi there|"
        r"hello there|hey hachi|hi hachi|hello hachi|good morning|good evening|ok|okay|well|so|oh|yes|yeah|"
        r"by the way|btw|and|but|also|then|fyi|please|thanks|thank you)(?:[,!:.…–-]+\s*|\s+)(?=(?:i|i'm|"
        r"i've|my|we|our|actually|what|who|where|when|how|do|can|remember|remind|call|it's|mark|add|note|"
        r"please|sorry|hachi|by)\b|[A-Z][\w-]+ (?:is|has|was|lives)\b)"
    ),
    requests=table(
        ("greeting", r"(?:hi|hello|hey|yo|good (?:morning|afternoon|evening|day)|greetings)(?:,? \w+){0,2}$"),
        ("listening", r"(?:what an? (?:\w+ )?\w+|how (?:nice|lovely|sad|funny|cool))$"),
        ("thanks", r"(?:many )?(?:thanks|thank you|thx|cheers)\b.{0,40}$"),
        (
            "goodbye",
            r"(?:bye|goodbye|good ?night|see you|see ya|talk to you later|have a (?:nice|good))\b.{0,40}$",
        ),
        (
            "well",
            r"(?:how are you|how(?:'s| is) (?:it going|life)|how do you (?:feel|do)|what'?s up)\b.{0,20}$",
        ),
        (
            "who",
            r"(?:who|what) are you\b.{0,20}$|what can you do\b|what'?s your name$|what is your name$|help$",
        ),
        ("who", r"are you (?:an? |the )?(?:ai|bot|robot|human|person|model|machine|real)\b"),
        (
            "cannot",
            r"(?:please |(?:can|could|would|will) you (?:please )?)?(?:write|translate|calculate|compute|"
            r"draw|sing|explain|summari[sz]e|generate|book|order|google|search the web|tell me an? (?:joke|"
            r"story))\b",
        ),
        (
            "todo",
            r"(?:please |(?:can|could|would) you (?:please )?)?(?:remind me|don't let me forget)"
            r"(?P<when>(?: [\w:'-]+){0,5}?) to (?P<rest>.+)",
        ),
        ("todo", r"(?:please )?remind me (?:about|of) (?P<rest>(?!what|who|where|when|how).+)"),
        ("todo", r"(?:please )?(?:remember|don't forget) to (?P<rest>.+)"),
        ("todo", r"(?:to-?do|task|reminder)\s*[:-]\s*(?P<rest>.+)"),
        (
            "todo",
            r"(?:please )?(?:add|put) (?P<rest>.+?) (?:to|on) (?:my|the) (?:to-?do |task )?(?:list|tasks)$",
        ),
        ("done", r"(?:please )?(?:mark|set) (?P<rest>.+?) (?:as |to )?(?:done|completed?|finished)$"),
        ("done", r"(?:done|finished)\s*:\s*(?P<rest>.+)"),
        (
            "remember",
            r"(?:please |(?:can|could) you (?:please )?)?(?:remember|note|keep in mind|don't forget|make a "
            r"note|write down)(?: down)?(?: that\b|:)\s*(?P<rest>.+)",
        ),
        (
            "remember",
            r"(?:please )?(?:remember|note)[:,]? (?P<rest>(?!me\b|us\b|what|when|who|where|how|if\b|"
            r"to\b)\S.+)",
        ),
        ("nickname", rf"(?:(?:please|just|you can|but|everybody|people|my friends)\s)*calls? me {NAME}"),
    ),
    question=rule(
        r"(?:what(?:'s)?|who(?:'s|m|se)?|where(?:'s)?|why|how|which|when(?! (?:i|my|we)\b))\b|(?:do|does|"
        r"did|is|are|was|were|can|could|would|will|should|have|has|am)(?:n't)? (?:i|you|we|he|she|it|they|"
        r"my|your|his|her|their|the|there|this|that)\b|(?:tell me|remind me|list|show me|describe)\b"
    ),
    statements=table(
        (
            "listening",
            r"(?:ok(?:ay)?|yes|no|yeah|sure|great|nice|cool|wow|lol|haha\w*|good|fine|perfect|got it|never "
            r"?mind|maybe|exactly|right)(?: \w+)?$",
        ),
        (
            "listening",
            r"i(?:'m| am) (?:\w+ )?(?:fine|good|ok|okay|great|well|back|here|sorry|kidding|joking|not sure|"
            r"sure|done|listening|bored|curious|glad|happy to hear\b.*)$",
        ),
        (
            "listening",
            r"i (?:see|do|did|will|can|know|agree|am|have|guess|understand|remember|forgot|think so|hope so|"
            r"don't know|have no idea|don't care|didn't mean\b.*|can't believe\b.*)$",
        ),
        (
            "listening",
            r"i (?:\w+ )?(?:think|know|guess|mean|wonder|suppose|bet|hope|promise|apologi[sz]e|doubt|told|"
            r"asked|said|would like you|want you|need you|love you|hate you|like you|miss you)\b",
        ),
        ("ask", r"i(?:'d like| would like| want| need|'m trying| am trying) to (?:know|ask)\b"),
        (
            "done?",
            r"(?:i(?:'m| am|'ve| have)? )(?:just |already )?(?:finished|completed|done with|done|did) "
            r"(?P<rest>.+)",
        ),
        (
            "done",
            r"(?:the )?(?P<rest>(?!it\b|that\b|this\b|i\b|what\b).{1,80}?) (?:is|are) (?:all |now )?(?:done|"
            r"completed|finished)(?: now)?$",
        ),
        (
            "todo",
            r"i (?:really |still |also )?(?:(?:need|have|'ve got|ought) to|must) (?P<rest>(?!say\b|admit\b|"
            r"tell you|think\b|go now|be honest|have\b)\S.+)",
        ),
        ("name", rf"my (?:first |full |real )?name(?:'s| is) (?!not\b){NAME}"),
        ("name", rf"i(?:'m| am) (?:called|named) {NAME}"),
        ("name", rf"i(?:'m| am) (?!(?:{_NATIONS})\b)(?-i:(?P<rest>[A-ZÀ-Ý][\w'-]+(?: [A-ZÀ-Ý][\w'-]+)?)$)"),
        ("self", r"(?:i|i'm|i've|i'll|i'd|my)\b \S|i \S"),
        (
            "self",
            r"(?:on|in|at|last|next|this|every|yesterday|today|tonight|tomorrow|since|when|after|before|"
            r"during|as|one|two|three)\b[^,]{0,50}?,?\s(?:i|i'm|i've|i'll|my) \S",
        ),
        ("quote", r"(?:we|we're|we've|we'll|our|me and)\b \S"),
        (
            "other",
            r"(?:\w[\w'-]*(?: \w[\w'-]*){0,3}) (?:is|are) (?:really |actually |also )?(?:called|named|known "
            r"as) \S",
        ),
        (
            "other",
            r"the (?=.*(?:\d|monday|tuesday|wednesday|thursday|friday|saturday|sunday|password|passcode|"
            r"code|birthday|address|meeting|appointment|party|wedding|trip|flight|keys?)\b|.*\d).{1,60}? "
            r"(?:is|are|was|were|starts|leaves|takes place)\b",
        ),
    ),
    cut=rule(
        r"(?:,? (?:and|but|so)|,|;) (?=(?:i|i'm|i've|i'll|we|(?P<whom>he|she)|you can call me|call me)\b|"
        r"(?:my|our) (?:[\w'-]+ ){1,4}?(?:is|are|was|were|has|have|likes?|loves?|lives?|works?|broke|died|"
        r"plays?|studies|hates?|moved|wants?)\b)"
    ),
    subordinate=rule(
        r"(?:when|if|because|since|after|before|while|although|though|as|on|in|at|last|next|yesterday|today|"
        r"every|i (?:think|know|guess|hope|wonder)|todo|to-do|task|remind)\b"
    ),
)
