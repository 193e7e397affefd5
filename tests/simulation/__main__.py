import argparse
import logging
import os
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
        life = Life(seed, print if options.verbose or options.story else lambda told: None)
        try:
            simulate(life.live())
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.append(seed)
            print("\n".join(life.told[-60:]))
            traceback.print_exc()
            print(f"=== again: python -m tests.simulation --seed {seed} -v", flush=True)
        lived += 1
    seconds = time.monotonic() - began
    if options.story:
        return 1 if failed else 0
    print(f"{lived} lives from seed {options.seed} on in {seconds:.0f} s, {len(failed)} of them wrong: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is chance, too, and a life is to be told once more as it was.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            os.environ | {"PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
