"""Floors on Postgres: where claims, sweeps and samples begin, so that they pass no dead rows again and again."""
