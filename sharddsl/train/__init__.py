"""Training: the optimizer, the step, the data, the loop and what it measures. Importing the package imports no jax."""
