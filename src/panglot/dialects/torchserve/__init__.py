"""Handlers of TorchServe: model archives, folders of them, and folders of sources."""
