"""Models: embedders that run in the process, and one that asks an endpoint."""
