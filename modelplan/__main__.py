"""Runs the command line as `python -m modelplan`."""

import sys

from modelplan.cli import main

if __name__ == "__main__":
    sys.exit(main())
