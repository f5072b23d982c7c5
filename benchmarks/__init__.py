"""Measurements that print tables. Each module runs by itself: python -m benchmarks.decision."""
