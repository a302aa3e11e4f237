"""Streams of data from outside: files that hold one row per time."""
