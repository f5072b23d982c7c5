"""Peer libraries on the same tables and from the same initial samples.

A peer lives in an environment of its own (`make peers`) and is driven through a pipe, so that Lynceus does not depend on it. It uses its
own ask and tell; every run goes to its end, because peers have no timeouts.
"""
