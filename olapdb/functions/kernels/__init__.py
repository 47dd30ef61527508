"""Kernels that all packages of functions share, for arrays, calendars, hashes and types."""
