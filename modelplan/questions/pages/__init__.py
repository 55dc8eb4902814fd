"""The plans that a page shows."""
