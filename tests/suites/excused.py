"""The tests that cannot apply to this queue, with the reason. Each of the others must pass."""

from __future__ import annotations

CLASS = "asserts the class of the backend, which is another one here"
MEMORY = "changes a result in the dummy backend's list, where this queue has rows"
NO_RESULTS = "asserts that results cannot be read, which this queue can"
NO_DEFER = "asserts that run_after is refused, which this queue supports"
INTERRUPT = "asserts that KeyboardInterrupt ends the process that enqueued; a worker settles the task as failed"
DEFAULT = "asserts what django-tasks does without TASKS in the settings"

#: Reasons by class and test.
REASONS = {
    "TaskTestCase.test_using_correct_backend": CLASS,
    "TaskTestCase.test_get_backend": CLASS,
    "DummyBackendTestCase.test_using_correct_backend": CLASS,
    "ImmediateBackendTestCase.test_using_correct_backend": CLASS,
    "DummyBackendTestCase.test_refresh_result": MEMORY,
    "DummyBackendTestCase.test_refresh_result_async": MEMORY,
    "ImmediateBackendTestCase.test_cannot_get_result": NO_RESULTS,
    "ImmediateBackendTestCase.test_cannot_refresh_result": NO_RESULTS,
    "ImmediateBackendTestCase.test_cannot_pass_run_after": NO_DEFER,
    "ImmediateBackendTestCase.test_throws_keyboard_interrupt": INTERRUPT,
    "DjangoCompatTestCase.test_uses_lib_tasks_by_default": DEFAULT,
}
