"""Orders in the admin. An order without an address can get one, and its dead letter can then be retried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from example_project.shop.models import Order

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Order]
else:
    Base = admin.ModelAdmin


@admin.register(Order)
class OrderAdmin(Base):
    """The list of orders."""

    list_display = ["reference", "customer", "address", "card", "is_paid", "is_shipped"]
    list_filter = ["card", "is_paid", "is_shipped"]
    search_fields = ["reference", "customer"]
    ordering = ["-id"]
