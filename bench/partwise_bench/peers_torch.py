"""nmf-torch and torchnmf, with a hook after each iteration and without their stopping rules."""

import contextlib
import io

import numpy as np
import scipy.sparse
import torch

FOREVER = 10**6


def nmf_torch(algorithm):
    """`hals` is one sweep an iteration, `halsvar`, its default, sweeps until nothing much changes."""

    def run(matrix, u, v, watch):
        from nmf.nmf_models import NMFBatchHALS, NMFBatchMU

        base = NMFBatchMU if algorithm == "mu" else NMFBatchHALS

        class Hooked(base):
            def _initialize_H_W(self, eps=1e-6):
                self.H, self.W = torch.from_numpy(u.copy()), torch.from_numpy(np.ascontiguousarray(v.T))

            def _update_W(self):
                super()._update_W()
                watch.iterated(lambda: (self.H.numpy(), self.W.numpy().T))

            def _loss(self):
                with watch.paused():
                    return super()._loss()

            def _is_converged(self, *errors):
                return False

        sweeps = {} if algorithm == "mu" else {"hals_max_iter": 1 if algorithm == "hals" else 200}
        model = Hooked(
            u.shape[1], "random", 2.0, 0.0, 0, 0.0, 0.0, 0.0, 0.0, "float", "cpu", max_iter=FOREVER, **sweeps
        )
        tensor = torch.from_numpy(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)
        # It prints a line every ten iterations.
        with contextlib.redirect_stdout(io.StringIO()):
            watch.start()
            model.fit(tensor)

    return run


def torchnmf(matrix, u, v, watch):
    import torchnmf.nmf as module

    half_steps = 0

    def hooked(update):
        def step(*arguments):
            nonlocal half_steps
            update(*arguments)
            half_steps += 1
            if half_steps % 2 == 0:
                watch.iterated(lambda: (model.H.detach().numpy(), model.W.detach().numpy()))

        return step

    class Model(module.NMF):
        """Gradients are off where it evaluates its loss, and only there."""

        @staticmethod
        def reconstruct(h, w):
            with contextlib.nullcontext() if torch.is_grad_enabled() else watch.paused():
                return module.NMF.reconstruct(h, w)

        def _sp_recon_beta_pos_neg(self, *arguments):
            with contextlib.nullcontext() if torch.is_grad_enabled() else watch.paused():
                return super()._sp_recon_beta_pos_neg(*arguments)

    divergence = module.beta_div

    def unclocked(*arguments):
        with watch.paused():
            return divergence(*arguments)

    module.beta_div = unclocked
    module._double_backward_update = hooked(module._double_backward_update)
    module._sp_double_backward_update = hooked(module._sp_double_backward_update)
    model = Model(W=torch.from_numpy(v), H=torch.from_numpy(u))
    if scipy.sparse.issparse(matrix):
        entries = matrix.tocoo()
        places = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
        tensor = torch.sparse_coo_tensor(places, torch.from_numpy(entries.data), entries.shape)
    else:
        tensor = torch.from_numpy(matrix)
    watch.start()
    model.fit(tensor, beta=2, tol=float("-inf"), max_iter=FOREVER)
