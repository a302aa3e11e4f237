"""Measured speed; not part of the tests."""
