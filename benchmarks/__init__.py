"""Benchmarks. This is a package, because pysbd installs another one with this name, which would come first."""
