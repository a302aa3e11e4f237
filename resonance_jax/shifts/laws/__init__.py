"""How the inputs of a shift are distributed over time: all that theory knows of it, one law in each file."""
