"""What one step does to the moments of a run, and which weights that takes."""
