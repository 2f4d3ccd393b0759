"""The shop's background jobs, found by autodiscovery. Short waits stand in for outside services."""

from __future__ import annotations

import asyncio
import os
import signal
from time import sleep

from pydantic import BaseModel

from example_project.shop.models import Card, Order, StockMovement
from jobqueue import Discard, Exponential, Fixed, JobContext, Snooze, job


class Resize(BaseModel):
    """An image, and its new width."""

    image_id: int
    width: int = 800


@job(queue="images", priority=3, max_retries=5, timeout=30, retry=Exponential(base=2, cap=600), retry_on=(OSError,))
def resize_image(payload: Resize, ctx: JobContext) -> dict[str, int]:
    """Make a smaller copy of an image."""
    sleep(0.05)
    return {"image_id": payload.image_id, "width": payload.width, "attempt": ctx.attempt}


@job
def send_welcome(user_id: int, language: str = "en") -> str:
    """Greet a new customer."""
    return f"welcome {user_id} ({language})"


@job(retry=Fixed(2), discard_on=(Order.DoesNotExist,))
def charge_card(ctx: JobContext, order_id: int) -> str:
    """Charge an order's card, and enqueue the receipt with the completion of the charge."""
    order = Order.objects.get(pk=order_id)
    sleep(0.08)
    if order.card == Card.DECLINED:
        raise Discard("the card was declined")
    if order.card == Card.SLOW and ctx.attempt == 1:
        raise TimeoutError("the payment provider did not answer")
    Order.objects.filter(pk=order_id).update(is_paid=True)
    ctx.enqueue(send_receipt, order_id=order_id)
    return f"charged {order.reference}"


@job
async def send_receipt(order_id: int) -> str:
    """Mail a receipt."""
    order = await Order.objects.aget(pk=order_id)
    await asyncio.sleep(0.05)
    return f"mailed to {order.customer}"


@job(atomic=True, timeout=10)
def book_stock(order_id: int) -> int:
    """Take an order from the shelf, exactly once, in one transaction with the job's completion."""
    return StockMovement.objects.create(order_id=order_id, quantity=-1).pk


@job(max_retries=2, retry=Fixed(1))
def ship_order(order_id: int) -> str:
    """Hand an order to the carrier, who needs an address."""
    order = Order.objects.get(pk=order_id)
    sleep(0.06)
    if not order.address:
        raise ValueError(f"order {order.reference} has no address")
    Order.objects.filter(pk=order_id).update(is_shipped=True)
    return f"shipped to {order.address}"


@job(timeout=60)
def import_catalogue(ctx: JobContext, images: int) -> int:
    """Import a catalogue with progress reports, and enqueue a smaller copy of each of its images."""
    for image_id in range(1, images + 1):
        ctx.checkpoint()
        sleep(0.1)
        ctx.enqueue(resize_image, image_id=image_id)
        ctx.progress(100 * image_id / images, images=image_id)
    return images


@job(priority=1)
def ask_supplier(ctx: JobContext, product: str) -> str:
    """Ask whether a product is available. If the supplier says to come later, the job snoozes."""
    if ctx.fence == 1:
        raise Snooze(1, "the supplier is not open yet")
    return f"{product} will come"


@job(max_retries=1)
def decode_photo(photo_id: int) -> None:
    """Decode a photo that crashes the decoder: the process is killed, as by a fault in C code."""
    sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
