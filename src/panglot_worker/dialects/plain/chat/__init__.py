"""The routes that OpenAI's clients call, for scripts with `chat(messages)` or `embed(texts)`.

`reading` makes of a body what the script is called with, `composing` and `forms` make answers of what it gives,
`endpoints` and `embedding` put these together.
"""
