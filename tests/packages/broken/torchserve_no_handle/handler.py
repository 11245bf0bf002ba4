class Nothing:
    def initialize(self, context):
        pass
