"""The same top of the class tree as every other engine's."""

from model_service.model_service import ModelService, SingleNodeService

__all__ = ["ModelService", "SingleNodeService"]
