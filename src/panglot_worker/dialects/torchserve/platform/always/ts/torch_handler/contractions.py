"""Short forms of English words, and what they stand for."""

ENDINGS = (
    ("n't", " not", "are could did does do had has have is may might must need ought should was were would"),
    ("'d", " would", "he i it she that there they we you"),
    ("'d", " did", "how where"),
    ("'ll", " will", "he how i it she they we what who you"),
    ("'m", " am", "i"),
    ("'re", " are", "they we what you"),
    ("'s", " is", "he how it she that there what when where who why"),
    ("'ve", " have", "could i might must should so they to we what when where who why will would you"),
)
CONTRACTION_MAP = {word + ending: word + full for ending, full, words in ENDINGS for word in words.split()}
CONTRACTION_MAP.update(
    {
        "ain't": "is not",
        "can't": "cannot",
        "'cause": "because",
        "let's": "let us",
        "ma'am": "madam",
        "o'clock": "of the clock",
        "shan't": "shall not",
        "sha'n't": "shall not",
        "so's": "so as",
        "won't": "will not",
        "y'all": "you all",
    }
)
"""The original has double forms such as `can't've` too, which its search never reaches: `can't` is found before."""
