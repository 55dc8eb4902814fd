"""Several models in one memory: which may be active at the same time, and one problem for all their buffers."""
