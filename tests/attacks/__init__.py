"""Attacks: data that tries to become markup, code or a command, to get in, or to stop a worker.

What each looks like, and where it is tried:

- HTML and scripts in every column an outsider can reach, on every page of the admin: ``test_markup``; a page under a
  strict policy for content: ``tests/admin/test_pages``.
- Terminal escapes, line ends and turned writing in the output of every command and in a worker's log; names that would
  be commands when pasted: ``test_terminals``.
- NUL, half surrogates, NaN, numbers of 5,000 digits, 100,000 levels and too many bytes at the door:
  ``tests/api/test_bad_input``; the same in rows that never came through the door: ``test_forged_rows``.
- Every hostile value in every column of every table, for workers with ordinary jobs behind: ``test_hostile_rows``; what
  chance makes of them, on every surface: ``test_foreign_surfaces``; rows that once stopped a worker, a relay or a
  process: ``test_stopping_rows``; all of it for hours: ``python -m tests.attacks``.
- Rows forged with SQL (status, counts, fence, lease, type, payload, bytes that are no text): ``test_forged_rows``;
  moments of any shape: ``tests/sql/test_foreign_rows``.
- Secrets in payloads, errors, local variables and connection strings, looked for wherever they could come out:
  ``test_secrets``; what counts as a secret: ``tests/unit/policy/test_redaction``.
- Every page and button by everyone who must not, and GET where only POST may act: ``test_rights``; one permission for
  each verb: ``tests/admin/actions/test_permissions``.
- SQL, paths, import paths and pickles as names and payloads: ``test_names``; no code that could run them:
  ``tests/test_house_rules``.
- Anything at all in addresses, forms, payloads and between the processes of a worker: ``test_fuzz``.
- Jobs that kill the process they run in: ``tests/worker/test_poison``.
"""
