"""What every room may use: errors, bytes, data types, processes; it knows nothing of models."""
