"""Training runs, one at a time; vmap makes the grid."""
