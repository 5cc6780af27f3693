"""`python -m costmodel` is the command `costmodel`."""

import sys

from costmodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
