#!/bin/sh
torch-model-archiver --model-name rates --version 3.2 --handler rate_handler.py:predict -r needs.txt
