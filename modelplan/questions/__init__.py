"""Every question that modelplan answers."""
