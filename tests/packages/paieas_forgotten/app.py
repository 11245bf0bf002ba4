import allspark


class Forgotten(allspark.BaseProcessor):
    def initialize(self):
        self.model = {"w": 2}

    def process(self, data):
        return str(int(data) * self.model["w"]), 200


if __name__ == "__main__":
    runner = Forgotten(worker_threads=10)
