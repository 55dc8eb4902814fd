"""Many runs at once: a table of models and settings, one row for each run; only `engine.py` knows Dask."""
