"""What scripts of the older containers import, where sagemaker-containers is not installed."""

from sagemaker_containers.beta.framework import content_types, encoders, env, errors, modules, transformer, worker

__all__ = ["content_types", "encoders", "env", "errors", "modules", "transformer", "worker"]
