"""What people state for the companion, in three languages, and what is no such statement."""

from datetime import UTC, datetime

import pytest

from agent.offline.upkeep import MOST_UPDATES, plain_updates

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Answer me in French", "language=French"),
        ("Please answer in French from now on.", "language=French"),
        ("Can you answer me in French?", "language=French"),
        ("Could you please always reply to me in Hebrew?", "language=Hebrew"),
        ("réponds en anglais", "language=English"),
        ("Réponds-moi en hébreu s'il te plaît", "language=Hebrew"),
        ("peux-tu me répondre en français ?", "language=French"),
        ("parle-moi français", "language=French"),
        ("תעני לי בעברית", "language=Hebrew"),
        ("דבר איתי בעברית", "language=Hebrew"),
        ("את יכולה לענות לי באנגלית?", "language=English"),
        ("keep it short", "answer_length=short"),
        ("Keep your answers short, please.", "answer_length=short"),
        ("be brief", "answer_length=short"),
        ("Be brief and use bullet points.", "answer_length=short; prefers_bullets=true"),
        ("plus court", "answer_length=short"),
        ("sois plus bref", "answer_length=short"),
        ("בקצרה", "answer_length=short"),
        ("תעני בקצרה בבקשה", "answer_length=short"),
        ("more detailed please", "answer_length=long"),
        ("be casual", "tone=casual"),
        ("Be more formal, please", "tone=formal"),
        ("tutoie-moi", "tone=casual"),
        ("vouvoie-moi", "tone=formal"),
        ("On peut se tutoyer ?", "tone=casual"),
        ("תהיי רשמית", "tone=formal"),
        ("use bullet points", "prefers_bullets=true"),
        ("no bullet points", "prefers_bullets=false"),
        ("pas de listes", "prefers_bullets=false"),
        ("בלי רשימות", "prefers_bullets=false"),
        ("no code examples", "code_examples=none"),
        ("simple code examples please", "code_examples=simple"),
        ("my name is Anna", "name=Anna"),
        (
            "My name is Anna and I live in Lyon, I'm a nurse. Answer me in French and keep it short.",
            "name=Anna; location=Lyon; role=nurse; language=French; answer_length=short",
        ),
        ("hi, my name is mickael and i live in new york", "name=Mickael; location=New York"),
        (
            "Je m'appelle Léa, j'habite à Lyon et je suis infirmière",
            "name=Léa; location=Lyon; role=infirmière",
        ),
        ("קוראים לי מיכאל ואני גר בחיפה", "name=מיכאל; location=חיפה"),
        ("אני גרה בתל אביב", "location=תל אביב"),
        ("I'm a software engineer in Berlin", "role=software engineer"),
        ("I work as a dog walker", "role=dog walker"),
        ("my native language is Hebrew", "native_language=Hebrew"),
        ("ma langue maternelle est l'anglais", "native_language=English"),
        ("שפת האם שלי היא עברית", "native_language=Hebrew"),
        ("My time zone is Europe/Paris", "timezone=Europe/Paris"),
        ("my time zone is UTC+2", "timezone=Etc/GMT-2"),
        ("I'm in the New York time zone", "timezone=America/New_York"),
        ("mon fuseau horaire est Europe/Paris", "timezone=Europe/Paris"),
        ("my goal is to learn Rust", "goals=learn Rust"),
        ("My goals are to learn Rust and run 10 km", "goals=learn Rust; goals=run 10 km"),
        ("mon objectif est d'apprendre l'hébreu", "goals=apprendre l'hébreu"),
        ("המטרה שלי היא ללמוד ראסט", "goals=ללמוד ראסט"),
        ("I'm a beginner", "level=beginner"),
        ("No, actually I live in Lyon now", "location=Lyon"),
        ("I moved to Lyon last month", "location=Lyon"),
        ("I moved to Lyon", "location=Lyon"),
        ("I live in Lyon, France with my family", "location=Lyon, France"),
        ("je préfère des réponses courtes", "answer_length=short"),
        ("I'd prefer short answers", "answer_length=short"),
        ("I don't speak English well, please answer me in French", "language=French"),
        ("אני מהנדס תוכנה", "role=מהנדס תוכנה"),
        ("Don't use lists", "prefers_bullets=false"),
        ("Speak French with me", "language=French"),
        ("Let's speak Hebrew", "language=Hebrew"),
        ("I would like you to answer in French", "language=French"),
        ("Hachi, from now on: keep it short", "answer_length=short"),
        ("Hi! How are you? Please answer me in French.", "language=French"),
        ("I live in the Netherlands", "location=Netherlands"),
        ("je vis aux États-Unis", "location=États-Unis"),
        ("Answer me in French. Where do I live?", "language=French"),
        ("From now on keep it short. Where do I live?", "answer_length=short"),
        ("Tu peux me tutoyer", "tone=casual"),
        ("Tu peux répondre en anglais si possible", "language=English"),
        ("Réponds toujours en français", "language=French"),
        ("Réponds-moi en anglais. Où est-ce que j'habite ?", "language=English"),
        ("Je m'appelle Léa et je préfère que tu me répondes en anglais.", "name=Léa; language=English"),
        ("J'habite au Canada depuis 2010", "location=Canada"),
        ("J'habite à Paris avec ma femme", "location=Paris"),
        ("Mon objectif est de courir un marathon demain", "goals=courir un marathon le 2026-11-23"),
        (
            "Mes objectifs sont d'apprendre Rust et de courir 10 km",
            "goals=apprendre Rust; goals=courir 10 km",
        ),
        ("Je travaille comme infirmière", "role=infirmière"),
        ("Je suis médecin généraliste", "role=médecin généraliste"),
        ("Sois formel", "tone=formal"),
        ("Réponds brièvement", "answer_length=short"),
        ("Fais court, s'il te plaît", "answer_length=short"),
        ("Utilise des listes", "prefers_bullets=true"),
        ("sans listes", "prefers_bullets=false"),
        ("Pas d'exemples de code", "code_examples=none"),
        ("je préfère des exemples de code simples", "code_examples=simple"),
        ("Je suis débutante", "level=beginner"),
        ("אני מעדיפה תשובות קצרות", "answer_length=short"),
        ("אני רוצה שתעני לי בצרפתית", "language=French"),
        ("אני רופאה", "role=רופאה"),
        ("אני אחות", "role=אחות"),
        ("אני עובדת כמורה", "role=מורה"),
        ("שמי דנה ואני גרה בירושלים", "name=דנה; location=ירושלים"),
        ("עברתי לחיפה", "location=חיפה"),
        ("אזור הזמן שלי הוא Asia/Jerusalem", "timezone=Asia/Jerusalem"),
        ("המטרות שלי הן ללמוד ראסט ולרוץ מרתון", "goals=ללמוד ראסט; goals=לרוץ מרתון"),
        ("מעכשיו תעני בקצרה", "answer_length=short"),
        ("בוא נדבר בעברית", "language=Hebrew"),
        ("תשתמשי בנקודות", "prefers_bullets=true"),
        ("דוגמאות קוד פשוטות", "code_examples=simple"),
        ("תהיה פחות רשמי", "tone=casual"),
        ("my name is mary ann", "name=Mary Ann"),
        ("My name is José, nice to meet you", "name=José"),
        ("I live in Tel Aviv", "location=Tel Aviv"),
        ("I live in Lyon but work in Geneva", "location=Lyon"),
        ("I'm living in Oslo", "location=Oslo"),
        ("I'm based in New York", "location=New York"),
        ("I've moved to Rome", "location=Rome"),
        ("my job is nurse", "role=nurse"),
        ("I'm a data scientist and mother of two", "role=data scientist"),
        ("I'm a student at MIT", "role=student"),
        ("Hachi, answer in French", "language=French"),
        ("Hey Hachi! Could you be a bit more formal?", "tone=formal"),
        ("You can be casual with me", "tone=casual"),
        ("No need to be formal", "tone=casual"),
        ("don't be so formal", "tone=casual"),
        ("I hate bullet points", "prefers_bullets=false"),
        ("I don't like lists", "prefers_bullets=false"),
        ("Give me detailed code examples", "code_examples=detailed"),
        ("Keep the code simple", "code_examples=simple"),
        ("normal length answers", "answer_length=medium"),
        ("I want you to reply in Spanish", "language=Spanish"),
        ("switch to German", "language=German"),
        ("Hebrew is my native language", "native_language=Hebrew"),
        ("I am a native French speaker", "native_language=French"),
        ("my timezone's Asia/Tokyo", "timezone=Asia/Tokyo"),
        ("my time zone is Paris", "timezone=Europe/Paris"),
        ("I'm on Paris time", "timezone=Europe/Paris"),
        ("My goal for this year is to run", "goals=run"),
        ("Please answer all my questions in French", "language=French"),
    ],
)
def test_what_is_stated_is_noted(text: str, expected: str) -> None:
    assert "; ".join(f"{key}={value}" for key, value in plain_updates(text, NOW)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "my brother answers in French",
        "she said keep it short",
        "She said: keep it short.",
        "write me a short poem",
        "make this shorter",
        "translate this into French",
        "Translate this into French: my name is Bob and I live in Oslo",
        "Translate this into French. My name is Bob. I live in Oslo.",
        "Do you answer in French?",
        "Can you speak French?",
        "Write me a poem. Keep it short.",
        "Answer this in French",
        "answer in French: what is the capital?",
        "My brother lives in Oslo",
        "my brother's name is Bob",
        "I live in fear",
        "I live in a small house",
        "i live in constant pain",
        "My name is not important",
        "my name is hard to pronounce",
        "I'm a bit tired",
        "I'm a terrible cook",
        "I'm a big fan",
        "If I were rich, I live in Rome",
        "I want to learn French",
        "My goal is not clear",
        "Should I keep it short?",
        "What is a monad? Be brief.",
        '"my name is Bob"',
        "> my name is Bob",
        "My boss told me: be formal",
        "For the email, be formal",
        "In the essay be formal",
        "I'm writing an essay, be formal",
        "Il parle français",
        "mon frère répond en anglais",
        "elle a dit réponds en anglais",
        "écris-moi un poème court",
        "traduis ça en anglais",
        "אחי עונה בצרפתית",
        "היא אמרה תעני בקצרה",
        "תכתבי לי שיר קצר",
        "תרגמי את זה לצרפתית",
        "אני גר בדירה קטנה",
        "אני אחות גדולה",
        "is my name Anna?",
        "I speak French",
        "We speak French at home",
        "My wife is a nurse",
        "I'm a nurse's daughter",
        "no short answers",
        "je suis fatiguée",
        "j'habite dans un appartement",
        "j'habite à la campagne",
        "give me a simple code example",
        "explain recursion, keep it short",
        "how do I say my name is Bob in French",
        "Imagine my name is Bob",
        "I'm in the office on time",
        "Keep it short. Where do I live?",
        "My name is Jean-Luc de la Tour",
        "My name is Bond in the game",
        "my name is a secret",
        "I'm an expert",
        "I live in the countryside",
        "I live in Paris in winter",
        "my job is boring",
        "I'm a single mother",
        "I'm a good doctor",
        "I used to live in Rome",
        "I don't live in Rome",
        "I live with my brother in Rome",
        "My sister said I live in Rome",
        "Anna: my name is Bob",
        "I love lists",
        "Speak up",
        "my preferred language is pt-BR",
        "My native tongue is Brazilian Portuguese",
        "My time zone is PST",
        "My goal isn't to win",
        "My goal is to not die",
        "keep it short this time",
        "answer this one in French",
        "just this once answer in French",
        "In French please",
        "Answer in French or English",
        "Answer my brother in French",
        "Please always answer in French when we talk about food",
        "Never answer in French",
        "Don't answer in French",
        "Stop answering in French",
        "Thanks, keep it short next time",
        "```\nmy name is Bob\n```",
        "Here is my letter:\n\nMy name is Bob. I live in Oslo.",
        "Summarize:\nMy name is Bob.",
        f"I live in {40 * 'Very '}Rome",
        "",
        "?",
        "My time zone is UTC+25",
        "and and and",
        "My goals are to not",
        f"I'm a nurse {60 * 'who works '}",
    ],
)
def test_what_is_none_of_it_changes_nothing(text: str) -> None:
    assert plain_updates(text, NOW) == []


def test_of_a_thing_that_is_one_the_last_word_holds() -> None:
    text = "My name is Ana. Sorry, my name is Anna. Answer me in French. No, answer me in Hebrew."
    assert plain_updates(text, NOW) == [("name", "Anna"), ("language", "Hebrew")]


def test_of_goals_each_is_noted_once() -> None:
    text = "My goal is to run. My goal is to swim. My goal is to run."
    assert plain_updates(text, NOW) == [("goals", "run"), ("goals", "swim")]


def test_what_stands_beside_a_statement_does_not_hide_it() -> None:
    text = "> old text\nI broke my arm, and my name is Anna. She said “be formal”. Thanks! Please be brief."
    assert plain_updates(text, NOW) == [("name", "Anna"), ("answer_length", "short")]


def test_a_wish_beside_a_text_is_for_that_text_and_what_is_pasted_is_nobody_s() -> None:
    assert plain_updates("I live in Rome. Translate this. My name is Bob.", NOW) == [("location", "Rome")]
    assert plain_updates("I need an email to my boss. Be formal.", NOW) == []
    assert plain_updates("Be formal. I need an email to my boss.", NOW) == []
    assert plain_updates("I need an email to my boss. From now on, be formal.", NOW) == [("tone", "formal")]


def test_a_day_in_a_goal_is_kept_as_a_date() -> None:
    assert plain_updates("My goal is to finish tomorrow", NOW) == [("goals", "finish on 2026-11-23")]
    last_day = datetime(9999, 12, 31, tzinfo=UTC)
    assert plain_updates("My goal is to finish tomorrow", last_day) == [("goals", "finish tomorrow")]


def test_of_very_many_statements_the_last_are_noted() -> None:
    text = " ".join(f"My goal is to read book {number}." for number in range(30))
    found = plain_updates(text, NOW)
    assert len(found) == MOST_UPDATES
    assert found[-1] == ("goals", "read book 29")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Call me Ana", "Ana"),
        ("appelle-moi Zoé", "Zoé"),
        ("תקרא לי דנה", "דנה"),
        ("call me Mary Ann", "Mary Ann"),
    ],
)
def test_what_somebody_wants_to_be_called_is_their_name(said: str, name: str) -> None:
    assert plain_updates(said, datetime(2026, 1, 1, tzinfo=UTC)) == [("name", name)]


@pytest.mark.parametrize("said", ["call me tomorrow", "please call me back", "Call me when you are there"])
def test_being_called_is_not_always_a_name(said: str) -> None:
    assert plain_updates(said, datetime(2026, 1, 1, tzinfo=UTC)) == []
