"""A worker that runs some of the stages, and the results it hands to workers of the following stages."""
