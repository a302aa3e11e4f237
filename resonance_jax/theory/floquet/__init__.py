"""The paper's theory: the monodromy matrix of the mean."""
