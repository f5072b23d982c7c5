"""Runs on a Ray cluster that exists already.

A run is a placement group with one bundle per node, named after study and trial, and a detached actor in it, the keeper, that runs the
supervisor on its node. Lynceus itself never loads Ray: a process of its own, the porter, is the driver, so that a cluster that goes down
takes the porter along and nobody else. What must outlive processes and nodes (that a run has begun, its last sign of life, how it
ended) is kept in the key-value store of the cluster's head.
"""
