"""Inference of the chain: which digit a picture shows, white on black."""

import argparse
import os

import numpy as np
from paddle import inference
from PIL import Image
from reprod_log import ReprodLogger


class InferenceEngine:
    """The digit in a picture, and how sure the net is."""

    def __init__(self, args):
        super().__init__()
        self.args = args
        self.predictor, self.config, self.input_tensor, self.output_tensor = self.load_predictor(
            os.path.join(args.model_dir, "inference.pdmodel"), os.path.join(args.model_dir, "inference.pdiparams")
        )

    def load_predictor(self, model_file_path, params_file_path):
        args = self.args
        config = inference.Config(model_file_path, params_file_path)
        if args.use_gpu:
            config.enable_use_gpu(1000, 0)
        else:
            config.disable_gpu()
            config.set_cpu_math_library_num_threads(args.cpu_threads)
        config.enable_memory_optim()
        config.disable_glog_info()
        config.switch_use_feed_fetch_ops(False)
        config.switch_ir_optim(True)
        predictor = inference.create_predictor(config)
        input_tensor = predictor.get_input_handle(predictor.get_input_names()[0])
        output_tensor = predictor.get_output_handle(predictor.get_output_names()[0])
        return predictor, config, input_tensor, output_tensor

    def preprocess(self, img_path):
        with open(img_path, "rb") as file:
            img = Image.open(file).convert("L").resize((8, 8), Image.BOX)
        return (np.asarray(img) / 255).astype("float32")[None, None]

    def run(self, x):
        self.input_tensor.copy_from_cpu(x)
        self.predictor.run()
        return self.output_tensor.copy_to_cpu()

    def postprocess(self, x):
        x = x.flatten()
        class_id = x.argmax()
        return class_id, x[class_id]


def get_args(add_help=True):
    def str2bool(text):
        return text.lower() in ("true", "t", "1")

    parser = argparse.ArgumentParser(description="Paddle inference of digits", add_help=add_help)
    parser.add_argument("--model-dir", default="./inference", help="folder of the exported model")
    parser.add_argument("--use-gpu", default=False, type=str2bool)
    parser.add_argument("--cpu-threads", default=1, type=int)
    parser.add_argument("--batch-size", default=1, type=int)
    parser.add_argument("--img-path", default="./images/demo.png")
    parser.add_argument("--benchmark", default=False, type=str2bool, help="print the report of AutoLog")
    return parser.parse_args()


def infer_main(args):
    inference_engine = InferenceEngine(args)
    assert args.batch_size == 1, "one picture at a time"
    if args.benchmark:
        import auto_log

        autolog = auto_log.AutoLogger(
            model_name="digits",
            batch_size=args.batch_size,
            inference_config=inference_engine.config,
            gpu_ids="auto" if args.use_gpu else None,
        )
        autolog.times.start()

    img = inference_engine.preprocess(args.img_path)
    if args.benchmark:
        autolog.times.stamp()

    output = inference_engine.run(img)
    if args.benchmark:
        autolog.times.stamp()

    class_id, prob = inference_engine.postprocess(output)
    if args.benchmark:
        autolog.times.stamp()
        autolog.times.end(stamp=True)
        autolog.report()
    print(f"image_name: {args.img_path}, class_id: {class_id}, prob: {prob}")
    return class_id, prob


if __name__ == "__main__":
    args = get_args()
    class_id, prob = infer_main(args)

    reprod_logger = ReprodLogger()
    reprod_logger.add("class_id", np.array([class_id]))
    reprod_logger.add("prob", np.array([prob]))
    reprod_logger.save("output_inference_engine.npy")
