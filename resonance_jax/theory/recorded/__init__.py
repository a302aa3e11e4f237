"""Growth on recorded rows, and what is to blame for it."""
