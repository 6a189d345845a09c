"""The known defects of TVM's CLML path, a row each, in the order in which their workarounds are applied.

A row says what goes wrong, where it can be read, what is done instead, and the edit that keeps the operator on OpenCL
or mends it. All are in 0.25 and later releases.
docs/explanation/clml.md explains them.
"""

from __future__ import annotations

from functools import partial

from harness.base.case import Precision
from harness.compile.compiler.compat import dtype_of
from harness.compile.compiler.passes import before
from harness.compile.paths.base import Edits
from harness.compile.paths.clml.patterns import ClmlEdits
from harness.compile.quirks import clml_edits
from harness.compile.quirks.base import Quirk

_row = partial(Quirk, paths=("clml",))

QUIRKS: tuple[Quirk, ...] = (
    _row(
        "clml-not-imported",
        "the pipeline of target qcom/adreno-opencl-clml raises AttributeError: relax.backend.adreno has no clml",
        upstream="relax/backend/adreno/__init__.py; pipeline.py: library_dispatch_passes",
        workaround="the module is imported before the pipeline is asked for",
        essential=True,  # and the import is in `harness.compile.paths.clml.register`, so there is no edit
    ),
    _row(
        "clml-batch-norm-flags",
        "center=False and scale=False are ignored when a batch norm is folded into a convolution or offloaded",
        upstream="python/tvm/relax/transform/fold_batch_norm_to_conv2d_for_inference.py; clml_runtime.cc: "
        "CreateBatchNormLayer",
        workaround="a beta that is not used is made zero, a gamma one, before TVM looks at them",
        edits=Edits(
            relax=before("FoldBatchnormToConv2D", "SpellOutBatchNormFlags", clml_edits.spell_out_batch_norm_flags)
        ),
    ),
    _row(
        "clml-mixed-batch-norm",
        "batch norms stay in float32 when a network is converted, so each block is cut into parts with casts between "
        "them; a batch norm that is in float16 already stops FoldBatchnormToConv2D (TypeError)",
        upstream="relax.transform.ToMixedPrecision; "
        "python/tvm/relax/transform/fold_batch_norm_to_conv2d_for_inference.py adds a float32 epsilon",
        workaround="batch norms are folded into convolutions before the network is converted",
        edits=Edits(model=clml_edits.fold_batch_norms),
        precisions=(Precision.FLOAT16, Precision.FLOAT16_ACC32),
    ),
    _row(
        "clml-relu6",
        "relax.clip has three arguments and its patterns one, so ReLU6 is never offloaded and networks fall apart",
        upstream="relax/backend/adreno/clml.py: is_op('relax.clip')(x); if it matched, codegen.cc would drop it and "
        "clml_runtime.cc would look for a name that is exactly `clip`",
        workaround="a pattern of ours offloads clip(x, 0, 6) as the activation relu6, which the runtime has",
        edits=ClmlEdits(patterns=clml_edits.relu6_pattern),
    ),
    _row(
        "clml-unplaced-operand",
        "a weight that is no constant, and `bias + conv(x)`, match and then fail in the code generator",
        upstream="src/relax/backend/contrib/clml/codegen.cc: CreateCompositeConvJSONNode (memo_.count is false)",
        workaround="such a convolution, or the sum, stays on OpenCL",
        edits=ClmlEdits(veto=clml_edits.has_unplaced_operand),
    ),
    _row(
        "clml-number-format",
        "integers are offloaded and the runtime stops at them; float16 summed in float32 is read as float32",
        upstream="relax/backend/adreno/clml.py: most checks do not look at dtype; clml_utils.cc: MakeCLDataType; "
        "clml_runtime.cc gives all tensors of an operator the format of its result",
        workaround="operators on other than float32 alone or float16 alone stay on OpenCL",
        edits=ClmlEdits(veto=lambda match: {*map(dtype_of, match.tensors)} not in ({"float32"}, {"float16"})),
    ),
    _row(
        "clml-tensor-shape",
        "batches above one are offloaded for convolutions, pooling, batch norm and reshape, though the other checks "
        "say that CLML has none; of more than four dimensions the runtime reads the first four",
        upstream="relax/backend/adreno/clml.py: only _check_binary_op looks at the batch; clml_utils.cc: "
        "MakeCLMLTensor",
        workaround="operators on batches above one, or on more than four dimensions, stay on OpenCL",
        edits=ClmlEdits(veto=clml_edits.is_too_large),
    ),
    _row(
        "clml-grouped-conv",
        'grouped and depthwise convolutions are offloaded; the runtime stops: "only supports group size of 1"',
        upstream="relax/backend/adreno/clml.py: _check_conv2d never looks at groups; clml_runtime.cc: "
        "CreateConvolution2DLayer, whose depthwise mode no pattern of Relax can reach",
        workaround="convolutions with more than one group stay on OpenCL",
        edits=ClmlEdits(veto=clml_edits.is_grouped),
    ),
    _row(
        "clml-inner-result",
        "a convolution whose result is used beside the activation fused to it yields the activated result twice",
        upstream="clml_runtime.cc: one tensor per node, whatever its number of outputs",
        workaround="operators are fused only if nothing else reads what passes between them",
        edits=ClmlEdits(veto=lambda match: match.inner_result_escapes),
    ),
    _row(
        "clml-bias-shape",
        "a scalar, a row or a whole tensor added to a convolution is handed over as a bias per channel",
        upstream="relax/backend/adreno/clml.py: conv_pattern takes any constant for a bias",
        workaround="only a constant of one number per channel is fused as a bias",
        edits=ClmlEdits(veto=clml_edits.has_no_bias_per_channel),
    ),
    _row(
        "clml-pad-conv",
        "the value, the mode, and the convolution's own padding are dropped when a pad is fused into a convolution",
        upstream="src/relax/backend/contrib/clml/codegen.cc: CreateCompositeConvJSONNode writes pad_width over padding",
        workaround="only zeros, around height and width, before a convolution without padding, are fused",
        edits=ClmlEdits(veto=clml_edits.is_pad_unlike_padding),
    ),
    _row(
        "clml-conv-transpose",
        "batch norm is fused into transposed convolutions, and the runtime stops: no attribute `batchnorm`",
        upstream="src/relax/backend/contrib/clml/codegen.cc: only composites that end in nn.conv2d get `batchnorm`; "
        "clml_runtime.cc: CreateConvolution2DLayer",
        workaround="the batch norm is offloaded by itself",
        edits=ClmlEdits(veto=lambda match: {"relax.nn.conv2d_transpose", "relax.nn.batch_norm"} <= {*match.calls}),
    ),
    _row(
        "clml-transpose-layout",
        "weights of all transposed convolutions become OIHW for CLML; those that stay on OpenCL cannot be legalised",
        upstream="relax/backend/adreno/clml.py: OpenCLMLOffLoad converts before it matches; "
        "relax/transform/legalize_ops/nn.py: conv2d_transpose takes IOHW only",
        workaround="those that stay are converted back to IOHW",
        edits=Edits(relax=clml_edits.convert_transposed_back),
    ),
    _row(
        "clml-epsilon",
        "the epsilon of a batch norm fused into a convolution keeps six decimals: 1e-7 becomes 0",
        upstream="src/relax/backend/contrib/clml/codegen.cc: std::to_string(epsilon)",
        workaround="such a batch norm is offloaded by itself, where its epsilon is written in full",
        edits=ClmlEdits(veto=clml_edits.has_rounded_epsilon),
    ),
    _row(
        "clml-constant-left",
        "`constant - x` and `constant / x` are computed as `x - constant` and `x / constant`",
        upstream="src/relax/backend/contrib/clml/codegen.cc: the inputs of a kernel are its arguments, then its "
        "constants",
        workaround="subtractions from a constant and divisions of one stay on OpenCL",
        edits=ClmlEdits(veto=clml_edits.has_constant_on_the_left),
    ),
    _row(
        "clml-same-operand",
        "`x + x` becomes a kernel with one input, and the runtime reads a second one that is not there",
        upstream="src/relax/transform/fuse_ops.cc gives the composite one parameter; clml_runtime.cc: "
        "CreateBinaryLayer",
        workaround="operators on one tensor twice stay on OpenCL",
        edits=ClmlEdits(veto=clml_edits.has_same_operand_twice),
    ),
    _row(
        "clml-pooling",
        "pooling in NHWC, with dilation, ceil_mode or counted padding is offloaded; the runtime reads none of these",
        upstream="relax/backend/adreno/clml.py: _check_maxpool2d, _check_avgpool2d; clml_runtime.cc: "
        "CreatePoolingLayer",
        workaround="pooling whose result depends on one of them stays on OpenCL",
        edits=ClmlEdits(veto=clml_edits.is_pooling_of_another_kind),
    ),
    _row(
        "clml-global-pool",
        "global average pooling of height x width is given a window of width x height",
        upstream="clml_runtime.cc: CreateGlobalPoolingLayer, {in_dims.w, in_dims.h} where other pooling has {h, w}",
        workaround="global pooling of tensors that are not square stays on OpenCL",
        edits=ClmlEdits(veto=clml_edits.is_global_pool_not_square),
    ),
    _row(
        "clml-softmax-axis",
        "softmax along any axis is offloaded; along others than channels and width it is computed along the channels",
        upstream="clml_runtime.cc: CreateSoftmaxLayerTensor, a layout for axis 3 and one for all others",
        workaround="softmax along an axis that the runtime does not know stays on OpenCL",
        edits=ClmlEdits(veto=clml_edits.is_softmax_along_another_axis),
    ),
    _row(
        "clml-reused-output",
        "the memory of a part's result is reused after its last reader in the part, although the part returns it: "
        "skip connections (max pools in a row, encoders) are wrong",
        upstream="clml_runtime.cc counts readers without the outputs; clml_memory_planner.cc: FreeMemory",
        workaround="a part returns a copy of such a result, by a reshape to the same shape at its end",
        edits=Edits(relax=before("RunCodegen", "CopyInnerOutputs", clml_edits.copy_inner_outputs)),
    ),
    _row(
        "clml-untuned-conv",
        "convolutions without activation and batch norm are created without the tuning cache, tuned or not",
        upstream="clml_runtime.cc: CreateConvolution2DLayer, clCreateMLOpConvolutionForwardQCOM(…, nullptr)",
        workaround="none; the offload report counts them, so that a tuned run is not taken for more than it is",
    ),
    _row(
        "clml-runtime-name",
        "is_clml_runtime_enabled() asks for relax.op.is_openclml_runtime_enabled and so always answers False",
        upstream="relax/backend/adreno/clml.py: is_clml_runtime_enabled; codegen.cc registers "
        "relax.is_openclml_runtime_enabled",
        workaround="nothing here asks it; the loader of CLML modules and the device's extensions are looked up instead",
    ),
)
