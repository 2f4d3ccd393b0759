"""The contract of ``backends.base``, as tests that any backend can run.

Run ``pytest --jobqueue-backend dotted.path``. Or subclass ``BackendContract`` in a test module of yours, and give it a
fixture ``make_backend`` that returns a function. The function takes a clock, or ``None``, and returns an empty backend.
"""

from __future__ import annotations

from jobqueue.testing.contract.claiming import ClaimContract
from jobqueue.testing.contract.enqueueing import EnqueueContract
from jobqueue.testing.contract.fairness import TurnContract
from jobqueue.testing.contract.following import FollowContract
from jobqueue.testing.contract.lanes import LaneContract
from jobqueue.testing.contract.leases import LeaseContract
from jobqueue.testing.contract.limiting import LimitContract
from jobqueue.testing.contract.ports.alerting import AlertContract
from jobqueue.testing.contract.ports.counting import CounterContract
from jobqueue.testing.contract.ports.duties import DutyContract
from jobqueue.testing.contract.ports.gauging import GaugeContract
from jobqueue.testing.contract.ports.health import HealthContract
from jobqueue.testing.contract.ports.metering import MeterContract
from jobqueue.testing.contract.ports.operator.amending import AmendContract
from jobqueue.testing.contract.ports.operator.finding import FindContract, SearchContract
from jobqueue.testing.contract.ports.operator.grouping import GroupContract
from jobqueue.testing.contract.ports.operator.operating import OperatorContract
from jobqueue.testing.contract.ports.outstanding import OutstandingContract
from jobqueue.testing.contract.ports.registering import RegisterContract
from jobqueue.testing.contract.ports.retaining import RetentionContract
from jobqueue.testing.contract.ports.sampling import SampleContract
from jobqueue.testing.contract.ports.scheduling import ScheduleContract
from jobqueue.testing.contract.ports.storing import StorageContract
from jobqueue.testing.contract.races import RaceContract
from jobqueue.testing.contract.repeating import RepeatContract
from jobqueue.testing.contract.settling import SettleContract
from jobqueue.testing.contract.waking import WakeContract
from jobqueue.testing.contract.watching import WatchContract

#: Grows with each release that asks more of a backend, or asks something else.
VERSION = 1


class BackendContract(
    EnqueueContract,
    RepeatContract,
    ClaimContract,
    SettleContract,
    FollowContract,
    LeaseContract,
    WatchContract,
    RegisterContract,
    DutyContract,
    RetentionContract,
    OperatorContract,
    AmendContract,
    FindContract,
    SearchContract,
    GroupContract,
    MeterContract,
    CounterContract,
    SampleContract,
    StorageContract,
    HealthContract,
    OutstandingContract,
    GaugeContract,
    ScheduleContract,
    AlertContract,
    WakeContract,
    LaneContract,
    LimitContract,
    TurnContract,
    RaceContract,
):
    """All promises of a backend."""


__all__ = ["VERSION", "BackendContract"]
