from sagemaker.pipeline import PipelineModel


def deploy(models, role):
    PipelineModel(name="two", role=role, models=models).deploy(1, "ml.c5.xlarge")
