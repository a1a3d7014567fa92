"""A real Kubernetes for development and tests; docs/cluster.md tells how to use it."""
