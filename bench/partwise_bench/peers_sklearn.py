"""Scikit-learn's NMF and MiniBatchNMF, with a hook after each iteration and without their stopping rules."""

import sklearn.decomposition
from sklearn.decomposition import _nmf

FOREVER = 10**6


def coordinate_descent(matrix, u, v, watch):
    update = _nmf._update_coordinate_descent
    half_steps = 0

    def hooked(x, w, ht, *rest):
        nonlocal half_steps
        violation = update(x, w, ht, *rest)
        half_steps += 1
        if half_steps % 2 == 0:
            # The second half step moves V: there the two are swapped.
            watch.iterated(lambda: (ht, w))
        return violation

    _nmf._update_coordinate_descent = hooked
    fit(sklearn.decomposition.NMF(u.shape[1], init="custom", tol=0, max_iter=FOREVER), matrix, u, v, watch)


def multiplicative(matrix, u, v, watch):
    update = _nmf._multiplicative_update_h

    def hooked(x, w, h, **rest):
        h = update(x, w, h, **rest)
        watch.iterated(lambda: (w, h.T))
        return h

    _nmf._multiplicative_update_h = hooked
    model = sklearn.decomposition.NMF(u.shape[1], init="custom", solver="mu", tol=0, max_iter=FOREVER)
    fit(model, matrix, u, v, watch)


def minibatch(matrix, u, v, watch):
    """An iteration is a pass over all rows."""
    size = 1024
    batches = -(-matrix.shape[0] // size)
    steps = 0

    class Hooked(sklearn.decomposition.MiniBatchNMF):
        def _minibatch_convergence(self, x, cost, h, *rest):
            nonlocal steps
            steps += 1
            if steps % batches == 0:
                # The rows of U are updated in the array that was handed in.
                watch.iterated(lambda: (u, h.T))
            return False

    model = Hooked(u.shape[1], init="custom", batch_size=size, tol=0, max_no_improvement=None, max_iter=FOREVER)
    fit(model, matrix, u, v, watch)


def fit(model, matrix, u, v, watch):
    divergence = _nmf._beta_divergence

    def unclocked(*arguments, **options):
        with watch.paused():
            return divergence(*arguments, **options)

    _nmf._beta_divergence = unclocked
    h = v.T
    watch.start()
    model.fit_transform(matrix, W=u, H=h)
