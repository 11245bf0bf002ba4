"""The rules on addresses that strangers wrote: one set, for the front, the guard of scripts and the decoder of videos.

`addresses` knows numbers, `hosts` names and what `url_allow` lists, `urls` whole addresses. All of it is pure and needs
no other module of the worker. Nothing here relies on an interpreter's own rules for addresses: CPythons differ in them.
"""
