"""Arithmetic without overflow, and small matrices."""
