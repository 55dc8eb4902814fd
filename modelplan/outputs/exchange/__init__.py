"""Files that other programs read, of a plan in one memory."""
