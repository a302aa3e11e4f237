"""Growth under sampling noise: of the mean, of the mean square, of a typical run."""
