"""One run of one program in a separate process: the request is JSON, the result goes to stdout."""

import json
import sys

import numpy as np

from . import contestants, partwise
from .cases import load
from .stopwatch import Done, RelativeError, Stopwatch


def measure(contestant, file, k, start, threads, cap, target=None, iterations=None, trace_every=None):
    if contestant in contestants.PARTWISE:
        options = contestants.PARTWISE[contestant] + (["--trace-every", trace_every] if trace_every else [])
        return partwise.run(file, k, threads, start, options, target, cap, iterations or 10**9)
    matrix = load(file)
    if reason := contestants.cannot(contestant, matrix):
        return {"failed": reason}
    u, v = (np.load(f"{start}/{name}.npy") for name in "UV")
    watch = Stopwatch(RelativeError(matrix), cap, target, iterations)
    try:
        with watch.capped():
            contestants.peer(contestant)(matrix, u, v, watch)
    except Done:
        pass
    except ImportError as missing:
        return {"failed": f"is not installed: {missing}"}
    except (RuntimeError, MemoryError, ValueError, TypeError) as problem:
        return {"failed": f"{type(problem).__name__}: {str(problem).splitlines()[0][:100]}"}
    if not watch.curve:
        return {"failed": f"did not end an iteration in {cap:.3g} s"}
    return {"curve": watch.curve, "ended": watch.seconds()}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
