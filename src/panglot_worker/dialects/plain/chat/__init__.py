"""The routes that OpenAI's clients call, for scripts with `chat(messages)` or `embed(texts)`.

`reading` turns a body into the arguments of the script, `composing` and `forms` turn its results into answers, and
`endpoints` and `embedding` put these together.
"""
