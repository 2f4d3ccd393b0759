"""A typical view: it writes a row and enqueues a job in one transaction."""

from __future__ import annotations

from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path

from benchmarks.jobs import resize_image


def upload(request: HttpRequest) -> HttpResponse:
    """Store an image and enqueue its resizing."""
    with transaction.atomic():
        image = ContentType.objects.create(app_label="gallery", model=request.POST["name"])
        receipt = resize_image.using(idempotency_key=f"image-{image.pk}").enqueue(image_id=image.pk)
    return HttpResponse(receipt.id)


urlpatterns = [path("", upload)]
