"""Topics in text: the language reference of Python.

    python examples/python/topics.py [PICTURE]
    python examples/python/topics.py --matrix MATRIX.mtx WORDS.txt

Needs partwise and matplotlib; writes topics.png, or PICTURE. With --matrix it writes the matrix of paragraphs and words for the program
`partwise`. The text comes with every Python, as the topics of `help()`, under the PSF licence.
"""

import sys

import matplotlib
import scipy.io
from pydoc_data.topics import topics
from sklearn.feature_extraction.text import TfidfVectorizer

from partwise import NMF

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

picture = sys.argv[1] if len(sys.argv) > 1 else "topics.png"
# A paragraph is a document; very short ones say little.
paragraphs = {part for text in topics.values() for part in text.split("\n\n") if len(part.split()) >= 20}
vectorizer = TfidfVectorizer(stop_words="english", token_pattern=r"[a-z_]{3,}", min_df=5, max_df=0.2)
X = vectorizer.fit_transform(sorted(paragraphs))  # Sparse, read as it is.
words = vectorizer.get_feature_names_out()
if sys.argv[1:2] == ["--matrix"]:
    scipy.io.mmwrite(sys.argv[2], X)
    with open(sys.argv[3], "w") as file:
        print(*words, sep="\n", file=file)
    sys.exit()

model = NMF(8, init="nndsvda", max_iter=500, random_state=0)
W = model.fit_transform(X)
print(f"{X.shape[0]} paragraphs, {X.shape[1]} words, relative error {model.relative_error_:.3f}")

figure, grid = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
for number, (axes, component) in enumerate(zip(grid.flat, model.components_), 1):
    top = component.argsort()[-8:]
    print(f"topic {number}: {', '.join(words[top[::-1]])}")
    axes.barh(words[top], component[top])
    axes.set_title(f"topic {number}")
    axes.set_xticks([])
figure.savefig(picture, dpi=120)
print(f"written to {picture}")
