"""Sharding of JAX models as a text file."""
