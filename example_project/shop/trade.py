"""A day of orders, placed in transactions with their jobs. Some customers change their minds."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction

from example_project.shop.jobs import ask_supplier, book_stock, charge_card, decode_photo, import_catalogue, ship_order
from example_project.shop.models import Card, Order
from jobqueue import Receipt

ORDERS = 100
IMAGES = 20
TOWNS = ("Aalborg", "Bergen", "Cork", "Dresden", "Évora")


class ChangedMind(Exception):
    """The customer closed the page before the order was stored."""


@dataclass
class Day:
    """What was accepted and what was rolled back: ids of jobs and conversations, and references of orders."""

    run: str
    accepted: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    conversations: list[str] = field(default_factory=list)
    duplicates: int = 0
    abandoned_jobs: list[str] = field(default_factory=list)
    abandoned_orders: list[str] = field(default_factory=list)
    abandoned_conversations: list[str] = field(default_factory=list)


def trade(run: str) -> Day:
    """Place all orders of a day. ``run`` is the tenant of its jobs, which distinguishes them from other runs."""
    day = Day(run)
    for number in range(ORDERS):
        if number % 8 == 5:
            _abandon(day, f"{run}-{number:03}-abandoned")
        if number == ORDERS // 2:
            _other_work(day)
        with transaction.atomic():
            receipts = _place(run, f"{run}-{number:03}", number)
        _note(day, receipts)
        day.orders.append(f"{run}-{number:03}")
    return day


def _place(run: str, reference: str, number: int) -> list[Receipt]:
    """Store an order and its jobs. A second click on the button finds the first one's charge."""
    order = Order.objects.create(
        reference=reference,
        customer=f"Customer {number}",
        address="" if number % 45 == 30 else f"{number} Harbour Street, {TOWNS[number % len(TOWNS)]}",
        card=Card.DECLINED if number % 30 == 11 else Card.SLOW if number % 9 == 4 else Card.GOOD,
    )
    charge = charge_card.using(tenant=run, idempotency_key=f"charge-{reference}")
    receipts: list[Receipt] = [charge.enqueue(order_id=order.pk)]
    if number % 20 == 7:
        receipts.append(charge.enqueue(order_id=order.pk))
    receipts.append(book_stock.using(tenant=run).enqueue(order_id=order.pk))
    receipts.append(ship_order.using(tenant=run).enqueue(order_id=order.pk))
    return receipts


def _abandon(day: Day, reference: str) -> None:
    try:
        with transaction.atomic():
            receipts = _place(day.run, reference, number=0)
            raise ChangedMind(reference)
    except ChangedMind:
        day.abandoned_jobs += [receipt.id for receipt in receipts]
        day.abandoned_orders.append(reference)


def _other_work(day: Day) -> None:
    with transaction.atomic():
        receipts = [
            ask_supplier.using(tenant=day.run).enqueue(product="tea"),
            import_catalogue.using(tenant=day.run).enqueue(images=IMAGES),
            decode_photo.using(tenant=day.run).enqueue(photo_id=13),
        ]
    _note(day, receipts)


def _note(day: Day, receipts: list[Receipt]) -> None:
    day.accepted += [receipt.id for receipt in receipts if receipt.created]
    day.duplicates += sum(not receipt.created for receipt in receipts)
