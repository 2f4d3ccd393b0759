"""The ports to outside services: an assistant, a store and a chain, each with two implementations.

The scheme of an endpoint chooses one: ``rules:`` or ``https:`` for the assistant, ``file:`` or ``https:`` for the
others. Only the chosen one is imported, so the offline ones need no further packages.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from example_project.capture.ports.assistant import Assistant
from example_project.capture.ports.chain import Chain, ChainConfig
from example_project.capture.ports.errors import Refused
from example_project.capture.ports.store import Store


def open_assistant() -> Assistant:
    """Return the assistant named in the settings."""
    opened: Assistant = _class("assistant", settings.CAPTURE["ASSISTANT"])(settings.CAPTURE["ASSISTANT"])
    return opened


def open_store(endpoint: str) -> Store:
    """Return the store at an endpoint from the settings. Raises Refused for any other endpoint of a payload."""
    if endpoint not in settings.CAPTURE["STORES"]:
        raise Refused("The store of this job is not in CAPTURE['STORES'].")
    opened: Store = _class("store", endpoint)(endpoint)
    return opened


def open_chain(config: ChainConfig) -> Chain:
    """Return a chain from the settings. Raises Refused for any other endpoint of a payload."""
    if config.model_dump() not in settings.CAPTURE["CHAINS"]:
        raise Refused("The chain of this job is not in CAPTURE['CHAINS'].")
    opened: Chain = _class("chain", config.rpc_url)(config)
    return opened


def _class(port: str, endpoint: str) -> Any:
    scheme = endpoint.partition(":")[0]
    known: dict[str, str] = settings.CAPTURE["PORTS"][port]
    if scheme not in known:
        raise Refused(f"CAPTURE['PORTS'][{port!r}] has nothing for the scheme {scheme!r}.")
    return import_string(known[scheme])
