"""The command line, `resonance`. It stands beside the package, whose import takes seconds, so help is immediate."""
