"""What a path is: packages, their sources and requirements, folders of models and their configuration."""
