"""Ranks that print at the same time, in pieces."""

import numgrad as ng

ng.distributed.init_process_group(timeout=120)
rank = ng.distributed.get_rank()
ng.distributed.barrier()
for k in range(300):
    print("rank", rank, "line", k, "of", 300, sep=" ", end=" .\n")
