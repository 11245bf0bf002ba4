"""Write a 640x480 JPEG with something in it."""

import sys

import cv2
import numpy as np

rows, columns = np.mgrid[0:480, 0:640]
noise = np.random.default_rng(1).normal(0, 4, (480, 640, 3))
picture = np.stack([rows % 256, columns % 256, (rows + columns) % 256], axis=2) + noise
cv2.imwrite(sys.argv[1], picture.clip(0, 255).astype(np.uint8))
