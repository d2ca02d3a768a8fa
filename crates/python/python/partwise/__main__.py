"""The program `partwise`, as ``python -m partwise`` or as the script that the wheel installs."""

import os
import signal
import sys
import sysconfig

from partwise import _partwise


def main() -> None:
    """Runs the program with the arguments of this process, and ends with its exit code."""
    # The program has its own handlers; Python's would only run after it returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) == "__main__.py":
        script = os.path.join(sysconfig.get_path("scripts"), "partwise")
    sys.exit(_partwise.program([script, *sys.argv[1:]]))


if __name__ == "__main__":
    main()
