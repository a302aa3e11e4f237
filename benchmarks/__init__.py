"""Speed, measured: never part of the tests."""
