"""Compares each hospital's federated result with what it finds alone: the error on its own patients, the error on later
patients, and how well its components match the conditions behind the data (best cosine for each condition, averaged)."""

import json
import struct
import sys
from pathlib import Path

Rows = list[list[float]]


def read_npy(path: Path) -> Rows:
    """A small .npy file of float32, by row."""
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10 : 10 + length].decode()
    rows, cols = (int(part) for part in header.split("(")[1].split(")")[0].split(",")[:2])
    numbers = struct.unpack(f"<{rows * cols}f", data[10 + length :])
    return [list(numbers[row * cols : (row + 1) * cols]) for row in range(rows)]


def read_csv(path: Path) -> Rows:
    return [[float(value) for value in line.split(",")] for line in path.read_text().splitlines()[1:]]


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b))


def found(components: Rows, truth: Rows) -> float:
    def cosine(a: list[float], b: list[float]) -> float:
        norm = (dot(a, a) * dot(b, b)) ** 0.5
        return dot(a, b) / norm if norm else 0.0

    return sum(max(cosine(component, row) for component in components) for row in truth) / len(truth)


def error_on(patients: Rows, components: Rows) -> float:
    """The relative error of the best nonnegative mixtures of components, by coordinate descent."""
    gram = [[dot(a, b) for b in components] for a in components]
    squared = total = 0.0
    for patient in patients:
        product = [dot(component, patient) for component in components]
        weights = [0.0] * len(components)
        for _ in range(200):
            for place, row in enumerate(gram):
                if row[place] > 0:
                    rest = product[place] - dot(row, weights) + row[place] * weights[place]
                    weights[place] = max(0.0, rest / row[place])
        norm = dot(patient, patient)
        squared += norm - 2 * dot(weights, product) + dot(weights, [dot(row, weights) for row in gram])
        total += norm
    return (squared / total) ** 0.5


def main(folder: Path) -> None:
    truth = read_csv(folder / "truth.csv")
    print(f"{'':12}{'':>9}{'error, own patients':>22}{'later patients':>22}{'conditions':>22}")
    print(f"{'':12}{'patients':>9}" + f"{'alone':>11}{'together':>11}" * 3)
    for number in (1, 2, 3):
        together = json.loads((folder / f"hospital-{number}/run.json").read_text())
        alone = json.loads((folder / f"alone-{number}/run.json").read_text())
        later = read_csv(folder / f"later-{number}.csv")
        kinds = [list(map(list, zip(*read_npy(folder / f"{kind}-{number}/V.npy")))) for kind in ("alone", "hospital")]
        columns = [alone["relative_error"], together["own_relative_error"]]
        columns += [error_on(later, components) for components in kinds]
        columns += [found(components, truth) for components in kinds]
        print(f"hospital {number:<3}{together['records']:>9}" + "".join(f"{column:>11.4f}" for column in columns))
    print("Alone a hospital fits its own patients more closely; what it found fits those who come later less well.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
