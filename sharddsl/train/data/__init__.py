"""What a model is trained on: files of text or tokens, packed into batches. Importing the package imports no numpy."""
