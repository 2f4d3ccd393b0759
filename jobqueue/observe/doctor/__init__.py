"""The doctor: what is set up wrong, or will cause trouble, each with a remedy and a page of the documentation.

``examine`` reads everything that is judged, and ``diagnoses`` judges it with a function for each diagnosis.
"""

from __future__ import annotations

from jobqueue.observe.doctor.diagnoses import diagnoses
from jobqueue.observe.doctor.diagnosis import Diagnosis
from jobqueue.observe.doctor.examination import Examination, examine

__all__ = ["Diagnosis", "Examination", "diagnoses", "examine"]
