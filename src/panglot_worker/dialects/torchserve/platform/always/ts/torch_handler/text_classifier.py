"""The handler `text_classifier`: the probability of every class, for a text. It takes no batches."""

import torch

from ts.handler_utils.text_utils import ngrams_iterator
from ts.torch_handler.text_handler import TextHandler
from ts.utils.util import map_class_to_label


class TextClassifier(TextHandler):
    """Calls the model with the numbers of a text's words, and of its runs of words, in the vocabulary."""

    ngrams = 2

    def preprocess(self, data):
        text = data[0].get("data") or data[0].get("body")
        if isinstance(text, (bytes, bytearray)):
            text = text.decode("utf-8")
        text = self._expand_contractions(self._remove_html_tags(text).lower())
        words = self._tokenize(self._remove_punctuation(self._remove_accented_characters(text)))
        numbers = [self.source_vocab[word] for word in ngrams_iterator(words, self.ngrams)]
        return torch.as_tensor(numbers, device=self.device), words

    def inference(self, data, *args, **kwargs):
        return super().inference(data[0], torch.as_tensor([0], device=self.device))

    def postprocess(self, data):
        return map_class_to_label(torch.nn.functional.softmax(data, dim=1).tolist(), self.mapping)

    def get_insights(self, text_preprocess, _, target=0):
        from captum.attr import LayerIntegratedGradients, TokenReferenceBase

        self.lig = self.lig or LayerIntegratedGradients(self.model, self.model.embedding)
        numbers, words = text_preprocess
        references = TokenReferenceBase().generate_reference(numbers.shape[0], device=self.device).squeeze(0)
        attributions = self.lig.attribute(
            numbers, references, additional_forward_args=(torch.tensor([0]).to(self.device)),
            return_convergence_delta=False, target=target,
        )  # fmt: skip
        importances = self.summarize_attributions(attributions).tolist()
        return [{"importances": importances, "words": self.get_word_token(words)}]
