"""Which rows are computed when and where they lie, whatever the operators are."""
