"""The command line, `resonance`. It stands beside the package, whose import takes seconds: help must come at once."""
