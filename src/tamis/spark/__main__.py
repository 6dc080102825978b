"""``python -m tamis.spark``: prepare the Java that Spark runs on, and say which it is."""

from __future__ import annotations

import sys

from tamis.errors import MissingExtra
from tamis.spark.java import find_java, home_for_spark


def main() -> int:
    """Print one line about the Java that was found; exit 1 if there is none."""
    try:
        java = find_java()
        home = home_for_spark(java)
    except MissingExtra as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Java for Spark: version {java.version} from {java.origin} ({home})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
