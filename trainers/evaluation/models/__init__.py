"""The models that are measured, one module a kind; a new kind is a module and its name in `registry.KINDS`."""
