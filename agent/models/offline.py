"""The stand-in for a language model: it answers when none is configured, and says so.

It quotes instead of parsing. What a person states is kept word for word through the `remember` tool; a
question is answered with what the search tools return, each with who said it and when. A turn runs the real
loop of the Agents SDK with the real tools. The model keeps no state between calls.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any

from agents import Model, ModelResponse, ModelSettings, Tool, TResponseInputItem, Usage
from agents.items import TResponseOutputItem, TResponseStreamEvent
from openai.types import responses

from agent.models import offline_reading as reading
from agent.models.offline_reading import Call, Quote, Sentence, Turn, content_words, pattern, share_found

NAME = "offline"
ROUNDS = 4
"""Rounds of tool calls in one turn, after which it answers with what it has."""
RECENT, MOST_LISTED, MOST_QUOTED = 50, 20, 3
LONGEST_QUOTE = 300
LONGEST_STATEMENT = 1_500
"""Characters of one fact. A longer message is a document, and stays in the transcript only."""


class OfflineModel(Model):
    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        """Tool calls, or the answer. Tokens are reported as zero: none are used."""
        items = [{"role": "user", "content": input}] if isinstance(input, str) else [dict(i) for i in input]
        output = _respond(system_instructions or "", items, {tool.name for tool in tools})
        return ModelResponse(output=output, usage=Usage(requests=1), response_id=None)

    async def stream_response(self, *arguments: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        """The same, the answer word by word and then whole."""
        output = (await self.get_response(*arguments, **named)).output
        text = "".join(getattr(part, "text", "") for item in output for part in getattr(item, "content", ()))
        delta = responses.ResponseTextDeltaEvent.model_construct
        for piece in re.findall(r"\s*\S+|\s+$", text):
            yield delta(type="response.output_text.delta", delta=piece)
        whole = responses.Response.model_construct(id=NAME, model=NAME, output=output)
        yield responses.ResponseCompletedEvent.model_construct(type="response.completed", response=whole)


def _respond(instructions: str, items: list[dict[str, Any]], tools: set[str]) -> list[TResponseOutputItem]:
    """New tool calls while the turn needs any, then the answer as JSON."""
    turn = reading.read_turn(instructions, items)
    calls = [call for call in dict.fromkeys(_needed(turn)) if call not in turn.results and call.name in tools]
    if calls and turn.rounds < ROUNDS:
        ids = (f"offline_{number}" for number in count(len(turn.results)))
        made = [{"type": "function_call", "call_id": next(ids), **call._asdict()} for call in calls]
        return [responses.ResponseFunctionToolCall.model_validate(call) for call in made]
    left = [] if any(call.name == "remember" for call in turn.results) else _memories(turn)
    answer: dict[str, Any] = {"message": _message(turn), "memories": left}
    if asked := turn.of_kind("forget"):
        answer["forget"] = [reading.named_to_forget(sentence.text) for sentence in asked]
    text = json.dumps(answer, ensure_ascii=False)
    content = [{"type": "output_text", "text": text, "annotations": []}]
    about = {"id": "offline_answer", "type": "message", "role": "assistant", "status": "completed"}
    return [responses.ResponseOutputMessage.model_validate(about | {"content": content})]


def _needed(turn: Turn) -> Iterator[Call]:
    """Every call that this turn needs, as far as the results tell, with those already made."""
    yield from (Call.of("remember", **memory) for memory in _memories(turn))
    yield from (call for sentence in turn.sentences if (call := _task_call(turn, sentence)))
    if turn.of_kind("list_tasks") or turn.of_kind("list_memories"):
        yield Call.of("get_recent_memories", limit=RECENT)
    for question in turn.of_kind("question"):
        search = Call.of("search_memories", query=question.text if content_words(question.text) else "")
        yield from (search, Call.of("get_recent_memories", limit=RECENT))
        if search in turn.results and content_words(question.text) and not _answers(turn, question.text):
            yield Call.of("search_knowledge", query=question.text)


def _told(turn: Turn) -> str:
    return " ".join(s.text for s in turn.of_kind("statement") if not _finished(turn, s))


def _memories(turn: Turn) -> list[dict[str, Any]]:
    """The fact to remember. In a shared place it names who said it: others' facts stand beside it."""
    told = _told(turn)
    if not told or len(told) > LONGEST_STATEMENT:
        return []
    content = f"{turn.speaker} said: “{told}”" if turn.shared else told
    tags = [turn.speaker.lower()] if turn.speaker else []
    return [{"content": content, "subjects": tags, "ttl": None, "type": "fact", "importance": 0.6}]


def _task_call(turn: Turn, sentence: Sentence) -> Call | None:
    if sentence.kind == "add_task" and sentence.text:
        due = {"due": sentence.due.isoformat()} if sentence.due else {}
        return Call.of("update_task", id=None, description=sentence.text, status="open", **due)
    if found := _finished(turn, sentence):
        return Call.of("update_task", id=found[0], description=found[1], status="done")
    return None


def _finished(turn: Turn, sentence: Sentence) -> tuple[str | None, str] | None:
    """(id, description) of the task that a sentence says is done. "I've called the dentist" must have all the
    words of exactly one open task and no others; "done" alone means the reminder before it."""
    if sentence.kind == "finish_task":
        said = sentence.text or turn.reminded_of
        return (None, said) if said else None
    done = reading.deed(sentence.text) if sentence.kind == "statement" else ""
    meant = [one for one in turn.tasks.items() if share_found(one[1], done) == share_found(done, one[1]) == 1]
    return meant[0] if len(meant) == 1 else None


def _message(turn: Turn) -> str:
    if danger := turn.of_kind("danger"):
        return str(reading.phrases()["danger_answers"][danger[0].language])
    parts = {_said_to(turn, sentence): sentence.kind for sentence in turn.sentences}
    small_talk = ("greeting", "thanks", "goodbye", "remark")
    telling = [part for part, kind in parts.items() if kind not in small_talk]
    return "\n".join(telling) or next(iter(parts), _phrase("remark"))


def _phrase(key: str) -> str:
    return str(reading.phrases()["answers"][key])


def _said_to(turn: Turn, sentence: Sentence) -> str:
    if sentence.kind in ("add_task", "finish_task") or _finished(turn, sentence):
        return _task_answer(turn, sentence)
    if sentence.kind == "question":
        return _answer(turn, sentence.text)
    listed = {"statement": _noted, "list_tasks": _listed_tasks, "list_memories": _listed_memories}
    if answer := listed.get(sentence.kind):
        return answer(turn)
    now = f"{turn.now:%A}, {turn.now.day} {turn.now:%B %Y, %H:%M}"
    name = f", {turn.name}" if turn.name else ""
    return _phrase(sentence.kind).replace("{name}", name).replace("{now}", now)


def _noted(turn: Turn) -> str:
    """What became of the statements."""
    told = _told(turn)
    if len(told) > LONGEST_STATEMENT:
        return _phrase("too_long")
    outcome = next((turn.results[call] for call in turn.results if call.name == "remember"), {})
    action, name = outcome.get("action"), reading.stated_name(told)
    if "error" in outcome:
        return f"I could not keep that: {_cut(outcome['error'])}"
    if action == "ignore" and not outcome.get("id"):
        return f"I did not keep that: {_cut(outcome.get('reason'))}."
    replaced = ", in place of what you told me before" if action == "replace" else ""
    kept = f"I'll remember, in your words: “{_cut(told)}”{replaced}"
    met = f"Nice to meet you, {name}. " if name else ""
    return met + ("I know that already." if action == "ignore" else kept)


def _task_answer(turn: Turn, sentence: Sentence) -> str:
    call = _task_call(turn, sentence)
    if call is None:
        adding = sentence.kind == "add_task"
        return _phrase("no_task") if adding else f"Which task is done? {_listed_tasks(turn)}"
    result = turn.results.get(call, {"error": "the list of tasks cannot be reached"})
    if "error" in result:
        return f"That did not work: {_cut(result['error'])}"
    return f"{'Done' if result.get('status') == 'done' else 'On your list'}: {_task_line(result)}."


def _task_line(task: dict[str, Any]) -> str:
    due = datetime.fromisoformat(task["due"]) if task.get("due") and task.get("status") != "done" else None
    when = f", due {due:%A} {due.day} {due:%B %Y, %H:%M}" if due else ""
    return f"“{task.get('description')}”{when}"


def _listed_tasks(turn: Turn) -> str:
    tasks = turn.returned("open_tasks") or [{"description": task} for task in turn.tasks.values()]
    return _listed("Your open tasks:", map(_task_line, tasks)) or "Nothing is on your list."


def _listed(heading: str, lines: Iterable[str]) -> str:
    """The lines as a list below the heading; empty without lines."""
    listed = [f"- {line}" for line in lines]
    return "\n".join([heading, *listed]) if listed else ""


def _listed_memories(turn: Turn) -> str:
    quotes = _known(turn)[:MOST_LISTED]
    lines = [_shown(turn, quote) for quote in quotes]
    if turn.name and not any(turn.name in quote.text for quote in quotes):
        lines.append(f"Your name: {turn.name}")
    return _listed("Here is what I remember, newest first:", lines) or _phrase("nothing_yet")


def _answer(turn: Turn, question: str) -> str:
    if quotes := _answers(turn, question):
        sure = not content_words(question) or max(share_found(question, q.text) for q in quotes) >= 0.75
        lines = [_shown(turn, quote) for quote in quotes]
        if len(lines) == 1:
            return lines[0] if sure else f"The closest I found: {lines[0]}"
        return _listed("Newest first:" if sure else "The closest I found, newest first:", lines)
    if share_found(question, _told(turn)) >= 0.5:
        return _phrase("just_told")
    for chunk in turn.returned("chunks"):
        if found := reading.passage(question, str(chunk.get("text", ""))):
            return f"In {chunk.get('source')}: “{_cut(found)}”"
    if broken := next((result["error"] for result in turn.results.values() if "error" in result), None):
        return f"I could not look that up: {_cut(broken)}"
    return _phrase("nothing" if content_words(question) else "cannot")


def _answers(turn: Turn, question: str) -> list[Quote]:
    """The quotations that share the telling words of the question, newest first, each with its corrections.
    "What happened to me?" has no such words and is about the newest."""
    known = _known(turn)
    if not content_words(question):
        return known[:MOST_QUOTED] if pattern("newest").search(question) else []
    scores = [share_found(question, quote.text) for quote in known]
    least = max(0.4, 0.8 * max(scores, default=0.0))
    chosen = [at for at, score in enumerate(scores) if score >= least]
    if pattern("about_oneself").search(question):  # "where do I live?" is not about "my sister lives in Rome"
        named = re.escape(turn.name or turn.speaker)
        own = re.compile(rf"{pattern('oneself').pattern}|\b{named}\b", re.I)
        chosen = [at for at in chosen if own.search(known[at].text)] or chosen
    found = set(chosen[:MOST_QUOTED])
    for at in range(len(known) - 1, 0, -1):
        corrects = pattern("correction").match(known[at - 1].text) and known[at - 1].said_at
        found |= {at - 1} if at in found and corrects else set()
    return [known[at] for at in sorted(found)][: 2 * MOST_QUOTED]


def _known(turn: Turn) -> list[Quote]:
    """All there is to quote, newest first, nothing twice; facts of the prompt come last in their day."""
    found = list(turn.quotes)
    for hit in (*turn.returned("memories"), *turn.returned("newest")):
        at, *lines = hit if isinstance(hit, list) else [hit["at"]]
        said_at = datetime.strptime(at, "%a %d %b %Y %H:%M").replace(tzinfo=turn.now.tzinfo)
        if isinstance(hit, dict) and hit["kind"] == "memory":
            quote = reading.read_quote(str(hit["content"]), said_at, turn.speaker)
            teller = hit.get("told_by", "")
            found.append(quote if quote.author or teller == turn.speaker else replace(quote, author=teller))
        for line in lines:
            author, _, said = str(line).partition(": ")
            if author.casefold() != "hachi" and not author.startswith(("~", "…")):
                author = author if turn.shared and author != turn.speaker else ""
                found += [Quote(stated, said_at, author) for stated in reading.statements(said)]
    found.sort(key=lambda quote: quote.said_at or turn.now, reverse=True)
    known = {Quote(_told(turn)).key: Quote("")}  # what is said in this very message answers nothing
    for quote in found:
        known.setdefault(quote.key, quote)
    return [quote for quote in known.values() if quote.text]


def _shown(turn: Turn, quote: Quote) -> str:
    """ "You told me on 10 January: “…”"."""
    who = quote.author or (turn.speaker if turn.shared else "You")
    if quote.said_at is None:
        return f"{who} told me: “{_cut(quote.text)}”"
    day = quote.said_at.astimezone(turn.now.tzinfo)
    year = f" {day.year}" if day.year != turn.now.year else ""
    return f"{who} told me on {day.day} {day:%B}{year}: “{_cut(quote.text)}”"


def _cut(text: object) -> str:
    flat = " ".join(str(text).split())
    return flat if len(flat) <= LONGEST_QUOTE else f"{flat[:LONGEST_QUOTE].rstrip()} …"
