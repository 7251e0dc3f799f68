"""Measurements that a command in the docs repeats."""
