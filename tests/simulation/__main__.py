import argparse
import logging
import os
import random
import sys
import time
import traceback

from tests.simulation.life import Life
from tests.simulation.loop import simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, default=0, help="the first life")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--seconds", type=float, default=0, help="begin none after so many")
    parser.add_argument("--story", action="store_true", help="tell what happens")
    parser.add_argument("-v", "--verbose", action="store_true", help="with all that is logged")
    options = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if options.verbose else logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    began, lived, failed = time.monotonic(), 0, []
    for seed in range(options.seed, options.seed + options.seeds):
        if options.seconds and time.monotonic() - began > options.seconds:
            break
        # Each in a process of its own, as that was before the first: what a life leaves in memory changes the next one.
        if (child := os.fork()) == 0:
            os._exit(_live(seed, tell=options.verbose or options.story))
        if os.waitpid(child, 0)[1] != 0:
            failed.append(seed)
        lived += 1
    if not options.story:
        seconds = time.monotonic() - began
        print(f"{lived} lives from seed {options.seed} on in {seconds:.0f} s, {len(failed)} of them wrong: {failed}")
    return 1 if failed else 0


def _live(seed: int, tell: bool) -> int:
    random.seed(seed)
    life = Life(seed, print if tell else lambda told: None)
    try:
        simulate(life.live())
        return 0
    except BaseException:
        print("\n".join(life.told[-60:]))
        print(traceback.format_exc())
        print(f"=== again: python -m tests.simulation --seed {seed} -v")
        return 1
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is chance, too, and a life is to be told once more as it was.
        again = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, os.environ | {"PYTHONHASHSEED": "0"})
    sys.exit(main())
