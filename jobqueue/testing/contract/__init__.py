"""The contract of ``backends.base``, sentence by sentence, as tests that any backend can run.

Subclass ``BackendContract`` in a test module of your own and give it a fixture ``make_backend`` that returns a function
from a clock (or ``None``) to an empty backend.
"""

from __future__ import annotations

from jobqueue.testing.contract.amending import AmendContract
from jobqueue.testing.contract.claiming import ClaimContract
from jobqueue.testing.contract.enqueueing import EnqueueContract
from jobqueue.testing.contract.finding import FindContract
from jobqueue.testing.contract.following import FollowContract
from jobqueue.testing.contract.grouping import GroupContract
from jobqueue.testing.contract.leases import LeaseContract
from jobqueue.testing.contract.metering import MeterContract
from jobqueue.testing.contract.operating import OperatorContract
from jobqueue.testing.contract.races import RaceContract
from jobqueue.testing.contract.registering import RegisterContract
from jobqueue.testing.contract.sampling import SampleContract
from jobqueue.testing.contract.settling import SettleContract
from jobqueue.testing.contract.waking import WakeContract
from jobqueue.testing.contract.watching import WatchContract


class BackendContract(
    EnqueueContract,
    ClaimContract,
    SettleContract,
    FollowContract,
    LeaseContract,
    WatchContract,
    RegisterContract,
    OperatorContract,
    AmendContract,
    FindContract,
    GroupContract,
    MeterContract,
    SampleContract,
    WakeContract,
    RaceContract,
):
    """Everything a backend promises."""


__all__ = ["BackendContract"]
