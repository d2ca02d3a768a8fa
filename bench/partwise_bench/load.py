"""The load that other processes caused while a run was measured."""

import os
import pathlib
import resource
import time

STAT = pathlib.Path("/proc/stat")

# In cores. Runs with more load from other processes count as disturbed, and are repeated on request.
DISTURBING = 0.1


class Others:
    """Cores that processes other than our children took, on average since it was made; 0 where Linux is not."""

    def __init__(self):
        self.begin, self.taken = time.monotonic(), seconds_of_others()

    def cores(self):
        return max(0.0, (seconds_of_others() - self.taken) / (time.monotonic() - self.begin))


def seconds_of_others():
    """Processor seconds of the whole machine, stolen ones too, without those of our ended children."""
    if not STAT.exists():
        return 0.0
    user, nice, system, _idle, _wait, irq, softirq, steal, *_ = map(int, STAT.read_text().split("\n")[0].split()[1:])
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    everybody = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return everybody - children.ru_utime - children.ru_stime


def is_disturbed(run):
    return run["others"] > DISTURBING
