"""Derived text does not outlive its source.

Derived texts are the summaries of conversations, the summary of a person's facts, and the entries of a
person's profile. `withhold` removes those that rest on a message or a memory which no longer holds, and
stores the jobs that write them again. `sources` records what they rest on, and tells what they may be written
from.
"""

from memory.facts.derived.lost import SET_BY_HAND
from memory.facts.derived.sources import MEMORY_SUMMARY, memory_summary_id
from memory.facts.derived.withhold import HeldFacts, Withheld, withhold, withhold_lost

__all__ = [
    "MEMORY_SUMMARY",
    "SET_BY_HAND",
    "HeldFacts",
    "Withheld",
    "memory_summary_id",
    "withhold",
    "withhold_lost",
]
