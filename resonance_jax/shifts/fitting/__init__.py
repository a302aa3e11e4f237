"""A shift for a recorded stream: `fit` is the door."""
