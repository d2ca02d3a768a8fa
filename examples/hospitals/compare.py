"""Each hospital's result of the federation against what it finds alone: the error on its own patients, and how well its
components are the conditions that the data were made of (best cosine for each condition, averaged)."""

import json
import struct
import sys
from pathlib import Path


def read(path: Path) -> list[list[float]]:
    """A small .npy file of float32, by row."""
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10 : 10 + length].decode()
    rows, cols = (int(part) for part in header.split("(")[1].split(")")[0].split(",")[:2])
    numbers = struct.unpack(f"<{rows * cols}f", data[10 + length :])
    return [list(numbers[row * cols : (row + 1) * cols]) for row in range(rows)]


def cosine(a: list[float], b: list[float]) -> float:
    norm = (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5
    return sum(x * y for x, y in zip(a, b)) / norm if norm else 0.0


def found(components: list[list[float]], truth: list[list[float]]) -> float:
    columns = list(zip(*components))
    return sum(max(cosine(list(column), row) for column in columns) for row in truth) / len(truth)


def main(folder: Path) -> None:
    lines = (folder / "truth.csv").read_text().splitlines()[1:]
    truth = [[float(value) for value in line.split(",")] for line in lines]
    print(f"{'':12}{'patients':>9}{'error alone':>13}{'together':>10}{'conditions alone':>18}{'together':>10}")
    for number in (1, 2, 3):
        together = json.loads((folder / f"hospital-{number}/run.json").read_text())
        alone = json.loads((folder / f"alone-{number}/run.json").read_text())
        print(
            f"hospital {number:<3}{together['records']:>9}{alone['relative_error']:>13.4f}"
            f"{together['own_relative_error']:>10.4f}"
            f"{found(read(folder / f'alone-{number}/U.npy'), truth):>18.3f}"
            f"{found(read(folder / f'hospital-{number}/U.npy'), truth):>10.3f}"
        )
    print("(alone a hospital has components of its own to fit with, which mean something else at each)")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
