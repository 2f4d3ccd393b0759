"""Servers on loopback that speak the protocols of the services outside: an assistant, a store, a chain."""
