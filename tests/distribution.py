"""The distribution of tests among the processes of a run: by file, and at the end those that need the machine."""

from __future__ import annotations

import os

from xdist.scheduler import LoadScopeScheduling

#: Most tests wait for processes, leases and databases, so that one process of tests does not keep a core busy.
PROCESSES_PER_CORE = 2

#: Each has half a gigabyte, and connections to Postgres, whose default is room for 100.
MOST_PROCESSES = 8

#: How many minutes all tests take on two cores: shared out, and in one process.
MINUTES, MINUTES_OF_ONE = 9, 18

#: Folders whose tests are slow, and have a marker of the same name.
FAMILIES = ("browser", "faults", "simulation")

#: What takes the longest begins first, so that no process is still at work when all others have ended: what computes,
#: beside the tests of workers, which wait.
FIRST = (
    "tests/browser/test_pages.py",
    "tests/contract/test_machine.py",
    "tests/worker/",
    "tests/benchmarks/",
    "tests/simulation/",
    "tests/sql/floors/",
    "tests/demo/",
    "tests/faults/",
    "tests/documented/",
    "tests/attacks/",
    "tests/example/",
    "tests/relay/",
    "tests/browser/",
    "tests/sql/",
    "tests/admin/",
)

#: They break things under load, several at once: they have the machine to themselves, at the end.
ALONE = "tests/faults/test_faults.py"


def processes(arguments):
    """Say how many processes share the tests of these files and folders; 0 is pytest's own alone."""
    files = {argument.partition("::")[0] for argument in arguments}
    wanted = min(PROCESSES_PER_CORE * len(os.sched_getaffinity(0)), MOST_PROCESSES)
    if all(file.endswith(".py") for file in files):
        wanted = min(wanted, len(files))
    return wanted if wanted > 1 else 0


def header(number):
    """Say at the start of a run what it will take."""
    return (
        f"{number or 1} processes of tests; all tests take {MINUTES if number else MINUTES_OF_ONE} minutes on two cores"
    )


def turn(item):
    """Say when a test begins: the lower, the sooner."""
    if item.nodeid.startswith(ALONE):
        return len(FIRST) + 1
    return next((place for place, start in enumerate(FIRST) if item.nodeid.startswith(start)), len(FIRST))


def family(item):
    """Return the marker that the tests of a folder have, if they have one."""
    folder = item.nodeid.removeprefix("tests/").partition("/")[0]
    return folder if folder in FAMILIES else None


class Distribution(LoadScopeScheduling):
    """Gives the next file to the process that becomes free. A test that ends its process has failed."""

    def _split_scope(self, nodeid):
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node):
        if not self._waits(node):
            super()._assign_work_unit(node)

    def _reschedule(self, node):
        if node not in self.registered_collections:
            return  # it takes the place of one that ended, and does not know the tests yet
        if node.shutting_down or not self._waits(node):
            super()._reschedule(node)
            if not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
                self._reschedule(node)  # a process begins a test when it knows the next one, or that there is none
        elif any(not one.shutting_down for one in self.nodes if one is not node):
            node.shutdown()  # after the tests that it has; the last process goes on when all others have ended

    def _waits(self, node):
        """Say whether the next file wants to be alone, and is not yet."""
        return bool(self.workqueue) and next(iter(self.workqueue)).startswith(ALONE) and self.nodes != [node]

    def remove_node(self, node):
        """Forget a process that ended; return the test that it died of, which nobody runs again."""
        given = self.assigned_work.pop(node)
        left = [name for files in given.values() for name, is_done in files.items() if not is_done]
        if left:
            given[self._split_scope(left[0])][left[0]] = True
            self.workqueue.update({file: tests for file, tests in given.items() if not all(tests.values())})
        for other in self.nodes:
            self._reschedule(other)
        return left[0] if left else None
