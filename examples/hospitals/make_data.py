"""Made-up patients of three hospitals: counts of 60 diagnoses in a year, from five conditions that go together.

Each hospital sees the conditions in other shares, and the third is small. Nothing here comes from anybody's records.
"""

import random
import sys
from pathlib import Path

CONDITIONS = ["heart", "lung", "diabetes", "kidney", "injury"]
PER_CONDITION = 12
HOSPITALS = [
    (400, [5, 1, 2, 1, 1]),
    (300, [1, 4, 1, 2, 1]),
    (90, [1, 1, 3, 3, 2]),
]


def main(folder: Path) -> None:
    draw = random.Random(7)
    names = [f"{condition}-{code}" for condition in CONDITIONS for code in range(PER_CONDITION)]
    # How often a diagnosis goes with a condition: its own often, each other rarely.
    profile = [
        [draw.expovariate(0.5) if name.startswith(condition) else draw.expovariate(20) for name in names]
        for condition in CONDITIONS
    ]
    for number, (patients, shares) in enumerate(HOSPITALS, start=1):
        with open(folder / f"hospital-{number}.csv", "w") as out:
            print(",".join(names), file=out)
            for _ in range(patients):
                weights = [draw.expovariate(1) * share * (draw.random() < 0.5) for share in shares]
                weights[draw.choices(range(5), shares)[0]] += 1
                means = [sum(w * row[code] for w, row in zip(weights, profile)) for code in range(len(names))]
                # Rounded with chance, so that small means are not all 0.
                print(",".join(str(int(mean + draw.random())) for mean in means), file=out)
    with open(folder / "truth.csv", "w") as out:
        print(",".join(names), file=out)
        for row in profile:
            print(",".join(f"{value:.4f}" for value in row), file=out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
