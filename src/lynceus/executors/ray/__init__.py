"""Runs on an existing Ray cluster.

A run is a placement group with one bundle per node, named after study and trial, and a detached actor in each bundle, which runs the
supervisor on its node. Lynceus itself never imports Ray: a separate process is the driver, because Ray ends its drivers when a cluster
goes down. What must survive processes and nodes (that a run has started, its heartbeat, how it ended) is kept in the key-value store of
the cluster's head.
"""
