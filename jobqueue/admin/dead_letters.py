"""The dead letters in the admin: jobs given up, to be retried or purged."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from jobqueue import conf
from jobqueue.admin.filters import CreatedFilter, QueueFilter, TypeFilter
from jobqueue.admin.jobs import ReadingJobs
from jobqueue.models import DeadLetter, Job


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadingJobs):
    """Dead letters alone."""

    actions = ("retry", "purge")
    list_filter = (TypeFilter, QueueFilter, CreatedFilter)
    list_display = ("named", "when", "tries", "shown_error", "queue", "tenant")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if self.has_view_permission(request) and self._is_a_job_again(request, unquote(object_id)):
            messages.info(request, gettext("This job is no longer a dead letter."))
            return HttpResponseRedirect(self._of_the_job("change", object_id))
        return super().change_view(request, object_id, form_url, extra_context)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        # What operators did is logged under the job, which stays when the dead letter is one no more.
        return HttpResponseRedirect(self._of_the_job("history", object_id))

    def _is_a_job_again(self, request: HttpRequest, job_id: str) -> bool:
        if "\0" in job_id or self.get_object(request, job_id) is not None:
            return False
        return Job.objects.using(conf.get("DATABASE")).filter(pk=job_id).exists()

    def _of_the_job(self, page: str, object_id: str) -> str:
        return reverse(f"admin:jobqueue_job_{page}", args=[object_id], current_app=self.admin_site.name)
