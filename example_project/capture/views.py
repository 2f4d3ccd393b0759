"""The capture view, which a hook posts to. It answers at once; everything slow is a job."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, JsonResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST
from pydantic import ValidationError

from example_project.capture.capturing import Contradiction, capture
from example_project.capture.events import MAX_BODY_BYTES, Event, problems


# There is no session to forge, and pages of other sites can't post JSON without a preflight request. If a token is
# set, the sender must know it. sensitive_variables keeps raw text out of error reports, and the JSON body keeps it
# out of their list of form data.
@csrf_exempt
@require_POST
@sensitive_variables()
def capture_event(request: HttpRequest) -> JsonResponse:
    """Capture one event. Answers 202 with the result, 200 if it was captured before, or 4xx with the reason."""
    if not _may_capture(request):
        return _refusal(401, "A token is needed: send the header Authorization: Bearer TOKEN.")
    if request.headers.get("Transfer-Encoding") and not request.headers.get("Content-Length"):
        return _refusal(411, "The event is sent in chunks: send it whole, with the header Content-Length.")
    if request.content_type != "application/json":
        return _refusal(415, "An event is JSON: send the header Content-Type: application/json.")
    if _is_too_large(request):
        return _refusal(413, f"The event is larger than {MAX_BODY_BYTES:,} bytes.")
    try:
        event = Event.model_validate_json(request.body)
    except ValidationError as error:
        return _refusal(400, "The event is not valid.", details=problems(error))
    try:
        captured = capture(event)
    except Contradiction:
        return _refusal(409, f"Conversation {event.conversation_id} was captured with other messages.")
    body = {"conversation_id": captured.conversation_id, "created": captured.created}
    if captured.created:
        body |= {"job_id": captured.job_id, "removed": captured.removed}
    return JsonResponse(body, status=202 if captured.created else 200)


def _may_capture(request: HttpRequest) -> bool:
    token: str = settings.CAPTURE["TOKEN"]
    return not token or constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {token}")


def _is_too_large(request: HttpRequest) -> bool:
    try:
        return len(request.body) > MAX_BODY_BYTES
    except RequestDataTooBig:  # from Django's own limit, DATA_UPLOAD_MAX_MEMORY_SIZE
        return True


def _refusal(status: int, error: str, **more: object) -> JsonResponse:
    return JsonResponse({"error": error, **more}, status=status)
