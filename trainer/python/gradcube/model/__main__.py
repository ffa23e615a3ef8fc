"""`gradcube model` and `python3 -m gradcube.model`."""

import sys

from .commands import main

if __name__ == "__main__":
    sys.exit(main())
