"""Which operator of one graph is which of another, by structure alone."""
