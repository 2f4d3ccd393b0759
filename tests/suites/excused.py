"""The tests that cannot apply to this queue, with the reason. Each of the others must pass."""

from __future__ import annotations

CLASS = "asserts the class of the backend, which is another one here"
MEMORY = "changes a result in the dummy backend's list, where this queue has rows"
NO_RESULTS = "asserts that results cannot be read, which this queue can"
NO_DEFER = "asserts that run_after is refused, which this queue supports"
INTERRUPT = "asserts that KeyboardInterrupt ends the process that enqueued; a worker settles the task as failed"
DEFAULT = "asserts what django-tasks does without TASKS in the settings"
VIEW = "needs the views, the admin and the settings of that project"
ROWS = "writes or reads columns of the other's table"
IDS = "asserts UUIDs or configures how they are made; ids are ULIDs here"
PATHS = "asserts that a row's path is imported; here an unknown path stays queued, and nothing is imported"
PRUNING = "tests the other's command; here it is `jobqueue purge`, with tests of its own"
LOCKS = "tests how the other's queryset locks rows"
COMMAND = "asserts messages and options of db_worker; here it is `runworker`, with tests of its own"
APPS = "asserts the name of the other's app in the check; here two apps are needed"
MESSAGE = "asserts the words of json.dumps; here Django's normalize_json refuses the value, with others"
ORDER = "asserts the order of priorities 10, 2 and 0 without OPTIONS['priorities']"

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
    "DummyBackendTestCase.test_get_result_from_different_request": VIEW,
    "DummyBackendTestCase.test_meaning_of_life_view": VIEW,
    "ImmediateBackendTestCase.test_get_result_from_different_request": VIEW,
    "ImmediateBackendTestCase.test_meaning_of_life_view": VIEW,
    "AdminTestCase.*": ROWS,
    "CompatTestCase.*": "tests the other's choice between Django's tasks and the package",
    "ConnectionExclusiveTranscationTestCase.*": LOCKS,
    "DBTaskResultOrderingTestCase.*": ROWS,
    "DatabaseBackendPruneTaskResultsTestCase.*": PRUNING,
    "DatabaseTaskResultTestCase.test_lock_no_rows": LOCKS,
    "DatabaseTaskResultTestCase.test_locks_tasks_filtered_sqlite": LOCKS,
    "DatabaseTaskResultTestCase.test_locks_tasks_sqlite": LOCKS,
    "DatabaseBackendTestCase.test_custom_id_function": IDS,
    "DatabaseBackendTestCase.test_database_backend_app_missing": APPS,
    "DatabaseBackendTestCase.test_enqueue_task": IDS,
    "DatabaseBackendTestCase.test_enqueue_task_async": IDS,
    "DatabaseBackendTestCase.test_index_scan_for_ready": ROWS,
    "DatabaseBackendTestCase.test_invalid_task_path": PATHS,
    "DatabaseBackendTestCase.test_missing_task_path": PATHS,
    "DatabaseBackendTestCase.test_postgres_id_function_expression": IDS,
    "DatabaseBackendTestCase.test_priority_range_check": ROWS,
    "DatabaseBackendTestCase.test_refresh_result": ROWS,
    "DatabaseBackendTestCase.test_refresh_result_async": ROWS,
    "DatabaseBackendTestCase.test_task_name": ROWS,
    "DatabaseBackendTestCase.test_unknown_id_function": IDS,
    "DatabaseBackendWorkerTestCase.test_complex_return_value": MESSAGE,
    "DatabaseBackendWorkerTestCase.test_doesnt_process_different_backend": COMMAND,
    "DatabaseBackendWorkerTestCase.test_empty_worker_id": COMMAND,
    "DatabaseBackendWorkerTestCase.test_exclude_queues_requires_processing_all_queues": COMMAND,
    "DatabaseBackendWorkerTestCase.test_fractional_interval": COMMAND,
    "DatabaseBackendWorkerTestCase.test_incorrect_backend": COMMAND,
    "DatabaseBackendWorkerTestCase.test_infinite_interval": COMMAND,
    "DatabaseBackendWorkerTestCase.test_invalid_task_path": PATHS,
    "DatabaseBackendWorkerTestCase.test_max_tasks": COMMAND,
    "DatabaseBackendWorkerTestCase.test_missing_task_path": PATHS,
    "DatabaseBackendWorkerTestCase.test_negative_interval": COMMAND,
    "DatabaseBackendWorkerTestCase.test_negative_max_tasks": COMMAND,
    "DatabaseBackendWorkerTestCase.test_process_all_queues_excluding_one_queue": COMMAND,
    "DatabaseBackendWorkerTestCase.test_run_after_priority": ORDER,
    "DatabaseBackendWorkerTestCase.test_task_import_string": PATHS,
    "DatabaseBackendWorkerTestCase.test_too_long_worker_id": COMMAND,
    "DatabaseBackendWorkerTestCase.test_unknown_backend": COMMAND,
    "DatabaseBackendWorkerTestCase.test_verbose_logging": COMMAND,
    "DatabaseBackendWorkerTestCase.test_zero_interval": COMMAND,
    "DatabaseBackendWorkerTestCase.test_zero_max_tasks": COMMAND,
    "DjangoCompatTestCase.test_uses_lib_tasks_by_default": DEFAULT,
}


def reason_for(name):
    """Return why a test cannot apply, or ``None``."""
    return REASONS.get(name) or REASONS.get(f"{name.partition('.')[0]}.*")
