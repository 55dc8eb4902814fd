"""Files for firmware."""
