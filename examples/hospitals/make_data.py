"""Synthetic patients of three hospitals: yearly counts of 60 diagnoses, from five groups of related conditions.

The hospitals are small and see the conditions in different proportions. For each there are also 200 later patients, who are
not used for fitting. No real records are involved.
"""

import math
import random
import sys
from pathlib import Path

CONDITIONS = ["heart", "lung", "diabetes", "kidney", "injury"]
PER_CONDITION = 12
HOSPITALS = [
    (150, [5, 1, 2, 1, 1]),
    (110, [1, 4, 1, 2, 1]),
    (70, [1, 1, 3, 3, 2]),
]
LATER = 200


def poisson(draw: random.Random, mean: float) -> int:
    limit, product, count = math.exp(-mean), draw.random(), 0
    while product > limit:
        product *= draw.random()
        count += 1
    return count


def main(folder: Path) -> None:
    draw = random.Random(7)
    names = [f"{condition}-{code}" for condition in CONDITIONS for code in range(PER_CONDITION)]
    # How often a diagnosis goes with a condition: its own often, each other rarely.
    profile = [
        [draw.expovariate(1) * (1 if name.startswith(condition) else 0.1) for name in names] for condition in CONDITIONS
    ]

    def patient(shares: list[int]) -> list[int]:
        weights = [draw.expovariate(1) * (draw.random() < 0.25 + 0.1 * share) for share in shares]
        weights[draw.choices(range(len(shares)), shares)[0]] += 1
        means = [sum(weight * row[code] for weight, row in zip(weights, profile)) for code in range(len(names))]
        return [poisson(draw, mean) for mean in means]

    for number, (patients, shares) in enumerate(HOSPITALS, start=1):
        for kind, count in (("hospital", patients), ("later", LATER)):
            with open(folder / f"{kind}-{number}.csv", "w") as out:
                print(",".join(names), file=out)
                for _ in range(count):
                    print(",".join(map(str, patient(shares))), file=out)
    with open(folder / "truth.csv", "w") as out:
        print(",".join(names), file=out)
        for row in profile:
            print(",".join(f"{value:.4f}" for value in row), file=out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
