"""What resolving a spec for one model and mesh finds: one module for each code, whose docstring is the code's page."""
