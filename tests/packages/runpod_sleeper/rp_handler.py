"""RunPod's own first example: a prompt comes back after some seconds."""

import time

import runpod


def handler(event):
    print("Worker Start")
    input = event["input"]
    prompt = input.get("prompt")
    seconds = input.get("seconds", 0)
    print(f"Received prompt: {prompt}")
    print(f"Sleeping for {seconds} seconds...")
    time.sleep(seconds)
    return prompt


if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
