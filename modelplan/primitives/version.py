"""The version of modelplan: a module of its own, so that whatever writes it into a file imports nothing else."""

__version__ = "0.1.0"
