"""Sweeps that outlive a process: stores, shards, resuming."""
