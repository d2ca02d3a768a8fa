"""Makes scikit-learn check array API inputs too, which SciPy allows only if asked before it is imported."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"
