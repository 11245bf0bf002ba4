"""The network behind one method, on MegEngine Lite."""

import argparse

import cv2
import numpy as np
from megenginelite import LiteNetwork


class PredModel:
    def __init__(self, path):
        self.net = LiteNetwork()
        self.net.load(path)

    def preprocess(self, image, input_size, mean, std):
        resized = cv2.resize(image, input_size).astype(np.float32)
        resized = (resized - np.array(mean, np.float32)) / np.array(std, np.float32)
        return np.ascontiguousarray(resized.transpose(2, 0, 1)[None], np.float32)

    def inference(self, mat):
        img = self.preprocess(
            mat, input_size=(224, 224), mean=[103.530, 116.280, 123.675], std=[57.375, 57.120, 58.395]
        )
        inp_data = self.net.get_io_tensor("data")
        inp_data.set_data_by_share(img)
        self.net.forward()
        self.net.wait()
        output_keys = self.net.get_all_output_name()
        output = self.net.get_io_tensor(output_keys[0]).to_numpy()
        return np.argmax(output[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--path")
    args = parser.parse_args()
    print(PredModel(args.model).inference(cv2.imread(args.path)))
