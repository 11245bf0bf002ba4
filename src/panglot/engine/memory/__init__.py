"""Memory that front and workers share: who owns which buffer, and what outlives a worker.

A body belongs to its call (`panglot.engine.call`), which alone gives it back.
"""
