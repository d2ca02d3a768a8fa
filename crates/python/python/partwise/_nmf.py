"""The estimator, with the names and meanings of scikit-learn where they exist, and additional parameters."""

from __future__ import annotations

import json
import warnings
from numbers import Integral, Real
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from partwise import _partwise
from partwise._checks import (
    DTYPES, amount, checked_factor, checked_weights, dtype_of, finite, number, one_of, readable, threads, unmasked,
)
from partwise._progress import Callback, Line, Lines, joined
from partwise._types import (
    BetaLoss, Init, MissingValues, Normalize, Seed, SeededParameters, Sketch, SketchSolver, Solver,
)

#: The default solver.
DEFAULT_SOLVER: Solver = "auto"

#: The choices of each setting of Partwise.
CHOICES = _partwise.choices()

#: Solvers by name; 'cd' is scikit-learn's name for 'hals'.
ALGORITHMS = {"cd": "hals"} | {name: name for name in CHOICES["algorithm"]}
STARTS = tuple(CHOICES["init"])
SKETCHES = tuple(CHOICES["sketch"])
SKETCH_SOLVERS = tuple(CHOICES["solver"])
SCALES = tuple(CHOICES["normalize"])

#: Additional parameters that the exact solution for a given H does not use. (Those of scikit-learn are ignored, as in
#: scikit-learn.)
ITERATING = (
    "sketch", "sketch_cols", "sketch_rows", "sketch_solver", "normalize", "n_init", "target_error", "time_limit",
    "callback", "progress",
)

TRACE = np.dtype(
    [("iteration", np.int64), ("seconds", np.float64), ("relative_error", np.float64), ("loss", np.float64)]
)

#: Partwise's names of losses, by scikit-learn's names and numbers.
LOSSES = {
    "frobenius": "frobenius", 2: "frobenius", "kullback-leibler": "kl", 1: "kl", "itakura-saito": "is", 0: "is",
}


class NMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nonnegative matrix factorization, X ≈ W H without negative entries.

    Minimizes the objective of scikit-learn's ``NMF``,

        L(X, W H) + alpha_W n_features (l1_ratio ‖W‖₁ + ½ (1 − l1_ratio) ‖W‖²)
                     + alpha_H n_samples  (l1_ratio ‖H‖₁ + ½ (1 − l1_ratio) ‖H‖²)

    with ``L`` chosen by ``beta_loss``, ½ ‖X − W H‖² in the Frobenius norm by
    default. ``fit`` ends with an exact solution for W, so that
    ``transform(X)`` equals ``fit_transform(X)`` up to rounding.

    NumPy arrays (float64, float32, uint8; by row or by column) and SciPy's csr
    and csc matrices are read in place, without a copy; they must not change
    while ``fit`` runs, which releases Python's global lock. float32 is
    computed in float32, everything else in float64.

    Parameters
    ----------
    n_components : int or 'auto' or None, default='auto'
        Number of components. With 'auto' that of a given W or H; otherwise, and
        with None, the number of features.

    init : {'random', 'nndsvd', 'nndsvda', 'nndsvdar', 'custom'}, default=None
        Starting values: random; singular vectors with zeros ('nndsvd'), with
        zeros filled with the mean of X ('nndsvda') or with small random numbers
        ('nndsvdar'); or the W and H given to `fit` ('custom'). With None
        'nndsvda' if n_components <= min(n_samples, n_features) and n_init is 1,
        else 'random'.

    solver : {'auto', 'hals', 'bpp', 'mu', 'dsanls', 'cd'}, default='auto'
        'hals' (scikit-learn's 'cd') is exact coordinate descent; 'auto' is
        accelerated HALS, warm-started on a sample of a large dense X; 'bpp'
        solves each alternating least squares problem exactly; 'mu' is
        multiplicative updates; 'dsanls' solves a random sketch of the problem in
        each step, for matrices that take too long to read in every iteration.

    beta_loss : {'frobenius', 'kullback-leibler', 'itakura-saito', 2, 1, 0}, default='frobenius'
        Least squares; the Kullback-Leibler divergence, for counts, with solver
        'auto', 'hals' or 'mu'; or the Itakura-Saito divergence, for power
        spectra without zeros, with 'auto' or 'mu'.

    tol : float, default=1e-4
        Stop when the relative change of the error per iteration is below a tenth
        of this value, over ten iterations; 0 turns this off. (scikit-learn's
        criterion is different.)

    max_iter : int, default=200
        Maximum number of iterations.

    random_state : int, RandomState instance or None, default=None
        Random seed. An int gives the same result every time, for any number of
        threads.

    alpha_W : float, default=0.0
        Weight of the penalties of W.

    alpha_H : float or 'same', default='same'
        Weight of the penalties of H.

    l1_ratio : float, default=0.0
        Share of the l1 penalty, from 0 to 1.

    verbose : int, default=0
        Print the error every ten iterations.

    shuffle : bool, default=False
        No effect; for compatibility with scikit-learn.

    sketch : {'subsample', 'gaussian', 'count', 'srht'}, default='subsample'
        Kind of sketch for 'dsanls'. This and the next three parameters are
        refused with other solvers, which would ignore them.

    sketch_cols, sketch_rows : int or float, default=None
        Columns and rows in the sketched problems of 'dsanls': a number, or as a
        float a share. With None by the size of X.

    sketch_solver : {'pcd', 'pgd'}, default='pcd'
        Solver of 'dsanls': proximal coordinate descent, or projected gradient
        descent.

    normalize : {'balanced', 'none', 'u', 'v', 'sum-u', 'sum-v'}, default=None
        Scale of the components, which W H leaves free: equal norms of the
        columns of W and the rows of H ('balanced'), norm 1 in W ('u') or in H
        ('v'), sum 1 in W ('sum-u') or in H ('sum-v'), or the scale at the end of
        the run ('none'). With None 'balanced', or 'none' with penalties, which
        determine the scale; other choices are refused with them.

    n_init : int, default=1
        Number of runs from different random starts, of which the best is kept.
        Refused with a start that is always the same, except for 'dsanls'.

    target_error : float, default=None
        Stop at this relative error ‖X − W H‖ / ‖X‖.

    time_limit : float, default=None
        Stop after this many seconds of computing.

    missing_values : nan, 0 or 'unstored', default=None
        Entries of X that are unknown: those that are NaN, those that are 0, or
        those that a sparse X does not store. Not with solver 'dsanls'.

    n_jobs : int, default=None
        Number of threads. With None the value of OMP_NUM_THREADS, else all
        cores; -1 is all cores. The result does not depend on it.

    callback : callable, default=None
        Called with a :class:`Progress` after every iteration; if it returns
        False, the run ends. Other return values are ignored.

    progress : bool, default=False
        Show iteration and error in a line on stderr.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        H.

    n_components_ : int
        Number of components.

    reconstruction_err_ : float
        √(2 L), as in scikit-learn: ‖X − W H‖ for the Frobenius norm.

    relative_error_ : float
        ‖X − W H‖ / ‖X‖; for a divergence that of W H over that of the mean of X.

    loss_ : float
        L.

    n_iter_ : int
        Number of iterations.

    stopped_by_ : str
        Why the run ended: 'tolerance', 'iterations', 'target-error', 'time-limit' or
        'interrupted', by the callback.

    trace_ : structured array
        The error curve, with the fields ``iteration``, ``seconds``,
        ``relative_error`` and ``loss``, before the final solution for W.

    n_features_in_ : int
        Number of features seen during `fit`.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has them.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import NMF
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> model = NMF(n_components=2, random_state=0)
    >>> W = model.fit_transform(X)
    >>> W.shape, model.components_.shape
    ((6, 2), (2, 2))
    >>> bool(np.allclose(model.transform(X), W))
    True
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] | None = "auto",
        *,
        init: Init | None = None,
        solver: Solver = DEFAULT_SOLVER,
        beta_loss: BetaLoss = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Seed = None,
        alpha_W: float = 0.0,
        alpha_H: float | Literal["same"] = "same",
        l1_ratio: float = 0.0,
        verbose: int = 0,
        shuffle: bool = False,
        sketch: Sketch = "subsample",
        sketch_cols: int | float | None = None,
        sketch_rows: int | float | None = None,
        sketch_solver: SketchSolver = "pcd",
        normalize: Normalize | None = None,
        n_init: int = 1,
        target_error: float | None = None,
        time_limit: float | None = None,
        missing_values: MissingValues = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        progress: bool = False,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.verbose = verbose
        self.shuffle = shuffle
        self.sketch = sketch
        self.sketch_cols = sketch_cols
        self.sketch_rows = sketch_rows
        self.sketch_solver = sketch_solver
        self.normalize = normalize
        self.n_init = n_init
        self.target_error = target_error
        self.time_limit = time_limit
        self.missing_values = missing_values
        self.n_jobs = n_jobs
        self.callback = callback
        self.progress = progress

    def fit(
        self, X: Any, y: Any = None, W: Any = None, H: Any = None, sample_weight: Any = None, weights: Any = None
    ) -> NMF:
        """Factorize X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Nonnegative entries.
        y : Ignored
        W, H : array-like, default=None
            Starting values, with ``init='custom'``.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; 2 has the effect of repeating the row.
        weights : {array-like, sparse matrix} of the shape of X, default=None
            The weight of each entry; 0 hides it. Cannot be combined with sample_weight.

        Returns
        -------
        self : NMF
        """
        self.fit_transform(X, W=W, H=H, sample_weight=sample_weight, weights=weights)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, W: Any = None, H: Any = None, sample_weight: Any = None, weights: Any = None
    ) -> NDArray[np.floating[Any]]:
        """Factorize X and return W: `fit` and `transform` in one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Nonnegative entries.
        y : Ignored
        W, H : array-like, default=None
            Starting values, with ``init='custom'``.
        sample_weight, weights : array-like, default=None
            The weights of rows or entries, as for `fit`.

        Returns
        -------
        W : ndarray of shape (n_samples, n_components)
        """
        self._check_parameters()
        X = validate_data(
            self, unmasked(X), accept_sparse=("csr", "csc"), dtype=DTYPES, ensure_all_finite=self._finite()
        )
        check_non_negative(X, "NMF (input X)")
        counts = checked_weights(X, sample_weight, weights)
        start = self._start(X, W, H)
        k = self._n_components
        dtype = dtype_of(X)
        # The run fills these arrays, which contain a given start.
        w, v = start or (np.empty((X.shape[0], k), dtype), np.empty((X.shape[1], k), dtype))
        line = Line(self.max_iter, self.n_init) if self.progress else None
        watchers = [watch for watch in (self.callback, line, Lines() if self.verbose else None) if watch]
        try:
            report = json.loads(
                _partwise.fit(
                    readable(X), w, v, settings=json.dumps(self._settings(X)), given=start is not None,
                    missing=self._missing(), weights=counts, threads=threads(self.n_jobs), callback=joined(watchers),
                )
            )
        finally:
            if line:
                line.close()
        self.components_: NDArray[Any] = np.ascontiguousarray(v.T)
        self.n_components_ = k
        self.relative_error_: float = report["relative_error"]
        self.loss_: float = report["loss"]
        self.reconstruction_err_: float = float(np.sqrt(2 * self.loss_))
        self.n_iter_: int = report["iterations"]
        self.stopped_by_: str = report["stopped_by"]
        self.trace_: NDArray[Any] = np.array(
            [tuple(line[name] for name in TRACE.names or ()) for line in report["trace"]], dtype=TRACE
        )
        if self.stopped_by_ == "iterations" and self.tol > 0:
            warnings.warn(
                f"Maximum number of iterations {self.max_iter} reached. Increase it to improve convergence.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return w

    def transform(self, X: Any) -> NDArray[np.floating[Any]]:
        """Return the W that fits X best with the components fixed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Nonnegative entries.

        Returns
        -------
        W : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(
            self, unmasked(X), accept_sparse=("csr", "csc"), dtype=DTYPES, reset=False, ensure_non_negative=True,
            ensure_all_finite=self._finite(),
        )
        return self._solve(X, self.components_)

    def inverse_transform(self, X: Any) -> NDArray[np.floating[Any]]:
        """Return W H for a given W.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_components)
            W, from `transform` or elsewhere.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = check_array(unmasked(X), accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {X.shape[1]} columns, but there are {self.n_components_} components; give one column per component"
            )
        original: NDArray[np.floating[Any]] = X @ self.components_
        return original

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _solve(self, X: Any, H: NDArray[Any]) -> NDArray[Any]:
        """W for a checked X and given components."""
        dtype = dtype_of(X)
        w = np.empty((X.shape[0], H.shape[0]), dtype)
        v = np.ascontiguousarray(H.T, dtype)
        (l1, l2), _ = self._penalties()
        n_features = X.shape[1]
        _partwise.transform(
            readable(X), w, v, loss=LOSSES[self.beta_loss], missing=self._missing(), l1=l1 * n_features, l2=l2 * n_features,
            threads=threads(self.n_jobs),
        )
        return w

    def _missing(self) -> str | None:
        """Return Partwise's name for the missing values."""
        if self.missing_values is None:
            return None
        if isinstance(self.missing_values, str):
            return self.missing_values
        return "nan" if np.isnan(self.missing_values) else "zero"

    def _finite(self) -> bool | str:
        return "allow-nan" if self._missing() == "nan" else True

    def _check_parameters(self) -> None:
        """Check the parameters that the compiled part has other names for."""
        one_of("init", self.init, (*STARTS, "custom", None))
        one_of("solver", self.solver, ALGORITHMS)
        one_of("sketch", self.sketch, SKETCHES)
        one_of("sketch_solver", self.sketch_solver, SKETCH_SOLVERS)
        one_of("normalize", self.normalize, (*SCALES, None))
        if not isinstance(self.beta_loss, (str, Real)) or self.beta_loss not in LOSSES:
            names = ", ".join(repr(name) for name in LOSSES)
            raise ValueError(f"beta_loss is {self.beta_loss!r}; give one of {names}")
        handled = {"kl": ("auto", "hals", "cd", "mu"), "is": ("auto", "mu")}.get(LOSSES[self.beta_loss], ALGORITHMS)
        if self.solver not in handled:
            solvers = ", ".join(repr(name) for name in handled)
            raise ValueError(
                f"Invalid beta_loss parameter: solver {self.solver!r} does not handle beta_loss = "
                f"{self.beta_loss!r}; use one of {solvers}"
            )
        if self.n_components not in ("auto", None):
            number("n_components", self.n_components, Integral, 1)
        missing = self.missing_values
        if not (missing is None or missing == "unstored" or (isinstance(missing, Real) and (missing == 0 or np.isnan(missing)))):
            raise ValueError(f"missing_values is {missing!r}; give nan, 0 or 'unstored'")
        number("max_iter", self.max_iter, Integral, 1)
        number("n_init", self.n_init, Integral, 1)
        number("tol", self.tol, Real, 0, infinite=True)
        number("alpha_W", self.alpha_W, Real, 0)
        if not isinstance(self.alpha_H, str) or self.alpha_H != "same":
            number("alpha_H", self.alpha_H, Real, 0)
        number("l1_ratio", self.l1_ratio, Real, 0, 1)
        for name in ("target_error", "time_limit"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), Real, 0, infinite=True)
        if self.solver == "mu" and self.init == "nndsvd":
            warnings.warn(
                "The multiplicative update ('mu') solver cannot update zeros present in the initialization, and so "
                "leads to poorer results when used jointly with init='nndsvd'. You may try init='nndsvda' or "
                "init='nndsvdar' instead.",
                UserWarning,
                stacklevel=3,
            )

    def _start(self, X: Any, W: Any, H: Any) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Determine the number of components; return copies of W and Hᵀ if they are the start."""
        self._n_components: Any = X.shape[1] if self.n_components is None else self.n_components
        if self.init == "custom":
            H = checked_factor(H, (self._n_components, X.shape[1]), "NMF (input H)")
            W = checked_factor(W, (X.shape[0], self._n_components), "NMF (input W)")
            dtype = dtype_of(X)
            if H.dtype != dtype or W.dtype != dtype:
                raise TypeError(
                    f"H and W should have the same dtype as X. Got H.dtype = {H.dtype} and W.dtype = {W.dtype}."
                )
            if W.shape[1] != H.shape[0]:
                raise ValueError(f"W has {W.shape[1]} columns, but H has {H.shape[0]} rows; they must be equal")
            self._n_components = H.shape[0]
            return np.array(W, order="C"), np.array(H.T, order="C")
        if W is not None or H is not None:
            warnings.warn(
                "When init!='custom', provided W or H are ignored. Set  init='custom' to use them as initialization.",
                RuntimeWarning,
                stacklevel=3,
            )
        if self._n_components == "auto":
            self._n_components = X.shape[1]
        if self.init in ("nndsvd", "nndsvda", "nndsvdar") and self._n_components > min(X.shape):
            raise ValueError(
                f"init = '{self.init}' can only be used when n_components <= min(n_samples, n_features)"
            )
        return None

    def _penalties(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(l1, l2) of W and of H, before they are scaled by the other side's length."""
        alpha_H = self.alpha_W if isinstance(self.alpha_H, str) else self.alpha_H
        return tuple((alpha * self.l1_ratio, alpha * (1 - self.l1_ratio)) for alpha in (self.alpha_W, alpha_H))  # type: ignore[return-value]

    def _settings(self, X: Any) -> dict[str, Any]:
        """The parameters by the names of Partwise's settings."""
        init = self.init
        if init in (None, "custom"):
            # All runs from singular vectors would be identical.
            several = self.n_init > 1
            init = "nndsvda" if self._n_components <= min(X.shape) and not several else "random"
        (l1_u, l2_u), (l1_v, l2_v) = self._penalties()
        sketching = {
            "sketch": self.sketch,
            "sketch_cols": amount("sketch_cols", self.sketch_cols),
            "sketch_rows": amount("sketch_rows", self.sketch_rows),
            "solver": self.sketch_solver,
        }
        # Only changed parameters: the compiled part refuses those that the solver does not use.
        defaults = ("subsample", None, None, "pcd")
        given = {name: value for (name, value), default in zip(sketching.items(), defaults) if value != default}
        return {
            "algorithm": ALGORITHMS[self.solver],
            "loss": LOSSES[self.beta_loss],
            "rank": int(self._n_components),
            **given,
            "l1_u": float(l1_u),
            "l1_v": float(l1_v),
            "l2_u": float(l2_u),
            "l2_v": float(l2_v),
            "normalize": self.normalize,
            "init": init,
            "seed": self._seed(),
            "iterations": int(self.max_iter),
            "tolerance": finite(self.tol) / 10,
            "target_error": None if self.target_error is None else finite(self.target_error),
            "time_limit": None if self.time_limit is None else finite(self.time_limit),
            "restarts": int(self.n_init),
        }

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            check_random_state(self.random_state)
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))


def non_negative_factorization(
    X: Any,
    W: Any = None,
    H: Any = None,
    n_components: int | Literal["auto"] | None = "auto",
    *,
    update_H: bool = True,
    **parameters: Unpack[SeededParameters],
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]], int]:
    """Factorize X ≈ W H, as a function.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Nonnegative entries.
    W, H : array-like, default=None
        Starting values, with ``init='custom'``.
    n_components : int or 'auto' or None, default='auto'
        As for :class:`NMF`.
    update_H : bool, default=True
        If False, H is kept, and W is the exact solution for it.
    **parameters
        Other parameters of :class:`NMF`. With ``update_H=False``, which does not
        iterate, Partwise's additional parameters are refused except ``n_jobs``
        and ``normalize='none'``.

    Returns
    -------
    W : ndarray of shape (n_samples, n_components)
    H : ndarray of shape (n_components, n_features)
    n_iter : int
        Number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import non_negative_factorization
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> W, H, n_iter = non_negative_factorization(X, n_components=2, random_state=0)
    >>> W.shape, H.shape
    ((6, 2), (2, 2))
    """
    # Arrays, whatever output scikit-learn is configured for.
    model = NMF(n_components, **parameters).set_output(transform="default")
    if update_H:
        W = model.fit_transform(X, W=W, H=H)
        return W, model.components_, model.n_iter_
    model._check_parameters()
    refuse_unused(model)
    if W is not None:
        warnings.warn(
            "When update_H=False, the provided initial W is not used.", RuntimeWarning, stacklevel=2
        )
    X = check_array(unmasked(X), accept_sparse=("csr", "csc"), dtype=DTYPES)
    check_non_negative(X, "NMF (input X)")
    k = X.shape[1] if n_components is None else n_components
    H = checked_factor(H, (k, X.shape[1]), "NMF (input H)")
    if H.dtype != dtype_of(X):
        raise TypeError(f"H should have the same dtype as X. Got H.dtype = {H.dtype}.")
    return model._solve(X, H), H, 1


def refuse_unused(model: NMF) -> None:
    """Refuse parameters that the exact solution for a given H would ignore."""
    defaults = NMF().get_params()
    for name in ITERATING:
        value = getattr(model, name)
        if value == defaults[name] or (name, value) == ("normalize", "none"):
            continue
        if name == "normalize":
            raise ValueError(
                f"normalize is {value!r}, but with update_H=False a given H keeps its scale; leave it out, or scale H"
            )
        raise ValueError(f"{name}: update_H=False does not use it, since W is solved exactly, once; leave it out")
