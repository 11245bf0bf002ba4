"""The names that scripts of the first SDK import from azureml.contrib.services."""
