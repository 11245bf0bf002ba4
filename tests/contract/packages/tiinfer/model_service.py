"""Several orders in a call, where the platform's variable asks for it."""

import acts

import tiinfer


class Orders(tiinfer.Model):
    def load(self):
        acts.load()
        return True

    def predict(self, request):
        return acts.act_all(request)
