"""The jobs of a shop for the pictures, registered only by the tests that show them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from jobqueue import job
from jobqueue.handlers.registry import JobType, registry
from jobqueue.orders.job import TYPE


class Resize(BaseModel):
    image_id: int
    width: int = 800
    format: Literal["webp", "jpeg"] = "webp"


def resize_image(payload: Resize) -> dict[str, int]:
    return {"image_id": payload.image_id, "width": payload.width}


def send_welcome(user_id: int, language: str = "en") -> str:
    return f"{user_id} {language}"


def charge_card(order_id: int, amount: str, card_token: str) -> str:
    return f"{order_id} {amount} {len(card_token)}"


def send_receipt(order_id: int) -> int:
    return order_id


def import_catalogue(supplier: str, pages: int) -> str:
    return f"{supplier} {pages}"


def count_stock(warehouse: str) -> str:
    return warehouse


def register() -> None:
    """Make job types of them."""
    job(queue="images", priority=3, max_retries=5)(resize_image)
    job(queue="mail")(send_welcome)
    job(queue="payments", priority=2)(charge_card)
    job(queue="mail")(send_receipt)
    job(timeout=600)(import_catalogue)
    job(priority=7)(count_stock)


#: By type, the queue it goes to.
QUEUES = {
    "resize_image": "images",
    "send_welcome": "mail",
    "charge_card": "payments",
    "send_receipt": "mail",
    "import_catalogue": "default",
    "count_stock": "default",
}


def alone() -> dict[str, JobType]:
    """Return what is in the registry without the types of other tests."""
    return {TYPE: registry.get(TYPE)}
