"""Words of a text, as torchtext's `basic_english` makes them, and runs of words."""

import re

REPLACED = (
    (r"'", " '  "), (r"\"", ""), (r"\.", " . "), (r"<br \/>", " "), (r",", " , "), (r"\(", " ( "), (r"\)", " ) "),
    (r"!", " ! "), (r"\?", " ? "), (r";", " "), (r":", " "), (r"\s+", " "),
)  # fmt: skip


def ngrams_iterator(token_list, ngrams):
    """The words, then each run of two words, and so on up to `ngrams` words."""
    yield from token_list
    for count in range(2, ngrams + 1):
        for run in zip(*[token_list[start:] for start in range(count)]):
            yield " ".join(run)


def _basic_english_normalize(line):
    line = line.lower()
    for pattern, text in REPLACED:
        line = re.sub(pattern, text, line)
    return line.split()


def _split_tokenizer(line):
    return line.split()


def get_tokenizer(tokenizer, language="en"):
    """What splits a text: `basic_english`, None for blanks alone, or a function of the script's own."""
    if tokenizer is None:
        return _split_tokenizer
    if tokenizer == "basic_english":
        if language != "en":
            raise ValueError("Default normalization is only available for Englisth(en)")
        return _basic_english_normalize
    if callable(tokenizer):
        return tokenizer
    raise ValueError("use basic_english, None or a function: %r is none of them" % (tokenizer,))
