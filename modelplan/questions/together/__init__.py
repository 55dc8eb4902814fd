"""Several models in one memory: which may be active at the same time, one problem for all their buffers, one arena."""
