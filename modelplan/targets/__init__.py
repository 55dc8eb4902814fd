"""Devices: a table of boards, chips and accelerators, files that describe others, and the memory free for an arena."""
