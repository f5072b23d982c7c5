from .sampler import LynceusSampler, TimeoutPruner

__all__ = ["LynceusSampler", "TimeoutPruner"]
