"""`panglot check`: whether two results, or two packages stage by stage, agree."""
