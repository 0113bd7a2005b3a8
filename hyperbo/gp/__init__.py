"""The Gaussian process: kernels, means, features, noise, and what is computed with them."""
