"""Local servers that imitate outside services: an assistant, a store, a chain."""
