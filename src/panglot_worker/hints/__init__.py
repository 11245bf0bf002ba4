"""From the type hints of a script's function to its arguments, and to the schema of its requests.

Built once, when the script is loaded; each request then runs closures. In the order to read them:

- `kind`: one hint: how a JSON value or a text becomes a value of it, its schema, an example
- `kinds`: one family of hints each: `scalars`, `spelled`, `choices`, `containers`, `objects`, `unions`, `uploads`,
  `arrays`, `models`
- `bounds`: the limits that `Annotated` adds
- `spelling`: hints as they are written in Python, evaluated; `building`: which family a hint belongs to
- `functions`: a whole function; `arguments`: its arguments from a request
"""
