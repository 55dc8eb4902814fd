"""Every record that an output reads."""
