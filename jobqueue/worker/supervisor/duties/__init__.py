"""The periodic duties of a worker, with a file for each. To add one, write a ``Duty`` and name it here."""

from __future__ import annotations

from jobqueue.worker.supervisor.duties.alerts import Alerts
from jobqueue.worker.supervisor.duties.duty import Duty
from jobqueue.worker.supervisor.duties.gauges import Gauges
from jobqueue.worker.supervisor.duties.heartbeat import Heartbeat
from jobqueue.worker.supervisor.duties.orphans import OrphanedHistory
from jobqueue.worker.supervisor.duties.prune import Prune
from jobqueue.worker.supervisor.duties.sample import Sample
from jobqueue.worker.supervisor.duties.schedules import DueSlots
from jobqueue.worker.supervisor.duties.sweep import Sweep
from jobqueue.worker.supervisor.duties.throttles import PastThrottles
from jobqueue.worker.supervisor.duties.upkeep import Upkeep

#: The duties, in the order in which they are done. The heartbeat is also done before a worker takes jobs.
DUTIES: tuple[type[Duty], ...] = (
    *(Heartbeat, DueSlots, Sweep, Gauges, Upkeep, Sample),
    *(Prune, OrphanedHistory, PastThrottles),
    Alerts,
)
