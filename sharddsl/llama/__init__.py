"""LLaMA in Flax: the model as functions of a params pytree, and generation."""
