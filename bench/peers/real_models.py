"""The real models that tests import and that ./tessera peers onnx times: where each lies below .tessera/models, and what import is told."""
import dataclasses
import subprocess
import sys
from pathlib import Path


@dataclasses.dataclass
class RealModel:
    file: str
    options: list[str] = dataclasses.field(default_factory=list)  # of import
    numbers: dict[str, int] = dataclasses.field(default_factory=dict)  # inputs of the model that import binds
    mask: str = ""  # an input of ones
    script: str = ""  # of tests/onnx, that makes the model of the folder `file`
    timed: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # shapes of inputs, for what is timed
    extents: dict[str, int] = dataclasses.field(default_factory=dict)  # of the program's dynamic dims at these


def silero(file: str, *options: str, rate: bool = True, **more) -> RealModel:
    bound = ["--bind", "sr=16000"] if rate else []
    return RealModel(f"silero-vad/{file}.onnx", [*bound, *options], {"sr": 16000} if rate else {}, **more)


MODELS = {
    "detection": RealModel(
        "rapidocr/ch_PP-OCRv4_det_infer.onnx",
        ["--shape", "x.0=1", "--multiple", "p2o.DynamicDimension.1=32", "p2o.DynamicDimension.2=32"],
        timed={"x": [1, 3, 320, 320]}, extents={"p2o_DynamicDimension_1": 320, "p2o_DynamicDimension_2": 320}),
    "recognition": RealModel(
        "rapidocr/ch_PP-OCRv4_rec_infer.onnx", ["--shape", "x.2=48"],
        timed={"x": [1, 3, 48, 320]}, extents={"p2o_DynamicDimension_0": 1, "p2o_DynamicDimension_1": 320}),
    "angle": RealModel(
        "rapidocr/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        timed={"x": [1, 3, 48, 192]}, extents={"x_0": 1, "x_2": 48, "x_3": 192}),
    "minilm": RealModel(
        "all-minilm-l6-v2", ["--max", "sequence=512"], mask="attention_mask", script="minilm.py",
        timed={"input_ids": [1, 128], "attention_mask": [1, 128]}, extents={"batch": 1, "sequence": 128}),
    "magika": RealModel("magika/model.onnx", timed={"bytes": [1, 2048]}, extents={"unk_214": 1}),
    "silero_vad": silero("silero_vad", "--shape", "input.0=1", "input.1=576", "state.1=1"),
    "silero_vad_16k_op15": silero("silero_vad_16k_op15", "--shape", "sequence=576"),
    "silero_vad_half": silero("silero_vad_half", "--shape", "sequence=576", rate=False),
    "silero_vad_op18_ifless": silero("silero_vad_op18_ifless", "--shape", "sequence=576"),
    "silero_vad_openvino_16k": silero("silero_vad_openvino_16k", rate=False, timed={"input": [1, 576], "state": [2, 1, 128]}),
    "silero_vad_16k_sequence": silero("silero_vad_16k_sequence", rate=False,
                                      timed={"input": [20, 576], "h": [1, 1, 128], "c": [1, 1, 128]},
                                      extents={"sequence_length": 20}),
}


def onnx_file(model: RealModel, models: Path, work: Path) -> Path:
    """The model's file; one that a script makes is written into `work`."""
    if not model.script:
        return models / model.file
    made, script = work / "model.onnx", Path(__file__).resolve().parents[2] / "tests/onnx" / model.script
    if not made.exists() or made.stat().st_mtime < script.stat().st_mtime:
        work.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(script), str(models / model.file), str(made)], check=True)
    return made
