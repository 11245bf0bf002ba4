"""The dialect of ACME's scripts: an example of one that comes from outside, to be copied and renamed."""
