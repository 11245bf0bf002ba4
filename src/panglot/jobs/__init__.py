"""Calls that outlive their request: their store, their events, their webhooks, and how they reach the engine.

    job         a job and its states                 store       the thread that owns all jobs; groups of commands
    folder      the folder of --jobs on disk         commands    what a command does to the database
    database    schema, opening, recovery            salvage     rows of a damaged database
    board       jobs on the loop: submit, follow     running     a job as a call of the engine

This package knows the calls of the engine, and nothing of the web.
"""
