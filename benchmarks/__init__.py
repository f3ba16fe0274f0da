"""Programs that measure. A package, since pysbd installs another of this name, which would come first."""
