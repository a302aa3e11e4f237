"""Where growth begins: boundaries of stability, and the largest safe momentum."""
