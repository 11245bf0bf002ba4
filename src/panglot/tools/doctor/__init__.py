"""Why serving does not work: what `panglot doctor` looks at."""
