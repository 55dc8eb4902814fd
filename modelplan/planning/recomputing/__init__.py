"""Recomputation: values that are dropped and computed again, bytes against work."""
