"""A model as plain C: kernels and tables, a plan of rows, and the file that both become."""
