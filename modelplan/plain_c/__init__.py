"""A model as plain C that needs no interpreter: operators as kernels, a plan of rows, and the file that both become."""
