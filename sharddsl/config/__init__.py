"""The command line's configuration: groups, their schema, a reader of the common overrides, and Hydra for the rest."""
