"""Workers of RunPod's serverless platform: scripts that call `runpod.serverless.start({"handler": handler})`."""
