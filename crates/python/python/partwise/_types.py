"""Types of parameters. A test checks that the names match those of the compiled part."""

from typing import Literal, TypedDict

import numpy as np

from partwise._progress import Callback

Init = Literal["random", "nndsvd", "nndsvda", "nndsvdar", "custom"]
Solver = Literal["auto", "hals", "mu", "bpp", "dsanls", "cd"]
Sketch = Literal["subsample", "gaussian", "count", "srht"]
SketchSolver = Literal["pcd", "pgd"]
Normalize = Literal["balanced", "none", "u", "v", "sum-u", "sum-v"]
Protocol = Literal[
    "pooled", "few-rounds", "syn-sd", "syn-ssd-u", "syn-ssd-v", "syn-ssd-uv", "asyn-sd", "asyn-ssd-v", "dsanls-limited"
]
BetaLoss = Literal["frobenius", "kullback-leibler", "itakura-saito"] | float
MissingValues = Literal["unstored"] | float | None
Seed = int | np.random.RandomState | None


class Parameters(TypedDict, total=False):
    """Keyword parameters that functions pass on to :class:`partwise.NMF`, without ``random_state``."""

    init: Init | None
    solver: Solver
    beta_loss: BetaLoss
    tol: float
    max_iter: int
    alpha_W: float
    alpha_H: float | Literal["same"]
    l1_ratio: float
    verbose: int
    shuffle: bool
    sketch: Sketch
    sketch_cols: int | float | None
    sketch_rows: int | float | None
    sketch_solver: SketchSolver
    normalize: Normalize | None
    n_init: int
    target_error: float | None
    time_limit: float | None
    missing_values: MissingValues
    n_jobs: int | None
    callback: Callback | None
    progress: bool


class SeededParameters(Parameters, total=False):
    """Keyword parameters that functions pass on to :class:`partwise.NMF`, with ``random_state``."""

    random_state: Seed


class SimulationSettings(TypedDict, total=False):
    """Settings of a protocol, by their names in ``run.json``, and accepted risks."""

    seed: int
    rounds: int
    inner: int
    rho: float
    sketch: Sketch
    sketch_records: int | float | None
    sketch_features: int | float | None
    solver: SketchSolver
    alpha: float
    beta: float
    step: Literal["unit-free", "absolute"]
    tolerance: float
    aggregation: Literal["secure", "plain"]
    colluders: int
    two_parties_see_each_other: bool
    plain_shares_show_records: bool
    pooled_sums_show_records: bool
    going_on_shows_the_leaver: bool
    subsampling_opens_records: bool
    few_records_show_in_sums: bool
