"""The calls of one stage of a package: queued, sent to workers, answered, and run again where a worker failed."""
