"""A version that the policy leaves out."""

raise RuntimeError("nobody may load this version")
