"""The rules on addresses that strangers wrote: one set, for the front, the guard of scripts and the decoder of videos.

`addresses` knows numbers, `hosts` names and what `url_allow` lists, `urls` whole addresses. All of it is pure and needs
nothing else of the worker. Nothing here asks what an interpreter thinks of an address, since CPythons differ in that.
"""
