//! NumPy's `.npy`: read in either order, written in C order.
