"""`python -m partwise_bench`, run from `bench/`; `make bench` calls it."""

import argparse
import math
import time

from . import growth, report
from .cases import PROGRAM, QUICK, ROOT, WORK, Case, everything
from .contestants import everybody
from .runs import Plan
from .store import CAP, Store


def arguments():
    parser = argparse.ArgumentParser(prog="partwise_bench", description=__doc__)
    parser.add_argument("--cases", default="", help="such as mnist-20,rcv1-100; all unless given")
    parser.add_argument("--only", default="", help="programs, by name, comma-separated; all unless given")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=math.inf, help="start no run after so many seconds")
    parser.add_argument("--cap", type=float, default=CAP, help="end a run after so many seconds of computing")
    parser.add_argument("--part", choices=["all", "cases", "growth", "report"], default="all")
    parser.add_argument("--quick", action="store_true", help="three cases, within 5 minutes, apart from the rest")
    parser.add_argument("--redo-disturbed", action="store_true", help="run again what other processes disturbed")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    return parser.parse_args()


def main():
    asked = arguments()
    if not PROGRAM.exists():
        raise SystemExit(f"{PROGRAM} is missing; build it with `cargo build --release`, or set PARTWISE_BIN")
    prefix, repeats, cap, patience, doublings = "", asked.repeats, asked.cap, 4.0, growth.DOUBLINGS
    out = ROOT / "docs/performance"
    if asked.quick:
        prefix, repeats, cap, patience, doublings = "quick-", 1, 5.0, 2.0, 2
        out = WORK / "quick"
    stores = [Store(prefix + part, asked.redo_disturbed) for part in ("cases", "growth")]
    if asked.fresh:
        for store in stores:
            store.forget()
    names = asked.cases.split(",") if asked.cases else QUICK if asked.quick else map(str, everything())
    cases = [case for name in names if (case := Case.parse(name)).is_here()]
    contestants = asked.only.split(",") if asked.only else everybody()
    begin, complete = time.monotonic(), True
    plan = Plan(stores[0], asked.threads, repeats, cap, patience)
    if asked.part in ("all", "cases"):
        complete = plan.carry_out(cases, contestants, asked.budget)
    if asked.part in ("all", "growth"):
        for _ in growth.measure(stores[1], asked.threads, repeats, doublings):
            if time.monotonic() - begin >= asked.budget:
                complete = False
                break
    if complete or asked.part == "report":
        report.write(out, plan, stores[1], doublings)
        print(f"written to {out}")
    else:
        print("more to run: the same command goes on from here")


main()
