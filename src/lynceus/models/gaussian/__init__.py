"""Gaussian-process regression on a finite table: kernels, priors, censored observations, conditioning."""
