"""The pipeline's tables, under names that other programs know. They never contain raw text."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from ulid import ULID


def new_id() -> str:
    """Return a new ULID."""
    return str(ULID())


class Conversation(models.Model):
    """A conversation and its stage in the pipeline. ``metadata`` has the times, for programs that look there."""

    class Status(models.TextChoices):
        """The stages, in order."""

        CAPTURED = "captured", "captured"
        VALIDATED = "validated", "validated"
        LEARNED = "learned", "learned from"

    id = models.CharField(primary_key=True, max_length=26, default=new_id, editable=False)
    source = models.CharField(max_length=50)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.CAPTURED)
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "conversations"
        indexes = [models.Index(fields=["status", "created_at"], name="conversations_by_status")]

    def __str__(self) -> str:
        return self.id


class Message(models.Model):
    """A message without private data."""

    id = models.CharField(primary_key=True, max_length=26, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=10)
    content = models.TextField()
    sanitization_version = models.CharField(max_length=20)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "messages"
        ordering = ["conversation", "position"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "position"], name="messages_have_places"),
        ]

    def __str__(self) -> str:
        return f"{self.role}: {self.content[:60]}"


class SanitizationEntry(models.Model):
    """A passage removed from a message: its kind, and a keyed hash, from which it can't be guessed."""

    class Detector(models.TextChoices):
        """The detector that found it."""

        RULES = "rules", "rules"
        AI = "ai", "AI"

    id = models.CharField(primary_key=True, max_length=26, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="sanitization_entries")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="sanitization_entries")
    category = models.CharField(max_length=30)
    original_snippet_hash = models.CharField(max_length=64)
    replacement = models.CharField(max_length=40)
    detector = models.CharField(max_length=10, choices=Detector.choices)
    confidence = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "sanitization_log"
        verbose_name_plural = "sanitization entries"

    def __str__(self) -> str:
        return f"{self.category} by {self.detector}"


class Learning(models.Model):
    """A lesson worth keeping beyond its conversation. Two learnings never have the same content."""

    id = models.CharField(primary_key=True, max_length=26, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="learnings")
    category = models.CharField(max_length=30)
    title = models.CharField(max_length=120)
    content = models.TextField()
    confidence = models.FloatField(validators=[MinValueValidator(0.0), MaxValueValidator(1.0)])
    tags = models.JSONField(default=list, blank=True)
    dedupe_hash = models.CharField(max_length=64, unique=True)
    source_message_ids = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "learnings"

    def __str__(self) -> str:
        return self.title


class Upload(models.Model):
    """The progress of a learning's publication.

    The signed transaction is stored before it is sent. An attempt after a crash sends the same transaction, which a
    chain accepts once.
    """

    class Status(models.TextChoices):
        """The stages, in order. A learning without an upload hasn't begun."""

        IPFS_UPLOADED = "ipfs_uploaded", "stored"
        TX_SUBMITTED = "tx_submitted", "transaction sent"
        CONFIRMED = "confirmed", "confirmed"

    id = models.CharField(primary_key=True, max_length=26, default=new_id, editable=False)
    learning = models.OneToOneField(Learning, on_delete=models.PROTECT, related_name="upload")
    status = models.CharField(max_length=15, choices=Status.choices)
    ipfs_cid = models.CharField(max_length=100)
    chain_account = models.CharField(max_length=100, null=True, blank=True)
    chain_nonce = models.BigIntegerField(null=True, blank=True)
    signed_transaction = models.TextField(null=True, blank=True)
    chain_tx_hash = models.CharField(max_length=66, null=True, blank=True)
    block = models.BigIntegerField(null=True, blank=True)
    uploaded_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "uploads"
        constraints = [
            models.UniqueConstraint(fields=["chain_account", "chain_nonce"], name="uploads_number_transactions"),
        ]

    def __str__(self) -> str:
        return f"{self.learning_id}: {self.status}"
