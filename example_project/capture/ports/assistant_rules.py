"""An assistant without a network, which knows phrases and always gives the same answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from example_project.capture.ports.assistant import Lesson, Oversight, Text

# Words around private data, which rules for shapes can't use.

_WORD = r"[A-ZÀ-Þ][\w'\u2019-]{1,30}"
_NAME = rf"(?P<private>{_WORD}(?: {_WORD}){{0,2}})"
_OVERLOOKED = (
    ("name", 0.9, rf"\b(?:[Mm]y name is|[Mm]ein Name ist|I am called|[Jj]e m'appelle) {_NAME}"),
    ("name", 0.7, rf"^(?:Dear|Hi|Hello|Hallo|Lieber?) {_NAME}(?=[,!])"),
    ("name", 0.7, rf"\b(?:[Rr]egards|[Cc]heers|[Gg]rüße|Yours),?\n{{1,2}}{_NAME}$"),
    (
        "birthday",
        0.8,
        r"\b(?:born|birthday|geboren)(?: is| on|:){0,2} (?P<private>(?:[0-9]{1,4}[./-]){2}[0-9]{1,4})",
    ),
    ("address", 0.8, rf"\b(?P<private>[0-9]{{1,4}} (?:{_WORD} ){{1,3}}(?:Street|Road|Avenue|Lane|Drive|Square))\b"),
    ("email", 0.9, r"\b(?P<private>[\w.+-]{1,64} (?:at|[\[(]at[\])]) [\w-]{1,63} (?:dot|[\[(]dot[\])]) [a-z]{2,10})\b"),
    ("social security number", 0.8, r"(?<![\w-])(?P<private>[0-9]{3}-[0-9]{2}-[0-9]{4})(?![\w-])"),
)
_PATTERNS = [(category, confidence, re.compile(shape, re.MULTILINE)) for category, confidence, shape in _OVERLOOKED]
_IBAN = re.compile(r"(?<!\w)(?P<private>[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30})(?!\w)")

# Signs of a lesson, by category, with their confidence.

_CUES = (
    ("decision", 0.75, r"\b(?:we|I) (?:have )?(?:decided|chose|agreed|settled)\b|\blet's (?:go with|use)\b"),
    ("solution", 0.75, r"\b(?:fixed (?:it |this )?by|solved by|the fix (?:is|was)|works? (?:again )?(?:after|once))\b"),
    ("pitfall", 0.7, r"\b(?:the (?:cause|reason|problem) (?:is|was)|fails? (?:when|because|if)|beware|never)\b"),
    ("convention", 0.6, r"\b(?:always|by convention|prefer|make sure)\b"),
)
_LESSONS = [(category, confidence, re.compile(cue, re.IGNORECASE)) for category, confidence, cue in _CUES]
_REASON = re.compile(r"\b(?:because|since|so that|otherwise)\b", re.IGNORECASE)
_DOUBT = re.compile(r"\b(?:maybe|perhaps|might|I think|not sure|probably)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|\Z)){1,600}+[.!?]?")
_TAG = re.compile(r"`([\w./-]{2,40})`|\b([A-Z][a-z]+[A-Z]\w{1,30}|[A-Z]{3,10})\b")
_DEMAND = re.compile(r"\b(?:must|shall|should|needs? to|has to|have to)\b", re.IGNORECASE)
_SHORTEST, _LONGEST = 25, 500


class RuleAssistant:
    """The assistant at ``rules:``."""

    def __init__(self, _endpoint: str) -> None:
        pass

    def validate(self, texts: Sequence[Text]) -> list[Oversight]:
        """Return names, birthdays and the like by their context, and account numbers by their check digits."""
        return [found for text in texts for found in _overlooked(text)]

    def extract(self, texts: Sequence[Text], categories: Sequence[str]) -> list[Lesson]:
        """Return the sentences that state a decision, a solution, a pitfall or a convention."""
        lessons: dict[str, Lesson] = {}
        for text in texts:
            for sentence in _sentences(text.content):
                lesson = _lesson(sentence, text) if _SHORTEST <= len(sentence) <= _LONGEST else None
                if lesson and lesson.category in categories:
                    lessons.setdefault(lesson.content, lesson)
        return list(lessons.values())

    def complete(self, prompt: str) -> str:
        """Return the sentences of a prompt that demand something."""
        demands = [sentence for sentence in _sentences(prompt) if _DEMAND.search(sentence)]
        return "\n".join(f"- {demand}" for demand in demands) or "- nothing is demanded"


def _overlooked(text: Text) -> Iterator[Oversight]:
    for category, confidence, pattern in _PATTERNS:
        for match in pattern.finditer(text.content):
            yield Oversight(text.id, category, confidence, match["private"])
    for match in _IBAN.finditer(text.content):
        if _is_iban(match["private"].replace(" ", "")):
            yield Oversight(text.id, "bank account", 1.0, match["private"])


def _is_iban(text: str) -> bool:
    return int("".join(str(int(letter, 36)) for letter in text[4:] + text[:4])) % 97 == 1


def _sentences(content: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(content):
        yield " ".join(match[0].split()).lstrip("-*>#• ")


def _lesson(sentence: str, text: Text) -> Lesson | None:
    for category, confidence, cue in _LESSONS:
        if cue.search(sentence):
            tags = tuple(Counter(one or other for one, other in _TAG.findall(sentence)))[:8]
            return Lesson(
                category=category,
                title=_title(sentence),
                content=sentence,
                confidence=_judged(confidence, sentence, tags),
                tags=tags,
                source_message_ids=(text.id,),
            )
    return None


def _judged(confidence: float, sentence: str, tags: Sequence[str]) -> float:
    """Return the confidence: higher for sentences with reasons or names, lower for those with doubts."""
    confidence += 0.15 * bool(_REASON.search(sentence)) + 0.05 * bool(tags) - 0.3 * bool(_DOUBT.search(sentence))
    return round(min(max(confidence, 0.0), 0.99), 2)


def _title(sentence: str) -> str:
    words = sentence.rstrip(".!?").split()
    return " ".join(words[:12])[:100] + (" …" if len(words) > 12 else "")
