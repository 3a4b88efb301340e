"""asv benchmarks of numgrad alone; ``perf/vs_peers.py`` compares it with other libraries.

Note [State]
------------
asv runs ``setup`` before every sample, which would spoil benchmarks of microseconds: what they need
is made once, at module level, and kept by name.
"""

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:  # the environment is an existing one: measure this checkout
    sys.path.insert(0, ROOT)
