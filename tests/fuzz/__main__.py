"""`python -m tests.fuzz [TARGET [N [SEED]]]`: a long run; without a target, each of them at its share of a million."""

import sys

from tests.fuzz.harness import run
from tests.fuzz.targets import SHARES, TARGETS

asked = sys.argv[1:2] or list(TARGETS)
for name in asked:
    count = int(sys.argv[2]) if len(sys.argv) > 2 else SHARES[name]
    print(run(TARGETS[name], count, seed=int(sys.argv[3]) if len(sys.argv) > 3 else 1), flush=True)
