"""The configuration of a model as Triton has it, in `config.pbtxt`: its text, its fields, and what they mean here."""
