"""The shop's tables: orders, and the items that each took from the shelf."""

from __future__ import annotations

from django.db import models


class Card(models.TextChoices):
    """The payment provider's response to a card."""

    GOOD = "good", "good"
    SLOW = "slow", "no answer at the first attempt"
    DECLINED = "declined", "declined"


class Order(models.Model):
    """A customer's order."""

    reference = models.CharField(max_length=40, unique=True)
    customer = models.CharField(max_length=100)
    address = models.CharField(max_length=200, blank=True)
    card = models.CharField(max_length=10, choices=Card.choices, default=Card.GOOD)
    is_paid = models.BooleanField(default=False)
    is_shipped = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.reference


class StockMovement(models.Model):
    """The items that an order took from the shelf, written exactly once by a job."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE)
    quantity = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.quantity} for {self.order}"
