"""The engine takes requests and gives replies. `engine.interface` says what the web may ask of it."""
