"""A program of which a rank fails as its argument says."""

import os
import signal
import sys
import time

import numgrad as ng
from numgrad.distributed import work

PATIENCE = 120
work.GRACE = 0.3
fault = sys.argv[1]
ng.distributed.init_process_group(timeout=PATIENCE)
rank = ng.distributed.get_rank()
short = ng.distributed.new_group(timeout=1.0)  # only where a rank is stuck: others may be slow
ng.distributed.barrier()
print(f"pid {os.getpid()}", flush=True)
ng.distributed.barrier()
if rank == 1:
    if fault == "raise":
        raise ValueError("no such row")
    if fault == "leave":
        sys.exit(0)
    if fault == "status":
        sys.exit("not today")
    if fault == "number":
        sys.exit(3)
    if fault == "silent":
        os._exit(0)
    if fault == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault in ("stuck", "absent"):
        time.sleep(PATIENCE)
if fault == "interrupt":
    print("waiting", flush=True)
    time.sleep(PATIENCE)
if fault == "absent":
    ng.distributed.monitored_barrier(timeout=1.0)
ng.distributed.all_reduce(ng.zeros(3), group=short if fault == "stuck" else None)
