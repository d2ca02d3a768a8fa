"""Parts of handwritten digits: what 16 components of 1797 images look like.

    python examples/python/digits.py [PICTURE]

Needs partwise, numpy and matplotlib; writes digits.png, or PICTURE.
"""

import pathlib
import sys

import matplotlib
import numpy as np

from partwise import NMF

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

picture = sys.argv[1] if len(sys.argv) > 1 else "digits.png"
file = pathlib.Path(__file__).parents[2] / "data" / "digits.npy"
images = np.load(file)  # 1797 x 64, bytes: a row is an image of 8 x 8 pixels.

model = NMF(16, init="nndsvda", max_iter=1000, random_state=0)
W = model.fit_transform(images)
print(f"{images.shape[0]} images, relative error {model.relative_error_:.3f} after {model.n_iter_} iterations")

shown = 4
figure = plt.figure(figsize=(10, 4), layout="constrained")
parts, examples, curve = figure.subfigures(1, 3, width_ratios=[4, 2, 3])
parts.suptitle("components")
for axes, component in zip(parts.subplots(4, 4).flat, model.components_):
    axes.imshow(component.reshape(8, 8), cmap="gray_r")
    axes.axis("off")
examples.suptitle("image and sum of parts")
rebuilt = model.inverse_transform(W)
for (left, right), row in zip(examples.subplots(shown, 2), range(0, shown * 37, 37)):
    for axes, pixels in ((left, images[row]), (right, rebuilt[row])):
        axes.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axes.axis("off")
curve.suptitle("error")
axes = curve.subplots()
axes.semilogx(model.trace_["iteration"][1:], model.trace_["relative_error"][1:])
axes.set_xlabel("iterations")
axes.set_ylabel("‖X − W H‖ / ‖X‖")
figure.savefig(picture, dpi=120)
print(f"written to {picture}")
