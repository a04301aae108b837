"""`python -m participants NAME …`: a participant without the judge and the libraries that only the judge needs."""

import sys

from participants.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
