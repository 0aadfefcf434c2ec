"""khub platform as a whole process: at most 5 ms where no accelerator library is there.

Beside it the least that any process costs (/bin/true) and the start of khub itself. Prints best and median."""

import os
import statistics
import time

KHUB = os.path.join(os.environ["KHUB_STAGE"], "bin", "khub")


def run(command, null):
    start = time.perf_counter_ns()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0, (command, status)
    return (time.perf_counter_ns() - start) / 1e6


def main():
    with open(os.devnull, "w") as null:
        for command in (["/bin/true"], [KHUB, "--version"], [KHUB, "platform"], [KHUB, "platform", "--json"]):
            times = [run(command, null.fileno()) for _ in range(500)]
            what = " ".join([os.path.basename(command[0]), *command[1:]])
            print(f"{what:24}  best {min(times):6.2f} ms   median {statistics.median(times):6.2f} ms   ({len(times)} runs)")


main()
