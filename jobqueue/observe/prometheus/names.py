"""The queues and types that have series of their own. All others are folded into one that is called ``other``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jobqueue.observe.terminal_safe import one_line
from jobqueue.policy.stretches import Name
from jobqueue.records import MOST_GROUPS

OTHER = "other"
#: No name is longer, unless another program wrote it where the database has no limit.
_LONGEST = 100


def label(text: str) -> str:
    """Return a name as a label. Other programs may store control characters, and text that is not UTF-8."""
    return one_line(text).encode("utf-8", "replace").decode("utf-8")[:_LONGEST] or OTHER


@dataclass(frozen=True, slots=True)
class Names:
    """The queues, and the pairs of queue and type, with series of their own, and how many are folded.

    The kinds include one for each queue without types.
    """

    queues: frozenset[str]
    kinds: frozenset[Name]
    folded_queues: int
    folded_kinds: int

    @classmethod
    def of(cls, queues: Iterable[str], *several: Iterable[Name]) -> Names:
        """Choose among labels. The kinds that come first are chosen first, so that series don't come and go."""
        pairs = list(dict.fromkeys(one for kinds in several for one in sorted(set(kinds))))
        places = list(dict.fromkeys([*sorted(set(queues)), *(queue for queue, _type in pairs)]))
        shown = set(places[:MOST_GROUPS])
        if folded_queues := set(places) - shown - {OTHER}:
            shown.add(OTHER)
        named = [one for one in pairs if one[1] != OTHER]
        kinds = set([one for one in named if one[0] in shown][:MOST_GROUPS])
        folded_kinds = len(named) - len(kinds)
        kinds |= {(queue if queue in shown else OTHER, OTHER) for queue, kind in pairs if (queue, kind) not in kinds}
        kinds |= {(queue, OTHER) for queue in shown.difference(queue for queue, _type in kinds)}
        return cls(frozenset(shown), frozenset(kinds), len(folded_queues), folded_kinds)

    def queue(self, name: str) -> str:
        """Return the label under which a queue is shown."""
        found = label(name)
        return found if found in self.queues else OTHER

    def kind(self, queue: str, job_type: str) -> Name:
        """Return the labels under which a queue and type are shown."""
        found = label(queue), label(job_type)
        return found if found in self.kinds else (self.queue(queue), OTHER)
