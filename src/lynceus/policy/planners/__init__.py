"""Which configuration to run next: planners with and without look-ahead, and ways to combine them."""
