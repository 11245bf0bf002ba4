"""Calls between fronts: when one is lent, how it travels, and who answers for it."""
