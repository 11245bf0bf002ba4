"""The base of handlers for texts. Explanations need captum, and nothing else does."""

import os
import re
import string
import unicodedata

import torch

from ts.handler_utils.text_utils import get_tokenizer
from ts.torch_handler.base_handler import BaseHandler
from ts.torch_handler.contractions import CONTRACTION_MAP

CLEANUP_REGEX = re.compile("<.*?>|&([a-z0-9]+|#[0-9]{1,6}|#x[0-9a-f]{1,6});")
CONTRACTIONS_PATTERN = re.compile("(%s)" % "|".join(CONTRACTION_MAP), re.IGNORECASE | re.DOTALL)


class TextHandler(BaseHandler):
    """Loads the vocabulary of the archive, `source_vocab.pt`, and cleans texts."""

    def __init__(self):
        super().__init__()
        self.source_vocab = None
        self.tokenizer = get_tokenizer("basic_english")
        self.input_text = None
        self.lig = None
        self.initialized = None

    def initialize(self, context):
        super().initialize(context)
        self.initialized = False
        named = self.manifest["model"].get("sourceVocab")
        self.source_vocab = torch.load(named or self.get_source_vocab_path(context))
        self.initialized = True

    def get_source_vocab_path(self, ctx):
        path = os.path.join(ctx.system_properties.get("model_dir"), "source_vocab.pt")
        if os.path.isfile(path):
            return path
        raise Exception(
            "Missing the source_vocab file. Refer default handler documentation for details on using text_handler."
        )

    def _expand_contractions(self, text):
        def expanded(match):
            short = match.group(0)
            full = CONTRACTION_MAP.get(short) or CONTRACTION_MAP[short.lower()]
            return short[0] + full[1:]

        return CONTRACTIONS_PATTERN.sub(expanded, text).replace("'", "")

    def _remove_accented_characters(self, text):
        return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("utf-8", "ignore")

    def _remove_html_tags(self, text):
        return CLEANUP_REGEX.sub("", text)

    def _remove_punctuation(self, text):
        return text.translate(str.maketrans("", "", string.punctuation))

    def _remove_puncutation(self, *args, **kwargs):
        """The name that older scripts know."""
        return self._remove_punctuation(*args, **kwargs)

    def _tokenize(self, text):
        return self.tokenizer(text)

    def get_word_token(self, input_tokens):
        return [token.replace("\u0120", "") for token in input_tokens]

    def summarize_attributions(self, attributions):
        attributions = torch.nn.functional.softmax(attributions, dim=-1)
        return attributions / torch.norm(attributions.sum(dim=-1))
