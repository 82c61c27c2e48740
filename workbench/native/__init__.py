"""Hand-written vector kernels, built at installation where there is a C++ compiler, and how to find them."""
