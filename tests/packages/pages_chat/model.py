"""A model that chats."""

import time

ANSWER = """Here is **how**, in two steps:

1. Read the *file*
2. Count its `lines`

```python
def count(path):  # how many lines
    return len(open(path).read().split("\\n"))
```

| name | lines |
|---|--:|
| a.txt | 12 |

<img src=x onerror="window.harmed = 1"> [link](javascript:window.harmed=1) and [more](https://example.com)
"""


def chat(messages, temperature: float = 0.7, **options):
    """A friendly assistant. Ask it how to count lines."""
    last = messages[-1]["content"]
    if isinstance(last, list):
        pictures = [part for part in last if part["type"] == "image_url"]
        yield f"I see {len(pictures)} picture of {len(pictures[0]['image_url']['url'])} characters."
        return
    if last == "who":
        yield f"{messages[0]['role']}: {messages[0]['content']}; temperature {temperature}"
        return
    if last.startswith("say "):
        yield last[4:]
        return
    if last == "fail":
        yield "It begins well, "
        raise RuntimeError("secret")
    for piece in (ANSWER * (200 if last == "endless" else 1)).split(" "):
        yield piece + " "
        time.sleep(0.01)
